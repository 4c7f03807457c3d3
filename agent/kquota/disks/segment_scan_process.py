"""The program that looks at segments, in a process of its own because a hung disk hangs who asks it.

Run by ``segments.py`` as ``python -I -S segments_process.py FILES_PER_SECOND LOG_DIR …`` (0 is without a
bound); besides ``topic_list.py`` it uses the standard library alone, and imports little, to stay small. It
gives way to others at the processor and the disk, and reads names, sizes, times and the last entry of
time indexes, never a record.

It writes lines of JSON, and holds one partition at a time. The first is a list of the topics. Then comes one
for each partition: number of the log dir, topic, partition, state, bytes of removed files, bytes of files of
no segment, start of the log or null, high watermark or null, and its segments, each with base offset, bytes
on the disk, largest timestamp in milliseconds, and bytes of its log. The last line is the number of files,
and of time indexes that could not be read. An object {"problem": sentence} in its place says why there is
no end.
"""

import json
import os
import sys
import time

if __name__ == "__main__":
    # -I leaves out the folder of the package that this file is a part of.
    sys.path.append(__file__.rpartition("/kquota/")[0])

from kquota.disks.topic_list import DIGITS, FUTURE_SUFFIX, ID_LENGTH, METADATA_TOPIC, topic_of

OFFSET_LENGTH = 20
LOG, TIME_INDEX, REMOVED = ".log", ".timeindex", ".deleted"
SEGMENT_FILES = (LOG, ".index", TIME_INDEX, ".txnindex", ".snapshot")
STATES = {FUTURE_SUFFIX: "future", "-stray": "stray", "-delete": "deleted"}
START_CHECKPOINT, WATERMARK_CHECKPOINT = "log-start-offset-checkpoint", "replication-offset-checkpoint"
# Kafka writes the watermarks this often (replica.high.watermark.checkpoint.interval.ms); a look takes longer.
WATERMARK_SECONDS = 5.0
# A time index has entries of a timestamp in 8 bytes, and an offset in 4.
ENTRY_BYTES, TIMESTAMP_BYTES = 12, 8
BLOCK_BYTES = 512
# Shorter sleeps would cost more than the files between them.
REST_SECONDS = 0.25


def partition_of(directory: str) -> tuple[str, int, str] | None:
    """Return topic, partition and state by the name of a directory; None where it is no partition's."""
    name, state = directory, "log"
    for suffix, meaning in STATES.items():
        if directory.endswith(suffix):
            start = len(directory) - len(suffix) - ID_LENGTH
            if directory[start - 1 : start] == ".":
                name, state = directory[: start - 1], meaning
    topic = topic_of(name)
    if not topic or topic == METADATA_TOPIC:
        return None
    return topic, int(name.rpartition("-")[2]), state


def newest_ms(name: str, directory: int, size_bytes: int) -> int:
    """Return the timestamp of the last entry of a time index of this size, or 0 for none.

    The index of the active segment has its full length from the beginning; the rest of it are zeros.

    Raises:
        OSError: it can't be read.
    """
    low, high = 0, size_bytes // ENTRY_BYTES
    if not high:
        return 0
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        last = os.pread(file, ENTRY_BYTES, (high - 1) * ENTRY_BYTES)
        if not any(last):
            last = b""
            while low < high:
                middle = (low + high) // 2
                entry = os.pread(file, ENTRY_BYTES, middle * ENTRY_BYTES)
                if any(entry):
                    low, last = middle + 1, entry
                else:
                    high = middle
        return max(int.from_bytes(last[:TIMESTAMP_BYTES], "big", signed=True), 0)
    finally:
        os.close(file)


def offsets_of(log_dir: str, checkpoint: str) -> dict[str, int]:
    """Return the offsets that Kafka has noted in a checkpoint, by the name of a partition's directory."""
    offsets = {}
    try:
        with open(log_dir + "/" + checkpoint, encoding="utf-8") as lines:  # noqa: PTH123 - pathlib is large
            for line in lines:
                parts = line.split()
                if len(parts) == 3:  # topic, partition, offset
                    offsets[parts[0] + "-" + parts[1]] = int(parts[2])
    except (OSError, ValueError):
        return offsets
    return offsets


