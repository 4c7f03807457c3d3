"""The bytes that have landed in the log, by connection and over time, and the figures taken from them. Pure.

Each connection writes records of one size to a topic of its own, so the log end offsets, as the broker
reports them, are the bytes that landed for it, whatever its client believes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

SETTLED_MEAN_SECONDS = 5.0
"""A rate is judged over this long: shorter means are those of single requests."""
RESUMED_MEAN_SECONDS = 1.0
RESUMED_RATIO = 0.5
WITHIN_RATIO = 0.2


@dataclass(frozen=True, slots=True)
class Sample:
    """The bytes in the log at a moment between two times (CLOCK_MONOTONIC, in seconds)."""

    asked_at: float
    answered_at: float
    bytes_by_connection: tuple[int, ...]

    @property
    def at(self) -> float:
        """The middle of the two."""
        return (self.asked_at + self.answered_at) / 2

    @property
    def bytes(self) -> int:
        """Of all connections."""
        return sum(self.bytes_by_connection)


class Landed:
    """Samples in the order of time; connections are counted from 0."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = tuple(samples)
        self._asked = [sample.asked_at for sample in self.samples]
        self._answered = [sample.answered_at for sample in self.samples]

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self.samples[0].bytes_by_connection) if self.samples else 0

    def between(self, start: float, end: float) -> tuple[Sample, ...]:
        """The samples taken wholly within; bytes outside are never counted as inside."""
        return self.samples[bisect_left(self._asked, start) : bisect_right(self._answered, end)]

    def bytes(self, start: float, end: float) -> int:
        """Bytes of all connections between two times.

        Raises:
            ValueError: fewer than two samples: it is not known.
        """
        first, last = self._ends(start, end)
        return last.bytes - first.bytes

    def until(self, at: float) -> int:
        """Bytes of all connections that were known to have landed by then; 0 before the first sample."""
        answered = bisect_right(self._answered, at)
        return self.samples[answered - 1].bytes if answered else 0

    def bytes_by_connection(self, start: float, end: float) -> tuple[int, ...]:
        """The same for each connection."""
        first, last = self._ends(start, end)
        pairs = zip(first.bytes_by_connection, last.bytes_by_connection, strict=True)
        return tuple(after - before for before, after in pairs)

    def rate(self, start: float, end: float) -> float:
        """Bytes per second of all connections between two times."""
        first, last = self._ends(start, end)
        return (last.bytes - first.bytes) / (last.at - first.at)

    def longest_silence_seconds(self, start: float, end: float) -> float:
        """The longest time between two times in which some connection landed nothing."""
        inside = self.between(start, end)
        return max(
            (
                silence
                for connection in range(self.connections)
                for silence in _silences(inside, connection, start, end)
            ),
            default=end - start,
        )

    def settled_seconds(self, start: float, end: float, target: float) -> float | None:
        """Time until a mean over SETTLED_MEAN_SECONDS is within 20 % of `target` (bytes/s); None: never.

        A target of nothing can't be met within a share of it: None.
        """
        if target <= 0:
            return None
        for sample in self.between(start, end):
            if sample.asked_at + SETTLED_MEAN_SECONDS > end:
                return None
            rate = self.rate(sample.asked_at, sample.asked_at + SETTLED_MEAN_SECONDS)
            if abs(rate / target - 1) <= WITHIN_RATIO:
                return sample.at - start
        return None

    def resumed_seconds(self, start: float, end: float, rates_before: Sequence[float]) -> list[float | None]:
        """For each connection the time from `start` until it lands half its rate before again; None: never.

        Its rate is taken over the second that follows the moment. A connection that landed nothing before
        is never back: there is nothing to compare with.
        """
        inside = self.between(start, end)
        return [_resumed(inside, connection, start, rate) for connection, rate in enumerate(rates_before)]

    def rates_by_connection(self, start: float, end: float) -> tuple[float, ...]:
        """Bytes per second of each connection between two times."""
        first, last = self._ends(start, end)
        return tuple(count / (last.at - first.at) for count in self.bytes_by_connection(start, end))

    def fairness(self, start: float, end: float) -> float | None:
        """Jain's index of what the connections landed between two times; None: nothing landed."""
        counts = self.bytes_by_connection(start, end)
        squares = sum(count * count for count in counts)
        return sum(counts) ** 2 / (len(counts) * squares) if squares else None

    def _ends(self, start: float, end: float) -> tuple[Sample, Sample]:
        inside = self.between(start, end)
        if len(inside) < 2:
            raise ValueError(f"{len(inside)} samples in {end - start:.1f} s: the broker did not answer")
        return inside[0], inside[-1]


def _silences(inside: Sequence[Sample], connection: int, start: float, end: float) -> Iterator[float]:
    since = start
    for before, after in pairwise(inside):
        if after.bytes_by_connection[connection] > before.bytes_by_connection[connection]:
            yield after.at - since
            since = after.at
    yield end - since


def _resumed(inside: Sequence[Sample], connection: int, start: float, rate_before: float) -> float | None:
    later = 0
    for first, before in enumerate(inside):
        while later < len(inside) and inside[later].at - before.at < RESUMED_MEAN_SECONDS:
            later += 1
        if later == len(inside):
            return None
        count = inside[later].bytes_by_connection[connection] - before.bytes_by_connection[connection]
        enough = rate_before > 0 and count >= RESUMED_RATIO * rate_before * (inside[later].at - before.at)
        following = inside[first + 1].bytes_by_connection[connection]
        # From the first byte on: a look ahead alone would count a second too early.
        if enough and following > before.bytes_by_connection[connection]:
            return inside[first + 1].at - start
    return None
