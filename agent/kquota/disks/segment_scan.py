"""A look at the segments on the log dirs that a disk that hangs can't hang, one partition at a time.

``segments_process.py`` looks, and here is its owner, which never touches the disks.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from kquota.disks import segment_scan_process as segments_process
from kquota.disks.segments import PartitionOnDisk, PartitionState, Segment

FILES_PER_SECOND = 1400
"""By default: 200,000 segments with four files each take less than ten minutes (docs/bench.md)."""
# A long partition is looked at in one go, and paid for afterwards: at the slowest bound this takes a while.
SILENCE_SECONDS = 120.0
_LOOK_SECONDS = 1.0
# A process that gives way to all others needs a while on a busy host even to end.
_END_SECONDS = 10.0
_READ_BYTES = 65536
# Of coreutils and util-linux, which each Debian has; the process stays the same one. A disk serves the idle
# class when no other process has asked for a while.
_GIVING_WAY = ("nice", "-n", "19", "ionice", "-t", "-c", "idle")


class SegmentLook:
    """One look, from its beginning to its end. ``topics`` are those with a partition there, in use or not.

    ``problem`` is why it ended early, a sentence, or None; ``unreadable_indexes`` how many time indexes could
    not be read, so that the time of the last change of the segment stands for its largest timestamp.
    """

    def __init__(
        self,
        log_dirs: Sequence[str],
        *,
        files_per_second: float = FILES_PER_SECOND,
        silence_seconds: float = SILENCE_SECONDS,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin; 0 files per second is as fast as the disk allows. Once `is_over`, it ends early.

        Raises:
            OSError: no process can be started.
        """
        self.topics: tuple[str, ...] = ()
        self.problem: str | None = None
        self.files = self.unreadable_indexes = 0
        self._log_dirs = tuple(log_dirs)
        self._silence_seconds = silence_seconds
        self._is_over = is_over
        program = [*_GIVING_WAY, sys.executable, "-I", "-S", segments_process.__file__, str(files_per_second)]
        # The process must not hold the agent's own directory busy, nor its environment's secrets.
        self._process = subprocess.Popen(
            [*program, *self._log_dirs],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
        )

    @property
    def process_id(self) -> int:
        """The id of the process that looks."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; one that hangs in the kernel ends when it can."""
        if self._process.poll() is None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def partitions(self) -> Iterator[PartitionOnDisk]:
        """Yield the partitions as they are looked at: ``topics`` are known then, ``problem`` at the end."""
        for line in self._lines():
            try:
                found = json.loads(line)
                if isinstance(found, dict):
                    self.problem = str(found["problem"])
                    return
                if not found or isinstance(found[0], str):
                    self.topics = tuple(found)
                elif len(found) == 2:
                    self.files, self.unreadable_indexes = found
                    return
                else:
                    yield self._partition(found)
            except (ValueError, KeyError, TypeError, IndexError):
                self.problem = "the look at the segments gave an answer that can't be read"
                return
        if self.problem is None and not self._is_over():
            self.problem = f"the look at the segments ended with {self._process.wait()}"

    def _partition(self, found: list[Any]) -> PartitionOnDisk:
        number, topic, partition, state, removed_bytes, other_bytes, start, watermark, rows = found
        is_written = state in (PartitionState.LOG, PartitionState.FUTURE)
        last = len(rows) - 1
        return PartitionOnDisk(
            topic,
            partition,
            self._log_dirs[number],
            PartitionState(state),
            tuple(
                Segment(base, size, newest_ms, is_written and index == last, log_bytes)
                for index, (base, size, newest_ms, log_bytes) in enumerate(rows)
            ),
            removed_bytes,
            other_bytes,
            start,
            watermark,
        )

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines that the process writes, until its end, its silence, or ours."""
        assert self._process.stdout is not None
        descriptor, begun = self._process.stdout.fileno(), bytearray()
        heard_at = time.monotonic()
        while not self._is_over():
            if not select.select([descriptor], [], [], _LOOK_SECONDS)[0]:
                if time.monotonic() - heard_at > self._silence_seconds:
                    self.problem = "the disk does not answer"
                    return
                continue
            heard_at = time.monotonic()
            data = os.read(descriptor, _READ_BYTES)
            if not data:
                return
            begun += data
            *lines, begun = begun.split(b"\n")
            yield from map(bytes, lines)