def written(active: tuple[int, int, int, int], logs: dict[str, os.stat_result]) -> tuple[int, int, int, int]:
    """Return the active segment with the bytes of its log that are on the disk.

    With ``preallocate=true`` the file has the length of a full segment from the beginning, with a hole.
    """
    base, size_bytes, newest, log_bytes = active
    on_disk_bytes = logs[f"{base:0{OFFSET_LENGTH}}"].st_blocks * BLOCK_BYTES
    return base, size_bytes, newest, min(log_bytes, on_disk_bytes)


class Look:
    """One look at all log dirs, within a budget of files per second."""

    def __init__(self, files_per_second: float) -> None:
        self.files_per_second = files_per_second
        self.files = self.unreadable = self.paid_files = 0
        self.paid_until = time.monotonic()

    def rest(self) -> None:
        """Sleep until the files that were looked at are paid for, once that is worth a sleep."""
        if not self.files_per_second:
            return
        due = self.paid_until + (self.files - self.paid_files) / self.files_per_second
        now = time.monotonic()
        if due - now >= REST_SECONDS:
            time.sleep(due - now)
            self.paid_files, self.paid_until = self.files, due
        elif due < now:  # it was slower than it may be: nothing is saved up
            self.paid_files, self.paid_until = self.files, now

    def partition(self, path: str) -> tuple[int, int, list[tuple[int, int, int, int]]]:
        """Return the bytes of removed files, of those of no segment, and the segments of a directory.

        Raises:
            OSError: it can't be listed, as when it was deleted meanwhile.
        """
        removed, other = 0, 0
        sizes: dict[str, int] = {}
        logs: dict[str, os.stat_result] = {}
        index_bytes: dict[str, int] = {}
        segments = []
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    self.files += 1
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:  # deleted meanwhile
                        continue
                    name, size = entry.name, status.st_blocks * BLOCK_BYTES
                    offset, suffix = name[:OFFSET_LENGTH], name[OFFSET_LENGTH:]
                    if suffix in SEGMENT_FILES:
                        sizes[offset] = sizes.get(offset, 0) + size
                        if suffix == LOG:
                            logs[offset] = status
                        elif suffix == TIME_INDEX:
                            index_bytes[offset] = status.st_size
                    elif name.endswith(REMOVED):
                        removed += size
                    else:
                        other += size
            for offset in sorted(sizes):
                log = logs.get(offset)
                if log is None or offset.strip(DIGITS):
                    other += sizes[offset]
                    continue
                try:
                    newest = newest_ms(offset + TIME_INDEX, directory, index_bytes.get(offset, 0))
                except FileNotFoundError:
                    newest = 0
                except OSError:
                    self.unreadable += 1
                    newest = 0
                segments.append((int(offset), sizes[offset], newest or int(log.st_mtime * 1000), log.st_size))
        finally:
            os.close(directory)
        return removed, other, [*segments[:-1], *(written(one, logs) for one in segments[-1:])]

    def log_dir(self, number: int, log_dir: str, partitions: list[str]) -> None:
        """Write a line for each of these directories."""
        starts, watermarks = offsets_of(log_dir, START_CHECKPOINT), dict[str, int]()
        read_at = -WATERMARK_SECONDS
        for directory in partitions:
            named = partition_of(directory)
            assert named is not None
            try:
                removed, other, segments = self.partition(log_dir + "/" + directory)
            except OSError:
                continue
            # After the segments: older watermarks would be below segments that were rolled in the meantime.
            if time.monotonic() - read_at >= WATERMARK_SECONDS:
                watermarks, read_at = offsets_of(log_dir, WATERMARK_CHECKPOINT), time.monotonic()
            offsets = starts.get(directory), watermarks.get(directory)
            say([number, *named, removed, other, *offsets, segments])
            self.rest()


def say(line: object) -> None:
    """Write a line, at once: the owner reads while this goes on."""
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Look at the log dirs that are named as arguments."""
    look, log_dirs = Look(float(sys.argv[1])), sys.argv[2:]
    try:
        found = []
        for log_dir in log_dirs:
            with os.scandir(log_dir) as entries:
                found.append(sorted(entry.name for entry in entries if partition_of(entry.name)))
        named = [partition_of(directory) for directories in found for directory in directories]
        say(sorted({one[0] for one in named if one is not None}))
        for number, log_dir in enumerate(log_dirs):
            look.log_dir(number, log_dir, found[number])
        say([look.files, look.unreadable])
    except OSError as error:
        say({"problem": f"{error.filename}: {error.strerror}"})
    except BrokenPipeError:
        pass


if __name__ == "__main__":
    main()
