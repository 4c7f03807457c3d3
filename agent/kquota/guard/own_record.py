"""This broker's usage record: observed volumes, the limits that hold for them, and their latches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction

from kquota.disks.fill_rates import Fill
from kquota.disks.observation import VolumeObservation
from kquota.policy.affected_topics import with_topics_at_stake
from kquota.policy.inodes import Inodes
from kquota.policy.latch import latch_volumes
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import Volume, VolumeStatus
from kquota.settings.model import LimitsSection


def own_record(
    observed: Iterable[VolumeObservation],
    limits: LimitsSection,
    previous: Iterable[Volume],
    *,
    release_margin: Fraction,
    snapshot_at: datetime,
    cluster_id: str | None = None,
    instance_id: str | None = None,
    fills: Mapping[str, Fill] | None = None,
    fill_floor_bytes_per_second: int = 0,
) -> UsageRecord:
    """Compose the record of this broker; ``previous`` are the volumes as last published.

    ``fills`` are the rates by volume id, of the volumes whose rates are known; the floor is the least that a
    volume is reported to fill at most.
    """
    fills = fills or {}
    fresh = [_volume(v, limits, fills.get(v.volume_id), fill_floor_bytes_per_second) for v in observed]
    return UsageRecord(
        snapshot_at=snapshot_at,
        volumes=with_topics_at_stake(latch_volumes(previous, fresh, release_margin)),
        hard=limits.hard,
        soft=limits.soft,
        cluster_id=cluster_id,
        instance_id=instance_id,
    )


def _volume(
    observed: VolumeObservation, limits: LimitsSection, fill: Fill | None, floor_bytes_per_second: int
) -> Volume:
    rate = None if fill is None else fill.rate.bytes_per_second
    ceiling = None if fill is None else max(floor_bytes_per_second, fill.fastest.bytes_per_second)
    own = limits.own(observed.limits_path)
    of_inodes, inodes = limits.inodes.limits, observed.inodes
    return Volume(
        name=observed.name,
        capacity_bytes=observed.capacity_bytes or 0,
        consumed_bytes=observed.consumed_bytes or 0,
        limits=limits.pair(observed.limits_path),
        volume_id=observed.volume_id,
        log_dirs=observed.log_dirs,
        mount_point=observed.mount_point,
        status=observed.status,
        role=observed.role,
        own_hard=own.hard,
        own_soft=own.soft,
        fill_bytes_per_second=None if rate is None else round(rate),
        fill_ceiling_bytes_per_second=ceiling,
        # of a volume that can't be read the list may be an old one
        topics=None if observed.status is VolumeStatus.FAILED else observed.topics,
        inodes=None if of_inodes is None or inodes is None else Inodes(*inodes, of_inodes),
    )
