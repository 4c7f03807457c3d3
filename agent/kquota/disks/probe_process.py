"""The program that looks at log dirs, in a process of its own because a hung disk hangs who asks it.

Run by ``probe.py`` as ``python -I -S probe_process.py INTERVAL_SECONDS LOG_DIR …``; besides
``topic_list.py`` it uses the standard library alone, and imports little, to stay small. One thread looks at
all log dirs every interval, as long as they answer; one that doesn't keeps that thread to itself, and another
one takes over the rest (a thread for each log dir from the start would cost several times as much in
wake-ups). The main thread never touches a file system: it answers each question (``?`` on stdin) with one
line per log dir and a line ``end``, and exits when stdin ends, that is when its parent closes it or dies.

A line ``=`` on stdin, with three numbers for each log dir, asks to be woken: as soon as the bytes available
are down at the first number or up at the second, the process writes a line ``!``, once, and what is found
is in the next answer. Until then that log dir is looked at twice an interval, and more often the
nearer it comes. The third number is how many topics of the log dir to name at most, 0 for none: each change
of these is a reason for a line ``!``, too.

A line of an answer: index, ticks that an unfinished or late look waited, time of the last look with figures
(CLOCK_MONOTONIC, nanoseconds, 0 for none), failed step or ``-``, its errno, mount id, capacity and available
(bytes), inodes and those available (0 where they are not counted), errno of listing the directory, file
system UUID or ``-``, device and inode of the directory, inode of the file that Kafka locks in it (0 for none,
``-`` where that can't be seen), whether Kafka has formatted it (1, 0, or ``-``), the name of a partition that
is a symbolic link to another file system or ``-``, its topics: ``=`` if they are those of the answer before,
``-`` if they are not known, or ``:`` and the names with commas between them.
"""

import _thread
import errno
import fcntl
import os
import select
import sys
import time

if __name__ == "__main__":
    # -I leaves out the folder of the package that this file is a part of.
    sys.path.append(__file__.rpartition("/kquota/")[0])

from kquota.disks.topic_list import ALARM, TopicList

# A look that takes longer than a tick is reported as a number of ticks. Ticks, not a clock: when the whole
# machine or this process was stopped, no disk is to blame.
TICK_SECONDS = 0.25
# The full look (listing, UUID) is made at this interval of seconds; the figures at every interval.
FULL_LOOK_SECONDS = 1.0
# The next look comes after this share of the time until a number would be reached, within the next two.
APPROACH_RATIO = 0.02
NEAR_SECONDS = 0.02
FAR_RATIO = 0.5
# A look that takes this many ticks is left alone with its thread.
PATIENCE_TICKS = 2
# _IOR(0x15, 0, struct { u8 length; u8 uuid[16]; }): needs no privileges, Linux 6.9 and later.
FS_IOC_GETFSUUID = 0x80111500
LOCK, META_PROPERTIES = ".lock", "meta.properties"
_NO_LOOK = 0, "-", 0, 0, 0, 0, 0, 0, 0, "-", 0, 0, "-", "-"


def next_look_seconds(interval_seconds: float, left_bytes: int, bytes_per_second: float) -> float:
    """Return when to look again, while a number is this many bytes away that are used up at this rate.

    In the last second before it is reached this is ``NEAR_SECONDS``, and far from it ``FAR_RATIO`` of the
    interval; of an interval that is shorter than ``NEAR_SECONDS`` it is the interval.
    """
    far_seconds = max(FAR_RATIO * interval_seconds, min(NEAR_SECONDS, interval_seconds))
    if bytes_per_second <= 0:
        return far_seconds
    return min(far_seconds, max(NEAR_SECONDS, APPROACH_RATIO * left_bytes / bytes_per_second))


