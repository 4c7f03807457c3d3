"""The course of a trial in samples, and the figures taken from it. Pure.

Times are CLOCK_MONOTONIC, in seconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

RESUMED_RATIO = 0.5
RESUMED_MEAN_SECONDS = 2.0
HELD_RATIO = 0.02
"""Producers are held from the moment after which at most this share of their rate before lands."""
HELD_FOR_SECONDS = 5.0
"""And that has to be seen for at least this long."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The state at one moment; byte counts grow from the beginning."""

    at: float
    left_bytes: int
    """Free on the volume that fills, for an ordinary user."""
    acknowledged: tuple[int, ...]
    """Bytes that each producer has had acknowledged."""
    consumed: int
    """Bytes that the consumer has read."""


Count = Callable[[Sample], int]


def acknowledged_to(producers: Iterable[int]) -> Count:
    """Return the count of what these producers, by their places, have had acknowledged."""
    places = tuple(producers)
    return lambda sample: sum(sample.acknowledged[place] for place in places)


def consumed(sample: Sample) -> int:
    """Return the count of the consumer."""
    return sample.consumed


class Course:
    """Samples in the order of time."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = tuple(samples)
        self._times = [sample.at for sample in self.samples]

    def between(self, start: float, end: float) -> tuple[Sample, ...]:
        """Return the samples from one moment to another."""
        return self.samples[bisect_left(self._times, start) : bisect_right(self._times, end)]

    def rate(self, count: Count, start: float, end: float) -> float:
        """Return the mean rate between two moments, in bytes per second.

        Raises:
            ValueError: there are fewer than two samples: it is not known.
        """
        inside = self.between(start, end)
        if len(inside) < 2:
            raise ValueError(f"{len(inside)} samples in {end - start:.1f} s")
        first, last = inside[0], inside[-1]
        return (count(last) - count(first)) / (last.at - first.at)

    def share(self, count: Count, before: tuple[float, float], during: tuple[float, float]) -> float | None:
        """Return the rate in one time as a share of that in a time before; None if that was nothing."""
        rate_before = self.rate(count, *before)
        return self.rate(count, *during) / rate_before if rate_before > 0 else None

    def passed_at(self, left_bytes: int, since: float) -> float | None:
        """Return the first moment from `since` at which no more than this was left; None: never."""
        for sample in self.samples[bisect_left(self._times, since) :]:
            if sample.left_bytes <= left_bytes:
                return sample.at
        return None

    def held_seconds(self, count: Count, crossed: float, end: float, rate_before: float) -> float | None:
        """Return the time from the crossing until producers were held, to the end; None: they were not.

        Held: from then to the end at most HELD_RATIO of their rate before landed.
        """
        inside = self.between(crossed, end)
        if not inside:
            return None
        last = inside[-1]
        for sample in inside:
            remaining_seconds = last.at - sample.at
            if remaining_seconds < HELD_FOR_SECONDS:
                return None
            if count(last) - count(sample) <= HELD_RATIO * rate_before * remaining_seconds:
                return sample.at - crossed
        return None

    def overshoot_bytes(self, hard_left_bytes: int, crossed: float, end: float) -> int:
        """Return how much the volume took in beyond its limit until the end.

        Where a file of the suite made the volume cross, its part beyond the limit is left out: the first
        sample after the crossing has it already.
        """
        inside = self.between(crossed, end)
        if not inside:
            return 0
        from_bytes = min(hard_left_bytes, inside[0].left_bytes)
        return max(0, from_bytes - min(sample.left_bytes for sample in inside))

    def resumed_seconds(
        self, wanted: Iterable[tuple[Count, float]], freed: float, end: float
    ) -> float | None:
        """Return the time until the slowest producer is back, to the end; None: one of them was not.

        Each is given with its rate before, in bytes per second. It is back when it has RESUMED_RATIO of that
        over the RESUMED_MEAN_SECONDS that follow its first byte.
        """
        slowest = 0.0
        for count, rate_before in wanted:
            seconds = self._resumed(count, rate_before, freed, end)
            if seconds is None:
                return None
            slowest = max(slowest, seconds)
        return slowest

    def _resumed(self, count: Count, rate_before: float, freed: float, end: float) -> float | None:
        inside = self.between(freed, end)
        later = 0
        for sample, following in pairwise(inside):
            while later < len(inside) and inside[later].at - sample.at < RESUMED_MEAN_SECONDS:
                later += 1
            if later == len(inside):
                return None
            passed_seconds = inside[later].at - sample.at
            enough = count(inside[later]) - count(sample) >= RESUMED_RATIO * rate_before * passed_seconds
            # From its first byte on: a mean alone would count it back while it is still silent.
            if enough and count(following) > count(sample):
                return following.at - freed
        return None
