"""Replication and copies that fill a volume while producers are held, and the throttle that slows them.

A follower that catches up, or a replica that a reassignment adds, is not in sync until it has all records. So
exactly those replicas can be slowed, and no replica that is in sync.
Source: docs/adr/0029-replica-moves.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

THROTTLED_REPLICAS = "follower.replication.throttled.replicas"
THROTTLED_RATE = "follower.replication.throttled.rate"
HOLD_SECONDS = 86_400
"""A throttle is chosen so that the volume is not full before this time."""
SLOWEST_BYTES_PER_SECOND = 1000
ALL_REPLICAS = "*"
NO_THROTTLE = 2**63 - 1
"""The rate of a broker without a throttle."""


@dataclass(frozen=True, slots=True)
class Inflow:
    """Bytes per second, by partition, that come to a volume with ``free_bytes`` left: by ``replication`` from
    other brokers, and by ``copies`` from other log dirs.

    ``throttled`` are the replicas of each topic that followers throttle already, and ``throttle`` their rate
    on this broker, None for none.
    """

    broker_id: int
    free_bytes: int
    replication: Mapping[str, int]
    copies: Mapping[str, int]
    throttled: Mapping[str, str]
    throttle: int | None = None

    @property
    def bytes_per_second(self) -> int:
        """All that comes to the volume in this way."""
        return sum(self.replication.values()) + sum(self.copies.values())

    @property
    def full_seconds(self) -> int | None:
        """The time until the volume is full at that rate; None for never."""
        rate = self.bytes_per_second
        return None if rate <= 0 else self.free_bytes // rate


def throttle_rate(inflow: Inflow) -> int:
    """Return the bytes per second with which the volume is not full before a day."""
    return max(inflow.free_bytes // HOLD_SECONDS, SLOWEST_BYTES_PER_SECOND)


def with_replicas(present: str, partitions: Iterable[int], broker_id: int) -> str:
    """Return a topic's list of throttled replicas with these in it, as Kafka has it: ``3:1,5:1``."""
    if present.strip() == ALL_REPLICAS:
        return present
    listed = [one for one in present.split(",") if one]
    added = [f"{partition}:{broker_id}" for partition in sorted(partitions)]
    return ",".join([*listed, *(one for one in added if one not in listed)])
