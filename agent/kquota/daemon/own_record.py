"""This broker's usage record: observed volumes, the limits that hold for them, and their latches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from kquota.core.latch import latch_volumes
from kquota.core.limits import InvalidLimit, Limit, LimitPair
from kquota.core.usage import UsageRecord, Volume, VolumeRole, VolumeStatus
from kquota.observe.observation import VolumeObservation


@dataclass(frozen=True, slots=True)
class VolumeLimits:
    """Limits of one mount point; None where the broker's own hold."""

    hard: Limit | None = None
    soft: Limit | None = None


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The limits of this broker, with overrides by mount point."""

    hard: Limit
    soft: Limit
    volumes: Mapping[str, VolumeLimits]

    def pair(self, mount_point: str) -> tuple[LimitPair, VolumeLimits]:
        """Return the limits that hold at a mount point, and its own.

        Raises:
            InvalidLimit: soft is not below hard; configuration is refused for it beforehand.
        """
        own = self.volumes.get(mount_point, VolumeLimits())
        return LimitPair(own.soft or self.soft, own.hard or self.hard), own


def own_record(
    observed: Iterable[VolumeObservation],
    limits: LimitSettings,
    previous: Iterable[Volume],
    *,
    release_margin: Fraction,
    snapshot_at: datetime,
    cluster_id: str | None = None,
    instance_id: str | None = None,
) -> UsageRecord:
    """Compose the record of this broker; ``previous`` are the volumes as last published."""
    volumes = latch_volumes(previous, (_volume(v, limits) for v in observed), release_margin)
    return UsageRecord(
        snapshot_at=snapshot_at,
        volumes=volumes,
        hard=limits.hard,
        soft=limits.soft,
        cluster_id=cluster_id,
        instance_id=instance_id,
    )


def without_throttle_zone(record: UsageRecord) -> tuple[Volume, ...]:
    """Return the volumes whose soft limit, being of another type, is not below the hard one."""
    return tuple(
        v
        for v in record.volumes
        if v.limits is not None
        and v.capacity_bytes > 0
        and not v.limits.bounds(v.capacity_bytes).has_throttle_zone
    )


def _volume(observed: VolumeObservation, limits: LimitSettings) -> Volume:
    problem, pair, own = None, None, VolumeLimits()
    try:
        pair, own = limits.pair(observed.mount_point)
    except InvalidLimit as error:
        problem = str(error)
    return Volume(
        name=observed.name,
        capacity_bytes=observed.capacity_bytes or 0,
        consumed_bytes=observed.consumed_bytes or 0,
        limits=pair,
        limits_problem=problem,
        volume_id=observed.volume_id,
        log_dirs=tuple(str(path) for path in observed.log_dirs),
        status=VolumeStatus(observed.status),
        role=VolumeRole(observed.role),
        own_hard=own.hard,
        own_soft=own.soft,
    )
