"""What the scenarios measure, as values. Rates are in bytes per second."""

from __future__ import annotations

from dataclasses import dataclass

from bench.loads import Client


@dataclass(frozen=True, slots=True)
class Case:
    """Who produces at what system."""

    system: str
    client: Client
    connections: int

    def __str__(self) -> str:
        """For people."""
        return f"{self.system}, {self.client.value} x {self.connections}"


@dataclass(frozen=True, slots=True)
class Throttled:
    """One step of the throttle factor. `settled_seconds` is None where the step ended before."""

    case: Case
    factor_from: float
    factor: float
    baseline_rate: float
    settled_seconds: float | None
    longest_silence_seconds: float
    mean_ratio: float
    """Mean of the last window of 11 s ÷ target."""

    @property
    def step(self) -> str:
        """For people."""
        return f"{self.factor_from:g}→{self.factor:g}"


@dataclass(frozen=True, slots=True)
class Paused:
    """One pause. A resume that did not happen within `watched_seconds` is None."""

    case: Case
    seconds: float
    rate_before: float
    landed_bytes: int
    """From the order to pause to the order to go on."""
    landed_late_bytes: int
    """Of these, what landed after the first half second."""
    landed_by_connection_bytes: tuple[int, ...]
    landed_by_fifth_bytes: tuple[int, ...]
    """The same in five equal parts of the pause."""
    resumed_seconds: tuple[float | None, ...]
    """By connection."""
    watched_seconds: float
    failed_records: int
    """Of the case's producers altogether: both pauses."""
    errors: tuple[str, ...]

    @property
    def offered_ratio(self) -> float | None:
        """What landed ÷ what would have landed without a pause.

        None where nothing flowed when the pause began: its clients were not yet back from the one before.
        """
        return None if self.rate_before <= 0 else self.landed_bytes / (self.rate_before * self.seconds)

    @property
    def first_resumed_seconds(self) -> float | None:
        """The first client's."""
        return min((value for value in self.resumed_seconds if value is not None), default=None)

    @property
    def slowest_resumed_seconds(self) -> float | None:
        """The slowest client's; None where one did not come back while it was watched."""
        known = [value for value in self.resumed_seconds if value is not None]
        return max(known) if len(known) == len(self.resumed_seconds) else None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Flat out in OPEN, in rounds that alternate with the stock broker's."""

    case: Case
    rates: tuple[float, ...]
    processor_seconds_per_gigabyte: tuple[float, ...]
    """Of the broker's process."""


@dataclass(frozen=True, slots=True)
class Results:
    """All of one run."""

    throttled: tuple[Throttled, ...] = ()
    paused: tuple[Paused, ...] = ()
    throughput: tuple[Throughput, ...] = ()
