"""A volume of a silent broker: the most that it may have filled since its last report.

consumed = min(capacity, consumed then + fill ceiling · age)
"""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

from kquota.policy.limit_breaches import Basis, LimitBreach
from kquota.policy.volume import Volume

_MICROSECOND = timedelta(microseconds=1)
_LONGEST_SECONDS = 10**9  # a time that far away is no date that people need


def vote_after(volume: Volume, age: timedelta) -> LimitBreach | None:
    """Return the worst that its vote can have become at that age of its figures; it must have a ceiling."""
    now = volume.vote()
    assert volume.fill_ceiling_bytes_per_second is not None
    grown_bytes = -(-volume.fill_ceiling_bytes_per_second * (age // _MICROSECOND) // 10**6)
    consumed_bytes = min(volume.capacity_bytes, volume.consumed_bytes + grown_bytes)
    then = volume._replace(consumed_bytes=consumed_bytes).vote()
    if then is None or (now is not None and now.headroom == then.headroom):
        return now
    return then._replace(basis=Basis.BOUND)


def reaches_after(volume: Volume) -> tuple[timedelta | None, timedelta | None]:
    """Return the ages at which it can be over its soft and at its hard limit; None for never."""
    if volume.latched or volume.limits is None:
        return timedelta(0), timedelta(0)
    bounds = volume.limits.bounds(volume.capacity_bytes)
    # Limits of different types may leave no throttle zone: then the hard limit is reached first.
    first_bytes = min(bounds.soft_bytes, bounds.hard_bytes)
    return _fills_to_after(volume, first_bytes), _fills_to_after(volume, bounds.hard_bytes)


def _fills_to_after(volume: Volume, bound_bytes: Fraction) -> timedelta | None:
    rate, left_bytes = volume.fill_ceiling_bytes_per_second, bound_bytes - volume.consumed_bytes
    if left_bytes <= 0:
        return timedelta(0)
    if not rate or bound_bytes > volume.capacity_bytes:
        return None
    return timedelta(seconds=min(int(left_bytes / rate), _LONGEST_SECONDS))
