"""How fast a volume fills, and when it will reach a limit if that goes on.

The rate is close to what an operator sees who watches a volume for some minutes: an exponentially weighted
mean of the change of the consumed bytes, over irregular intervals, in which changes older than a time
constant counts little. Deletions are part of it: a volume whose retention keeps up does not fill.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

TIME_CONSTANT_SECONDS = 300.0
# A shorter observation describes a batch rather than a rate.
MIN_SEEN_SECONDS = 30.0
# A longer gap was not observed: its change is one number, and gives no present rate.
MAX_GAP_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class FillRate:
    """The observations of one volume's consumption; times are seconds of one monotonic clock.

    ``weighted_bytes_per_second`` is the sum of the weighted rates, ``weight`` that of the weights: their
    quotient is free of the bias of a mean that starts at zero.
    """

    capacity_bytes: int
    consumed_bytes: int
    at_seconds: float
    since_seconds: float
    weighted_bytes_per_second: float = 0.0
    weight: float = 0.0

    @classmethod
    def begin(cls, capacity_bytes: int, consumed_bytes: int, at_seconds: float) -> FillRate:
        """Return the state after a first observation: no rate yet."""
        return cls(capacity_bytes, consumed_bytes, at_seconds, at_seconds)

    def after(self, capacity_bytes: int, consumed_bytes: int, at_seconds: float) -> FillRate:
        """Return the state after another observation.

        It starts again if the volume changed its size or was not observed for ``MAX_GAP_SECONDS``. An
        observation that is not later than the last one changes nothing.
        """
        seconds = at_seconds - self.at_seconds
        if seconds <= 0:
            return self
        if capacity_bytes != self.capacity_bytes or seconds > MAX_GAP_SECONDS:
            return self.begin(capacity_bytes, consumed_bytes, at_seconds)
        keep = exp(-seconds / TIME_CONSTANT_SECONDS)
        rate = (consumed_bytes - self.consumed_bytes) / seconds
        return FillRate(
            capacity_bytes,
            consumed_bytes,
            at_seconds,
            self.since_seconds,
            keep * self.weighted_bytes_per_second + (1 - keep) * rate,
            keep * self.weight + (1 - keep),
        )

    @property
    def bytes_per_second(self) -> float | None:
        """The rate, negative where the volume empties; None before ``MIN_SEEN_SECONDS`` are seen."""
        if self.at_seconds - self.since_seconds < MIN_SEEN_SECONDS:
            return None
        return self.weighted_bytes_per_second / self.weight


def seconds_until(bound_bytes: float, consumed_bytes: int, bytes_per_second: float | None) -> float | None:
    """Return in how many seconds a bound is reached at this rate: 0 if it is; None for never or unknown."""
    if consumed_bytes >= bound_bytes:
        return 0.0
    if bytes_per_second is None or bytes_per_second <= 0:
        return None
    return (bound_bytes - consumed_bytes) / bytes_per_second
