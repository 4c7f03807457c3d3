"""The plan of the demo: sizes, limits, placement, pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquota.policy.decision import Scope
from kquota.policy.limits import Limit, LimitPair, LimitType
from testbed.loopback.volumes import MIB, VolumeSpec


@dataclass(frozen=True, kw_only=True)
class Application:
    """A producer and a consumer of a topic, and where its partitions are."""

    topic: str = "orders"
    replicas: tuple[tuple[int, ...], ...] = ((1, 3), (2, 3), (1, 3), (2, 3))
    """Per partition, the preferred leader first."""
    record_bytes: int = 10_000
    producer_bytes_per_second: float = 80e6
    """A ceiling that two cores don't reach: a disk of half a gigabyte has the room below its hard limit for
    the reaction to producers of that speed (rate · (reaction + W / 2), W the quota window), not for any."""
    consumer_bytes_per_second: float = 8e6
    """Slower than the producer, so that there is something left to read in PAUSE."""
    queue_bytes: int = 16 * MIB
    """Of the producer. Small: records that wait there are neither lost nor counted, and a flush is short."""
    retention_bytes: int = -1
    """Of each partition; -1 keeps everything."""

    @property
    def topic_settings(self) -> dict[str, str]:
        """Small segments that are deleted at once: an operator's deletion is to be seen within seconds."""
        return {
            "segment.bytes": str(8 * MIB),
            "file.delete.delay.ms": "0",
            "retention.ms": "-1",
            "retention.bytes": str(self.retention_bytes),
        }


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Three brokers with two volumes each; the small ones belong to a broker that leads no partition.

    It follows the leaders of the first topic, so it is replication that fills its disks: every producer is
    connected to brokers whose own disks are fine. The second topic is on the other two brokers alone.
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
    fence: bool = True
    """Whether brokers have the fence, as the roles install it; for clusters on loopback."""
    scope: Scope = Scope.VOLUME
    """Whom a full volume holds."""
    agent_settings: Mapping[str, object] = field(default_factory=dict)
    """Of agent.yml, other than usual; for clusters on loopback."""
    applications: tuple[Application, Application] = (
        Application(),
        # It must not bring the leaders' own disks to their soft limit, however long the demonstration takes.
        Application(
            topic="payments",
            replicas=((1, 2), (2, 1)),
            producer_bytes_per_second=2e6,
            # A second's worth: what it could not write before a PAUSE must not count as its rate in PAUSE.
            queue_bytes=2 * MIB,
            retention_bytes=16 * MIB,
        ),
    )
    """The first one fills the disks of broker 3; the second has no partition there."""
    throttle_seconds: float = 8.0
    """How long THROTTLE is looked at before another program writes to the fullest volume: throttled producers
    get slower as they come nearer to the hard limit, and do not cross it."""
    past_hard_ratio: float = 0.01
    """How far that program takes the volume over its hard limit, of its capacity."""
    pause_seconds: float = 12.0
    """How long the PAUSE is looked at before data is deleted."""
    settle_seconds: float = 1.0
    """How long followers have, in PAUSE, to fetch the last records that were let through: only then does a
    client see these in the end of the log."""
    flow_seconds: float = 4.0
    """How long production is looked at after it is let through again."""
    aftermath_seconds: float = 60.0
    """How long at most is looked at what a full disk does, without kquota."""
    fill_timeout_seconds: float = 240.0
    step_timeout_seconds: float = 120.0

    @property
    def topics(self) -> tuple[str, str]:
        """Of the applications, in their order."""
        filling, other = self.applications
        return filling.topic, other.topic

    @property
    def broker_properties(self) -> dict[str, str]:
        """For every broker."""
        return {
            "log.retention.check.interval.ms": "1000",
            "log.initial.task.delay.ms": "1000",
            # W = 3 s instead of 11: on brokers without the fence, the data that lands after a breach is in
            # proportion to it, and these disks are tiny.
            "quota.window.num": "3",
            # Without kquota, what follows a full disk is to be seen within a minute, too.
            "replica.lag.time.max.ms": "10000",
        }
