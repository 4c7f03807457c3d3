"""Replication and copies that fill a volume, measured on the directories of incomplete replicas."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

from kquota.disks.replica_dirs import ReplicaDir, copied_replicas, replica_dirs, size_in
from kquota.disks.segments import PartitionState
from kquota.kafka.admin import AdminConnection
from kquota.kafka.errors import KafkaFailure
from kquota.retention.inflow import NO_THROTTLE, THROTTLED_RATE, THROTTLED_REPLICAS, Inflow
from kquota.retention.operator_admin import lagging
from kquota.retention.relief_moves import place_of

SAMPLE_SECONDS, PATIENCE_SECONDS = 5.0, 15.0
"""The time of a sample, and that of one in which nothing came: a slow replication comes in bursts."""


def measure_inflow(
    log_dirs: Sequence[str],
    connection: AdminConnection,
    broker_id: int,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Inflow | None:
    """Return what is copied to the volume of these log dirs; None for nothing, or if it can't be known.

    It takes some seconds, up to a quarter of a minute, but only where a replica is not complete.
    """
    behind = lagging(connection, broker_id).result()
    try:
        copied = copied_replicas(log_dirs)
        names = copied if isinstance(behind, KafkaFailure) else behind | copied
        before, begun = replica_dirs(log_dirs, names), clock()
        after, seconds = before, 0.0
        while any(before.values()) and (
            seconds < SAMPLE_SECONDS or (after == before and seconds < PATIENCE_SECONDS)
        ):
            sleep(1.0)
            after, seconds = replica_dirs(log_dirs, names), clock() - begun
        status = os.statvfs(log_dirs[0])
    except OSError:
        return None
    replication = _rates(before, after, PartitionState.LOG, seconds)
    replication = {name: rate for name, rate in replication.items() if name not in copied}
    copies = _rates(before, after, PartitionState.FUTURE, seconds)
    if not replication and not copies:
        return None
    throttled, throttle = _throttles(connection, broker_id, replication)
    free_bytes = status.f_bavail * status.f_frsize
    return Inflow(broker_id, free_bytes, replication, copies, throttled, throttle)


def _rates(
    before: Mapping[str, Sequence[ReplicaDir]],
    after: Mapping[str, Sequence[ReplicaDir]],
    state: PartitionState,
    seconds: float,
) -> dict[str, int]:
    """Return the bytes per second by which replicas in this state have grown."""

    grown = {name: size_in(dirs, state) - size_in(before[name], state) for name, dirs in after.items()}
    return {name: round(more / seconds) for name, more in sorted(grown.items()) if more > 0}


def _throttles(
    connection: AdminConnection, broker_id: int, replication: Mapping[str, int]
) -> tuple[dict[str, str], int | None]:
    """Return the throttled replicas of these topics, and the rate on this broker; None for none."""
    asked = {topic: connection.topic_settings(topic) for topic in {place_of(name)[0] for name in replication}}
    answers = {topic: pending.result() for topic, pending in asked.items()}
    throttled = {
        topic: settings.get(THROTTLED_REPLICAS, "")
        for topic, settings in answers.items()
        if not isinstance(settings, KafkaFailure)
    }
    own = connection.broker_settings(broker_id).result()
    rate = NO_THROTTLE if isinstance(own, KafkaFailure) else int(own.get(THROTTLED_RATE, NO_THROTTLE))
    return throttled, None if rate == NO_THROTTLE else rate
