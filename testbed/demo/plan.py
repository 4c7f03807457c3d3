"""The plan of the demo: sizes, limits, placement, pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquota.core.limits import Limit, LimitPair, LimitType
from testbed.loopback.volumes import MIB, VolumeSpec


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Three brokers with two volumes each; the small ones belong to a broker that leads no partition.

    It follows the leaders of all of them, so it is replication that fills its disks: every producer is
    connected to brokers whose own disks are fine.
    """

    volumes: Mapping[int, tuple[VolumeSpec, ...]] = field(
        default_factory=lambda: {
            1: (VolumeSpec(600 * MIB),) * 2,
            2: (VolumeSpec(600 * MIB),) * 2,
            3: (VolumeSpec(500 * MIB),) * 2,
        }
    )
    limits: LimitPair = field(
        default_factory=lambda: LimitPair(
            soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 45),
            hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 20),
        )
    )
    separate_metadata: bool = True
    """With the metadata apart, a broker whose first disk is full can show what Kafka does then."""
    topic: str = "orders"
    replicas: tuple[tuple[int, ...], ...] = ((1, 3), (2, 3), (1, 3), (2, 3))
    """Per partition, the preferred leader first."""
    record_bytes: int = 10_000
    producer_bytes_per_second: float = 80e6
    """A ceiling that two cores don't reach: a disk of half a gigabyte has the room below its hard limit for
    the reaction to producers of that speed (rate · (reaction + W / 2), W the quota window), not for any."""
    consumer_bytes_per_second: float = 8e6
    """Slower than the producer, so that there is something left to read in PAUSE."""
    pause_seconds: float = 12.0
    """How long the PAUSE is looked at before data is deleted."""
    flow_seconds: float = 4.0
    """How long production is looked at after it is let through again."""
    aftermath_seconds: float = 60.0
    """How long at most is looked at what a full disk does, without kquota."""
    fill_timeout_seconds: float = 240.0
    step_timeout_seconds: float = 120.0

    @property
    def topic_settings(self) -> dict[str, str]:
        """Small segments that are deleted at once: an operator's deletion is to be seen within seconds."""
        return {"segment.bytes": str(8 * MIB), "file.delete.delay.ms": "0", "retention.ms": "-1"}

    @property
    def broker_properties(self) -> dict[str, str]:
        """For every broker."""
        return {
            "log.retention.check.interval.ms": "1000",
            "log.initial.task.delay.ms": "1000",
            # W = 3 s instead of 11: the data that lands after a breach is in proportion to it, and these
            # disks are tiny.
            "quota.window.num": "3",
            # Without kquota, what follows a full disk is to be seen within a minute, too.
            "replica.lag.time.max.ms": "10000",
        }
