"""Sampling of log dirs that a hung file system can't hang.

A process of its own does the looking (``probe_process.py``); here is its owner, which never touches the
disks. If that process dies it is started again; if it can't be killed, because the kernel holds one of
threads in a disk request, it is abandoned, and only a few may be.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Self
from uuid import UUID

from kquota.disks import probe_process
from kquota.disks.topic_list import ALARM
from kquota.policy.topic_scope import MAX_TOPICS, Topics

# The probe answers within a millisecond; this long is waited once, then never until it has answered.
_ANSWER_WAIT_SECONDS = 0.25
_RESTART_PAUSE_SECONDS = 1.0
_EXIT_WAIT_SECONDS = 0.5
# One slow answer is no silence, however long the agent itself was stopped in between.
_SILENT_LOOKS = 3


@dataclass(frozen=True, slots=True)
class LogDirLook:
    """The latest look at one log dir.

    ``waiting_seconds`` is how long the present look has had no answer, or the last one had none if that was
    longer (0 while all is well).
    ``failed_step`` ("open" or "statvfs") and ``failed_errno`` describe a look that failed. The rest is from
    the last look that succeeded at ``sampled_at_monotonic`` (None: none yet): the id of the mount that
    answered, the file system's capacity, the bytes available to an unprivileged user, all inodes and those
    available to it (0 where the file system does not count them), the errno of listing
    the directory (0: listed), the file system's UUID if the kernel provides it, the directory's device and
    inode, the inode of the file that Kafka locks in it (0: there is none) and whether Kafka has formatted the
    directory (both None where that can't be seen). ``link`` is a partition in it that is a symbolic link to
    another file system, None for none. ``topics`` are those
    that clients can write to there, sorted; None where they are not asked for, not all known, or too many.
    """

    log_dir: str
    waiting_seconds: float = 0.0
    failed_step: str | None = None
    failed_errno: int = 0
    sampled_at_monotonic: float | None = None
    mount_id: int = 0
    capacity_bytes: int = 0
    available_bytes: int = 0
    inodes: int = 0
    available_inodes: int = 0
    list_errno: int = 0
    fs_uuid: str | None = None
    device: int = 0
    inode: int = 0
    lock_inode: int | None = None
    formatted: bool | None = None
    link: str | None = None
    topics: Topics | None = None

    @property
    def consumed_bytes(self) -> int:
        """The capacity less the space available, which no file system reports as more than its capacity."""
        return self.capacity_bytes - min(self.available_bytes, self.capacity_bytes)


class LogDirSampler:
    """Samples log dirs every ``interval_seconds`` in a process of its own.

    ``hang_seconds`` is how long that process may leave requests unanswered before it is replaced, and
    ``abandoned_limit`` how many processes that can't be killed may be left behind before none is started.
    """

    def __init__(
        self,
        log_dirs: Sequence[str],
        *,
        interval_seconds: float = 0.2,
        hang_seconds: float = 5.0,
        abandoned_limit: int = 4,
    ) -> None:
        if interval_seconds <= 0 or hang_seconds <= 0:
            raise ValueError(f"interval ({interval_seconds} s) and hang ({hang_seconds} s) must be above 0")
        self._hang_seconds = hang_seconds
        self._interval_seconds = interval_seconds
        self._abandoned_limit = abandoned_limit
        self._looks = {log_dir: LogDirLook(log_dir) for log_dir in log_dirs}
        self._process: subprocess.Popen[bytes] | None = None
        self._killed: list[subprocess.Popen[bytes]] = []
        self._buffer = b""
        self._wanted: tuple[Mapping[str, tuple[int, int]], frozenset[str]] | None = None
        self._asked_at: float | None = None
        self._answered_at = time.monotonic()
        self._unanswered_looks = 0
        self._started_at: float | None = None
        self.restarts = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the probe process; does nothing while there is one. Raises OSError if none can be started."""
        if self._process is not None:
            return
        command = [sys.executable, "-I", "-S", probe_process.__file__, str(self._interval_seconds)]
        # The process must not hold the agent's own directory busy, nor its environment's secrets.
        process = subprocess.Popen(
            [*command, *self._looks],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env={},
            start_new_session=True,
        )
        for pipe in _pipes(process):
            os.set_blocking(pipe.fileno(), False)
        self._process, self._buffer, self._asked_at = process, b"", None
        self._wanted = None
        self._started_at = time.monotonic()

    @property
    def process_id(self) -> int | None:
        """The probe process's id, or None while there is none."""
        return None if self._process is None else self._process.pid

    @property
    def abandoned(self) -> int:
        """How many killed processes are still held by the kernel."""
        self._killed = [process for process in self._killed if process.poll() is None]
        return len(self._killed)

    @property
    def silence(self) -> str | None:
        """Why no sample can be trusted at all, or None: the probe process itself doesn't answer."""
        if (
            self._unanswered_looks < _SILENT_LOOKS
            or time.monotonic() - self._answered_at < self._hang_seconds
        ):
            return None
        if self._process is None and self.abandoned >= self._abandoned_limit:
            return f"no probe process: {self.abandoned} earlier ones are held by disks that don't answer"
        return f"the probe process has not answered for {self._hang_seconds:g} s"

    def latest(self) -> Mapping[str, LogDirLook]:
        """Return the latest look at each log dir; never waits for a disk (0.25 s at the very most).

        Starts the probe process again where it has died or gone silent.
        """
        answered = self._process is not None and self._exchange(self._process)
        if answered:
            self._answered_at, self._unanswered_looks = time.monotonic(), 0
        else:
            self._unanswered_looks += 1
            self._revive()
        return dict(self._looks)

    def wake_at(self, bands: Mapping[str, tuple[int, int]], named: frozenset[str] = frozenset()) -> None:
        """Have ``alarm`` readable as soon as the bytes available to a log dir leave its band.

        A band is the figures below and above which it is left, those included; a log dir without one never
        wakes. It counts once: call this after each `latest`, which ends an alarm. The topics of the log dirs
        that are ``named`` are found, and each change of them is an alarm, too.
        """
        if self._process is None or self._asked_at is not None or (bands, named) == self._wanted:
            return
        line = "="
        for log_dir in self._looks:
            low, high = bands.get(log_dir, (0, 0))
            line += f" {low} {high} {MAX_TOPICS if log_dir in named else 0}"
        line += "\n"
        # All earlier questions are answered, so the pipe is empty and has room for the whole line. Where the
        # process has died, the next question finds that out.
        with contextlib.suppress(OSError):
            os.write(_pipes(self._process)[0].fileno(), line.encode())
        self._wanted = dict(bands), named

    @property
    def alarm(self) -> int | None:
        """The descriptor that is readable once a band has been left, or None while nothing can wake."""
        return (
            None if self._process is None or self._asked_at is not None else _pipes(self._process)[1].fileno()
        )

    def replace(self) -> None:
        """Give up the present process, for instance for threads that wait in a file system no longer mounted.

        Does nothing where that could leave too many processes behind for another one to be started: the
        present one still serves the other log dirs.
        """
        if self._process is not None and self.abandoned + 1 < self._abandoned_limit:
            self._abandon(self._process)
            self._process = None
            self._revive()

    def close(self) -> None:
        """End the probe process; returns soon even where the kernel holds it (see ``abandoned``)."""
        process, self._process = self._process, None
        if process is not None:
            _pipes(process)[0].close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_WAIT_SECONDS)
            self._abandon(process)
        for killed in self._killed:
            with contextlib.suppress(subprocess.TimeoutExpired):
                killed.wait(_EXIT_WAIT_SECONDS)

    def _abandon(self, process: subprocess.Popen[bytes]) -> None:
        self._looks = {log_dir: replace(look, topics=None) for log_dir, look in self._looks.items()}
        for pipe in _pipes(process):
            pipe.close()
        if process.poll() is None:
            process.kill()
            self._killed.append(process)

    def _revive(self) -> None:
        """Start a process where there is none, and replace one that is dead or silent, not too often."""
        now = time.monotonic()
        process = self._process
        if process is not None:
            dead = process.poll() is not None
            silent = (
                self._asked_at is not None
                and now - self._asked_at >= self._hang_seconds
                and self._unanswered_looks >= _SILENT_LOOKS
            )
            if not dead and not silent:
                return
            self._abandon(process)
            self._process = None
        if self._started_at is not None and now - self._started_at < _RESTART_PAUSE_SECONDS:
            return
        if self.abandoned < self._abandoned_limit:
            self.restarts += 1
            self._started_at = now
            # No memory, no process slots: the next look tries again, and silence is reported meanwhile.
            with contextlib.suppress(OSError):
                self.start()

    def _exchange(self, process: subprocess.Popen[bytes]) -> bool:
        """Ask for the state, unless that has been asked already, and read the answer if it is there."""
        question, answers = _pipes(process)
        wait_seconds = 0.0
        try:
            if self._asked_at is None:
                os.write(question.fileno(), b"?")
                self._asked_at = time.monotonic()
                wait_seconds = _ANSWER_WAIT_SECONDS
            deadline = time.monotonic() + wait_seconds
            while not self._buffer.endswith(b"end\n"):
                if not _is_readable(answers, max(0.0, deadline - time.monotonic())):
                    return False
                part = os.read(answers.fileno(), 1 << 16)
                if not part:
                    return False
                self._buffer += part
                if ALARM in self._buffer:
                    self._buffer, self._wanted = self._buffer.replace(ALARM, b""), None
            answer, self._buffer, self._asked_at = self._buffer, b"", None
            self._take(answer)
        except (OSError, ValueError):
            # A broken pipe, or an answer of another form: this process is of no use any more.
            process.kill()
            return False
        return True

    def _take(self, answer: bytes) -> None:
        lines = answer.decode("ascii").splitlines()[:-1]
        looks = {}
        for line, (log_dir, before) in zip(lines, self._looks.items(), strict=True):
            looks[log_dir] = _parse_look(line, before)
        self._looks = looks


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise TypeError("the probe process has been started without pipes")
    return process.stdin, process.stdout


