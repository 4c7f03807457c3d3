"""Whether a process goes on growing. Pure, but for the look at a process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import psutil

# Memory of a JVM and of an interpreter settles slowly. A broker that takes over leaders gets connections.
# Other descriptors and threads do not grow. A broker has each segment open for as long as it is there, and
# gets more of them as records land: these are no leak, but one that is deleted and still open is.
_MEMORY_GROWTH_RATIO, _MEMORY_SLACK_BYTES = 1.25, 32 * 2**20
_COUNT_GROWTH_RATIO, _COUNT_SLACK = 1.1, 8
_SEGMENT = ".log"


@dataclass(frozen=True, slots=True)
class Sample:
    """One process at one moment; segments that are there are not among the descriptors."""

    memory_bytes: int
    descriptors: int
    threads: int

    @staticmethod
    def of(pid: int) -> Sample:
        """A running process now."""
        process = psutil.Process(pid)
        segments = sum(file.path.endswith(_SEGMENT) for file in process.open_files())
        return Sample(process.memory_info().rss, process.num_fds() - segments, process.num_threads())


@dataclass(frozen=True, slots=True)
class Growth:
    """The medians of a process in three parts of a campaign, of equal numbers of samples."""

    process: str
    first: Sample
    middle: Sample
    last: Sample

    @property
    def leaks(self) -> list[str]:
        """Growth after the first part, which warms caches and the compiler up; a sentence each."""
        before, after = self.middle, self.last
        found = []
        if after.memory_bytes > before.memory_bytes * _MEMORY_GROWTH_RATIO + _MEMORY_SLACK_BYTES:
            mebibytes = before.memory_bytes / 2**20, after.memory_bytes / 2**20
            found.append("memory went from {:.0f} to {:.0f} MiB".format(*mebibytes))
        for what in ("descriptors", "threads"):
            counts = getattr(before, what), getattr(after, what)
            if counts[1] > counts[0] * _COUNT_GROWTH_RATIO + _COUNT_SLACK:
                found.append(f"{what} went from {counts[0]} to {counts[1]}")
        return found


def growth(process: str, samples: Sequence[Sample]) -> Growth:
    """Divide at least one sample into the three parts."""
    third = max(1, len(samples) // 3)
    parts = samples[:third], samples[third : 2 * third] or samples[:third], samples[-third:]
    first, middle, last = (
        Sample(
            round(median(one.memory_bytes for one in part)),
            round(median(one.descriptors for one in part)),
            round(median(one.threads for one in part)),
        )
        for part in parts
    )
    return Growth(process, first, middle, last)
