"""The topics that grow on a volume: a process of its own lists them, because a disk that hangs blocks its
caller.

Run as a program it adds up the sizes of the log segments by topic twice, some seconds apart, and prints what
grew as one line of JSON: {"grown_bytes": {topic: bytes}, "problem": null or a sentence}.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from kquota.disks.segment_scan_process import BLOCK_BYTES
from kquota.disks.topic_list import topic_of

SPAN_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_MAX_TOPICS = 5


@dataclass(frozen=True, slots=True)
class TopicGrowth:
    """The growth, largest first, in bytes within ``SPAN_SECONDS``; ``problem`` is the reason if unknown."""

    grown_bytes: tuple[tuple[str, int], ...] = ()
    problem: str | None = None

    def __str__(self) -> str:
        if self.problem is not None:
            return f"its topics can't be looked at ({self.problem})"
        if not self.grown_bytes:
            return "no topic on it grows: look for files that are not Kafka's"
        return "topics that grow: " + ", ".join(
            f"{topic} ({grown / 1e6 / SPAN_SECONDS:.1f} MB/s)" for topic, grown in self.grown_bytes
        )


class TopicGrowthQuestion:
    """A question under way. Never blocks; a process that does not answer in a minute is given up."""

    def __init__(self, log_dirs: Iterable[str]) -> None:
        """Ask.

        Raises:
            OSError: no process can be started.
        """
        self._deadline = time.monotonic() + _ANSWER_SECONDS
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kquota.disks.topic_growth", *log_dirs],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )

    def answer(self) -> TopicGrowth | None:
        """Return the answer once it is there."""
        if self._process.poll() is None:
            if time.monotonic() < self._deadline:
                return None
            self.close()
            return TopicGrowth(problem="the disk does not answer")
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            text = pipe.read()
        try:
            found = json.loads(text)
            grown = Counter({str(topic): int(size) for topic, size in found["grown_bytes"].items()})
            return TopicGrowth(tuple(grown.most_common(_MAX_TOPICS)), found["problem"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return TopicGrowth(problem=f"the question ended with {self._process.returncode}")

    def close(self) -> None:
        """Give up; a process that hangs in the kernel ends when it can."""
        if self._process.poll() is None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.5)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def sizes_by_topic(log_dirs: Iterable[str]) -> Counter[str]:
    """Return the bytes of all files below the partition directories, by topic.

    Raises:
        OSError: a log dir can't be listed.
    """
    sizes: Counter[str] = Counter()
    for log_dir in log_dirs:
        with os.scandir(log_dir) as entries:
            partitions = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        for partition in partitions:
            if topic := topic_of(partition.name):
                sizes[topic] += files_bytes(partition.path)
    return sizes


def files_bytes(directory: str | os.PathLike[str]) -> int:
    """Return what the files of a directory take of the disk; without those that are deleted meanwhile."""
    total = 0
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
    return total


def main() -> None:
    """Answer for the log dirs named as arguments."""
    problem, grown = None, Counter[str]()
    try:
        before = sizes_by_topic(sys.argv[1:])
        time.sleep(SPAN_SECONDS)
        grown = sizes_by_topic(sys.argv[1:]) - before
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
    print(json.dumps({"grown_bytes": dict(grown.most_common(_MAX_TOPICS)), "problem": problem}))


if __name__ == "__main__":
    main()