class LogDir:
    """The last look at one log dir. Written by its own thread, read by the main thread."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.topic_list = TopicList(path)
        self.busy_since_tick: int | None = None
        # Of the last look. A disk that answers too late each time is not well between two answers.
        self.late_ticks = 0
        self.uuid = self.lock = self.formatted = "-"
        self.list_errno = 0
        self.mount_id = self.device = self.inode = 0
        self.identity: tuple[int, int, int] | None = None
        self.full_look_at = 0.0
        # The numbers that wake the owner, or None where there are none left.
        self.band: tuple[int, int] | None = None
        # One tuple, replaced as a whole: the main thread never sees half a look.
        self.result: tuple[int, str, int, int, int, int, int, int, int, str, int, int, str, str] = _NO_LOOK

    def look(self) -> None:
        """Look once; an error ends up in the result, and the figures of the last good look stay."""
        step = "open"
        try:
            # O_PATH asks for no right to read the directory; the descriptor pins one mount, so figures
            # and mount id belong together whatever is mounted or unmounted meanwhile.
            handle = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                step = "statvfs"
                figures = os.fstatvfs(handle)
                identity = (figures.f_fsid, figures.f_blocks, figures.f_files)
                full = identity != self.identity or time.monotonic() - self.full_look_at >= FULL_LOOK_SECONDS
                if full:
                    self.full_look(handle)
                    self.identity = identity
            finally:
                os.close(handle)
            self.result = (
                time.monotonic_ns(),
                "-",
                0,
                self.mount_id,
                figures.f_blocks * figures.f_frsize,
                figures.f_bavail * figures.f_frsize,
                figures.f_files,
                figures.f_favail,
                self.list_errno,
                self.uuid,
                self.device,
                self.inode,
                self.lock,
                self.formatted,
            )
        except OSError as error:
            self.identity = None
            self.result = (self.result[0], step, error.errno or errno.EIO, *self.result[3:])

    def leaves_band(self) -> bool:
        """Return whether the last look found a number reached; each is reported once."""
        band, available_bytes = self.band, self.result[5]
        if band is None or not self.result[0] or band[0] < available_bytes < band[1]:
            return False
        self.band = None
        return True

    def pause_seconds(self, interval_seconds: float, before: tuple[int, int]) -> float:
        """Return the time until the next look, ``before`` being time and figure of the last one but one."""
        band = self.band
        if band is None:
            return interval_seconds
        at_ns, available_bytes = self.result[0], self.result[5]
        seconds, freed_bytes = (at_ns - before[0]) / 1e9, available_bytes - before[1]
        left_bytes = band[1] - available_bytes if freed_bytes > 0 else available_bytes - band[0]
        rate = abs(freed_bytes) / seconds if before[0] and seconds > 0 else 0.0
        return next_look_seconds(interval_seconds, left_bytes, rate)

    def full_look(self, handle: int) -> None:
        """Read mount id and place, list one entry (a dead file system refuses), ask for UUID and format."""
        fdinfo = os.open(f"/proc/self/fdinfo/{handle}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            for line in os.read(fdinfo, 4096).split(b"\n"):
                if line.startswith(b"mnt_id:"):
                    self.mount_id = int(line[7:])
        finally:
            os.close(fdinfo)
        status = os.fstat(handle)
        self.device, self.inode = status.st_dev, status.st_ino
        self.list_errno, self.uuid, self.lock, self.formatted = 0, "-", "-", "-"
        try:
            # The same directory by its descriptor: the path could lead elsewhere by now.
            readable = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                with os.scandir(readable) as entries:
                    next(entries, None)
                self.uuid = filesystem_uuid(readable)
                self.lock, self.formatted = lock_and_format(readable)
            finally:
                os.close(readable)
        except OSError as error:
            self.list_errno = error.errno or errno.EIO
        self.full_look_at = time.monotonic()


def lock_and_format(handle: int) -> tuple[str, str]:
    """Return the inode of the file that Kafka locks in a directory, and 1 if it has a ``meta.properties``.

    Both are 0 where there is no such file, and ``-`` where that can't be seen.
    """
    found = dict.fromkeys((LOCK, META_PROPERTIES), 0)
    try:
        for name in found:
            try:
                found[name] = os.stat(name, dir_fd=handle).st_ino
            except FileNotFoundError:
                continue
    except PermissionError:  # it can be listed, but not searched
        with os.scandir(handle) as entries:
            found.update((entry.name, entry.inode()) for entry in entries if entry.name in found)
    except OSError:
        return "-", "-"
    return str(found[LOCK]), "1" if found[META_PROPERTIES] else "0"


def filesystem_uuid(handle: int) -> str:
    """Return the UUID as hexadecimal digits, or ``-`` where the kernel or the file system has none."""
    try:
        answer = fcntl.ioctl(handle, FS_IOC_GETFSUUID, bytes(17))
    except OSError:
        return "-"
    return answer[1:17].hex() if answer[0] == 16 and any(answer[1:17]) else "-"


class Watcher:
    """A thread's share of the log dirs; the main thread may take all but the present one away."""

    def __init__(self, log_dirs: list[LogDir]) -> None:
        self.log_dirs = log_dirs
        self.present: LogDir | None = None


