"""The range of available bytes within which a volume's state and latch stay as they are.

The probe process watches this figure alone, and wakes the agent when it leaves the range. While an agent is
gone, the plug-in looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from kquota.policy.limits import LimitPair
from kquota.policy.volume import Volume, VolumeStatus

Band = tuple[int, int]
"""The figures at which the range is left, below and above, in bytes available."""


def bands(volumes: Iterable[Volume], release_margin: Fraction) -> dict[str, Band]:
    """Return the band of each log dir on a volume that can be judged; see :func:`band`."""
    found = {}
    for volume in volumes:
        one = band(volume, release_margin)
        if one is not None:
            found.update(dict.fromkeys(volume.log_dirs, one))
    return found


def band(volume: Volume, release_margin: Fraction) -> Band | None:
    """Return the nearest figures, in bytes available, at which this volume's state or latch changes.

    Where there is none in a direction, the figure is one that no volume of this capacity has. None where the
    volume can't be judged.
    """
    if volume.limits is None or volume.status is not VolumeStatus.OK:
        return None
    below_soft, at_hard, released = _ends(volume.limits, volume.capacity_bytes, release_margin)
    never_low, never_high = -1, volume.capacity_bytes + 1
    if volume.latched:
        return never_low, min(released, never_high)
    if below_soft is None:
        return max(at_hard, never_low), never_high
    if volume.capacity_bytes - volume.consumed_bytes >= below_soft:
        return max(below_soft - 1, never_low), never_high
    return max(at_hard, never_low), min(below_soft, never_high)


def own_log_dirs(volumes: Iterable[Volume]) -> list[dict[str, object]] | None:
    """Return the log dirs of data volumes, with the bytes available at which their state changes, as JSON.

    From ``soft_available_bytes`` on a volume is OPEN, up to ``hard_available_bytes`` in PAUSE. None where a
    volume can't be judged, whose owner has to be asked, or is short of inodes, which bytes do not show.
    """
    found: list[dict[str, object]] = []
    for volume in volumes:
        if not volume.votes:
            continue
        if volume.limits is None or volume.status is not VolumeStatus.OK or volume.is_short_of_inodes:
            return None
        below_soft, at_hard, _ = _ends(volume.limits, volume.capacity_bytes, Fraction(0))
        ends = {
            "soft_available_bytes": max(at_hard + 1 if below_soft is None else below_soft, 0),
            "hard_available_bytes": max(at_hard, -1),
        }
        found += [{"log_dir": log_dir, **ends} for log_dir in volume.log_dirs]
    return found


@lru_cache(256)  # asked several times a second, and changed by operators alone
def _ends(limits: LimitPair, capacity_bytes: int, release_margin: Fraction) -> tuple[int | None, int, int]:
    """Return the least bytes available in OPEN (None: no throttle zone), the most in PAUSE, the release."""
    bounds = limits.bounds(capacity_bytes)
    at_hard = floor(capacity_bytes - bounds.hard_bytes)
    released = floor(capacity_bytes - bounds.released_below_bytes(release_margin)) + 1
    if not bounds.has_throttle_zone:
        return None, at_hard, released
    below_soft = ceil(capacity_bytes - bounds.soft_bytes)
    # Back at the soft limit always releases, whatever the margin.
    return below_soft, at_hard, min(released, below_soft)
