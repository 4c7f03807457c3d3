"""The hard-breach latch, kept by the broker that owns the volume and published with its record.

A latch belongs to a volume id and to its limits: it ends with a new volume or new limits. It holds on while
bytes or inodes are short.
Because it is read back from the topic, hysteresis survives restarts and is the same for every reader.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from kquota.policy.volume import Volume, VolumeStatus


def latch_volumes(
    previous: Iterable[Volume], fresh: Iterable[Volume], release_margin: Fraction
) -> tuple[Volume, ...]:
    """Return the fresh volumes with their latches set, kept or released.

    Args:
        previous: the volumes as last published (or read back after a restart).
        fresh: the volumes as just observed, without latches.
        release_margin: headroom (0..1) above which a latch is released.
    """
    latched = [volume for volume in previous if volume.latched]
    return tuple(_latch(volume, latched, release_margin) for volume in fresh)


def _latch(volume: Volume, latched: list[Volume], release_margin: Fraction) -> Volume:
    if volume.limits is None:
        return volume
    was_latched = any(_same(volume, other) for other in latched)
    if volume.status is not VolumeStatus.OK:
        # its figures are old, or no longer matter: nothing can be learnt from them
        return volume._replace(latched=was_latched)
    bounds, inodes = volume.limits.bounds(volume.capacity_bytes), volume.inodes
    holds_on = bounds.latched(volume.consumed_bytes, was_latched=was_latched, release_margin=release_margin)
    if inodes is not None and not holds_on:
        holds_on = inodes.latched(was_latched=was_latched, release_margin=release_margin)
    return volume._replace(latched=holds_on)


def _same(volume: Volume, other: Volume) -> bool:
    if volume.limits != other.limits:
        return False
    # an agent may name no inodes, or no longer: the latch outlives that
    if volume.inodes and other.inodes and volume.inodes.limits != other.inodes.limits:
        return False
    if volume.volume_id is None and other.volume_id is None:
        return volume.name == other.name
    return volume.volume_id == other.volume_id