class Probe:
    """All log dirs, who watches them, and the count of ticks."""

    def __init__(self, interval_seconds: float, paths: list[bytes]) -> None:
        self.interval_seconds = interval_seconds
        self.log_dirs = [LogDir(path) for path in paths]
        self.watchers: list[Watcher] = []
        self.tick = 0

    def watch_all(self, log_dirs: list[LogDir]) -> None:
        """Start a thread that looks at these log dirs in turn, every interval."""
        watcher = Watcher(log_dirs)
        self.watchers.append(watcher)
        _thread.start_new_thread(self.watch, (watcher,))

    def watch(self, watcher: Watcher) -> None:
        """Look for ever (a thread's body)."""
        while True:
            pause_seconds = self.interval_seconds
            for log_dir in watcher.log_dirs:
                before = log_dir.result[0], log_dir.result[5]
                log_dir.busy_since_tick = self.tick
                watcher.present = log_dir
                log_dir.look()
                log_dir.topic_list.follow(self.tick)
                watcher.present = None
                late_ticks = self.tick - log_dir.busy_since_tick
                log_dir.late_ticks = late_ticks if late_ticks >= PATIENCE_TICKS else 0
                log_dir.busy_since_tick = None
                if log_dir.leaves_band():
                    os.write(1, ALARM)
                pause_seconds = min(pause_seconds, log_dir.pause_seconds(self.interval_seconds, before))
                if len(watcher.log_dirs) == 1:
                    break
            time.sleep(pause_seconds)

    def hand_over(self) -> None:
        """Give the other log dirs of a thread that is kept waiting to a new one.

        A thread that comes back at this very moment looks once more at another's log dir: no harm.
        """
        for watcher in list(self.watchers):
            present = watcher.present
            since = None if present is None else present.busy_since_tick
            others = [log_dir for log_dir in watcher.log_dirs if log_dir is not present]
            if present is not None and since is not None and others and self.tick - since >= PATIENCE_TICKS:
                watcher.log_dirs = [present]
                self.watch_all(others)

    def answer(self) -> bytes:
        """Return the lines that describe all log dirs."""
        lines = []
        for index, log_dir in enumerate(self.log_dirs):
            since = log_dir.busy_since_tick
            waited = max(log_dir.late_ticks, 0 if since is None else self.tick - since)
            topics, link = log_dir.topic_list.news(self.tick), log_dir.topic_list.link or "-"
            lines.append(" ".join(map(str, (index, waited, *log_dir.result, link, topics))))
        return "\n".join([*lines, "end\n"]).encode()

    def serve(self) -> None:
        """Answer stdin until it ends."""
        asked = b""
        next_tick = time.monotonic() + TICK_SECONDS
        while True:
            ready, _, _ = select.select([0], [], [], max(0.0, next_tick - time.monotonic()))
            now = time.monotonic()
            if now >= next_tick:
                # One tick however late: see TICK_SECONDS.
                self.tick += 1
                next_tick = now + TICK_SECONDS
                self.hand_over()
            if ready:
                part = os.read(0, 1 << 16)
                if not part:
                    return
                asked = self.take(asked + part)

    def take(self, asked: bytes) -> bytes:
        """Answer questions and take over numbers; return the beginning of a line that is not whole."""
        while asked:
            if asked[:1] == b"?":
                left = memoryview(self.answer())
                while left:
                    left = left[os.write(1, left) :]
                asked = asked[1:]
                continue
            line, newline, rest = asked.partition(b"\n")
            if not newline:
                break
            numbers = [int(number) for number in line[1:].split()]
            for log_dir, low, high, most in zip(
                self.log_dirs, numbers[::3], numbers[1::3], numbers[2::3], strict=True
            ):
                log_dir.band = (low, high) if low < high else None
                log_dir.topic_list.ask(most)
            asked = rest
        return asked


def main() -> None:
    """Run until stdin ends."""
    _thread.stack_size(256 * 1024)
    probe = Probe(float(sys.argv[1]), [os.fsencode(path) for path in sys.argv[2:]])
    try:
        probe.watch_all(probe.log_dirs)
        probe.serve()
    except BrokenPipeError:
        pass
    except Exception:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    # Not sys.exit(): the interpreter would tidy up while a disk may hold threads.
    os._exit(0)


if __name__ == "__main__":
    main()
