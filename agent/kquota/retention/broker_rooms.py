"""The room that other brokers have for replicas, by their last reports."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from kquota.policy.events import BrokerOrder
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus

MOST_BROKERS = 30
"""Of a large cluster, only those with the most room are looked at."""


def broker_rooms(
    view: ClusterView, brokers: Iterable[int], now: datetime, staleness: timedelta
) -> dict[int, int]:
    """Return the bytes to the soft limit of the fullest volume of each broker that may take replicas, the
    roomiest brokers first.

    Kafka chooses the log dir on another broker, so the fullest volume counts. A broker is left out that has
    no fresh report, a volume that has failed, can't be judged or is short of inodes, or an operator's order.
    """
    ordered = set[int]().union(*(view.brokers_under(order, now) for order in BrokerOrder))
    found = {}
    for broker_id in sorted(set(brokers) - ordered):
        record = view.record_of(broker_id, now)
        if isinstance(record, UsageRecord) and now - record.snapshot_at <= staleness:
            room_bytes = _room_bytes(record.volumes)
            if room_bytes is not None:
                found[broker_id] = room_bytes
    return dict(sorted(found.items(), key=lambda one: -one[1])[:MOST_BROKERS])


def _room_bytes(volumes: Iterable[Volume]) -> int | None:
    rooms = []
    for volume in volumes:
        if volume.role is not VolumeRole.DATA:
            continue
        if volume.limits is None or volume.latched or volume.status is not VolumeStatus.OK:
            return None
        if volume.is_short_of_inodes:
            return None
        soft_bytes = volume.limits.bounds(volume.capacity_bytes).soft_bytes
        rooms.append(math.floor(soft_bytes) - volume.consumed_bytes)
    return min(rooms, default=None)