def _is_readable(pipe: IO[bytes], wait_seconds: float) -> bool:
    # Not select(): in a process with many files it refuses descriptors from 1024 on.
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(wait_seconds * 1000))


def _topics(field: str) -> Topics | None:
    return tuple(field[1:].split(",")) if field[1:] else () if field == ":" else None


def _parse_look(line: str, before: LogDirLook) -> LogDirLook:
    """Read one line of the probe's answer; values that it has not found yet stay as they were ``before``."""
    fields = line.split(" ")
    _, waited, sampled, step, failed, mount_id, capacity, available, *rest = fields
    inodes, available_inodes, listed, uuid, device, inode, lock, formatted, link, topics = rest
    look = LogDirLook(
        log_dir=before.log_dir,
        waiting_seconds=int(waited) * probe_process.TICK_SECONDS,
        failed_step=None if step == "-" else step,
        failed_errno=int(failed),
        sampled_at_monotonic=int(sampled) / 1e9,
        mount_id=int(mount_id),
        capacity_bytes=int(capacity),
        available_bytes=int(available),
        inodes=int(inodes),
        available_inodes=int(available_inodes),
        list_errno=int(listed),
        fs_uuid=None if uuid == "-" else str(UUID(uuid)),
        device=int(device),
        inode=int(inode),
        lock_inode=None if lock == "-" else int(lock),
        formatted=None if formatted == "-" else formatted == "1",
        link=None if link == "-" else link,
        topics=before.topics if topics == "=" else _topics(topics),
    )
    if int(sampled):
        return look
    has_answered = look.failed_step is not None
    return replace(
        before,
        # A disk that an earlier process waited for is not well because a new one has just begun to wait.
        waiting_seconds=look.waiting_seconds
        if has_answered
        else max(look.waiting_seconds, before.waiting_seconds),
        # A process just started knows no errors yet: neither may it wipe those of the one before.
        failed_step=look.failed_step or before.failed_step,
        failed_errno=look.failed_errno or before.failed_errno,
        topics=look.topics,
    )
