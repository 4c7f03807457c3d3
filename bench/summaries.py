"""Rows that a reader decides by: many pauses and changes of the factor in one each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import TypeVar

from bench.claims import HELD_RATIO, SMALLEST_AIMED_FACTOR
from bench.figures import Paused, Throttled

Measured = TypeVar("Measured")
Key = tuple[str, str, bool]
SHORT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Pauses:
    """All short or long pauses with one system and one kind of client, whatever the connections and acks."""

    system: str
    client: str
    long: bool
    pauses: tuple[Paused, ...]
    """Those that began while data flowed: the others show nothing."""

    @property
    def seconds(self) -> str:
        """How long they were, for people."""
        lengths = [pause.seconds for pause in self.pauses]
        return " to ".join(f"{length:g}" for length in dict.fromkeys((min(lengths), max(lengths))))

    @property
    def landed_ratio(self) -> tuple[float, float]:
        """Landed bytes ÷ those without a pause: the median and the largest."""
        ratios = [pause.offered_ratio or 0.0 for pause in self.pauses]
        return median(ratios), max(ratios)

    @property
    def late_bytes(self) -> int:
        """The most that landed after the first half second."""
        return max(pause.landed_late_bytes for pause in self.pauses)

    @property
    def not_held(self) -> int:
        """Pauses that held no producer."""
        return sum((pause.offered_ratio or 0.0) > HELD_RATIO for pause in self.pauses)

    @property
    def back_seconds(self) -> tuple[float | None, float | None]:
        """The slowest client's return: the median and the largest; None where it was not seen."""
        slowest = [pause.slowest_resumed_seconds for pause in self.pauses]
        known = [inf if seconds is None else seconds for seconds in slowest]
        middle, worst = median(known), max(known)
        return middle if middle < inf else None, worst if worst < inf else None

    @property
    def failed_records(self) -> int:
        """Records that a producer gave up."""
        return sum(pause.failed_records for pause in self.pauses)


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes to factors of one range with one system and one kind of client."""

    system: str
    client: str
    small: bool
    """Whether the factors are below the smallest one that the aims name."""
    changes: tuple[Throttled, ...]

    @property
    def factors(self) -> str:
        """For people."""
        return f"{'below' if self.small else 'from'} {SMALLEST_AIMED_FACTOR:g}"

    @property
    def target_ratios(self) -> list[float]:
        """Landed bytes ÷ the target, in order."""
        return sorted(change.mean_ratio for change in self.changes if change.mean_ratio is not None)

    @property
    def silence_seconds(self) -> list[float]:
        """The longest silence of any connection, in order."""
        return sorted(change.longest_silence_seconds for change in self.changes)

    @property
    def fairness(self) -> list[float]:
        """Jain's index, in order."""
        return sorted(change.fairness for change in self.changes if change.fairness is not None)


def pauses(paused: Iterable[Paused]) -> Iterator[Pauses]:
    """The rows of the table of pauses, without those that began with nothing flowing."""
    flowing = [pause for pause in paused if pause.offered_ratio is not None]
    for (system, client, long), some in _grouped(
        flowing, lambda pause: (pause.case.system, pause.case.client.value, pause.seconds > SHORT_SECONDS)
    ):
        yield Pauses(system, client, long, some)


def changes(throttled: Iterable[Throttled]) -> Iterator[Changes]:
    """The rows of the table of THROTTLE."""
    for (system, client, small), some in _grouped(
        throttled,
        lambda change: (
            change.case.system,
            change.case.client.value,
            change.factor < SMALLEST_AIMED_FACTOR,
        ),
    ):
        yield Changes(system, client, small, some)


def _grouped(
    figures: Iterable[Measured], key: Callable[[Measured], Key]
) -> Iterator[tuple[Key, tuple[Measured, ...]]]:
    groups: dict[Key, list[Measured]] = {}
    for figure in figures:
        groups.setdefault(key(figure), []).append(figure)
    yield from ((of_group, tuple(some)) for of_group, some in groups.items())
