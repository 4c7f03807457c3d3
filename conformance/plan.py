"""Sizes, rates and bounds of a trial: the same for every system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.ledger.producers import Kind
from bench.loads import Client, Delivery
from conformance.figures import MIB, Fill
from conformance.system import Limits

FULL_BROKER = 3
FILLING, OTHERS = "filling", "others"


@dataclass(frozen=True, slots=True)
class Load:
    """One producer with its topic."""

    kind: Kind
    role: str
    rate_bytes: float

    @property
    def topic(self) -> str:
        """Its name."""
        return f"{self.role}-{self.kind.client}".lower()


def _kind(client: Client) -> Kind:
    return Kind(client, Delivery.IDEMPOTENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A trial. Every wait has its bound here."""

    limits: Limits = field(default_factory=lambda: Limits(soft_left_bytes=36 * MIB, hard_left_bytes=24 * MIB))
    approach_bytes: int = 8 * MIB
    """Bytes left before the soft limit when the suite has taken the rest of the volume."""
    volume_bytes: int = 1024 * MIB
    """Of the volume that fills; a sparse file."""
    roomy_bytes: int = 3072 * MIB
    """Of all other volumes."""
    record_bytes: int = 10_000
    loads: Sequence[Load] = field(
        default_factory=lambda: (
            Load(_kind(Client.JAVA), FILLING, 2e6),
            Load(_kind(Client.LIBRDKAFKA), FILLING, 2e6),
            Load(_kind(Client.JAVA), OTHERS, 5e5),
            Load(_kind(Client.LIBRDKAFKA), OTHERS, 5e5),
        )
    )
    consumer_bytes_per_second: float = 1e6
    """Less than what comes in: there is always something left to read."""
    flowing_seconds: float = 90.0
    """Each producer has records acknowledged by then."""
    warm_seconds: float = 6.0
    before_seconds: float = 8.0
    crossing_seconds: float = 30.0
    slowed_seconds: float = 10.0
    """Producers that were slowed have this long from soft to hard limit; then the suite writes a file."""
    hold_seconds: float = 20.0
    recovery_seconds: float = 45.0
    down_seconds: float = 15.0
    """The same bound where a broker is down, which does not come back by itself."""
    serving_seconds: float = 30.0
    """A broker that was restarted has its replicas in sync by then; otherwise the next one has its turn."""
    restarted_seconds: float = 30.0
    """After restarts producers write by then."""
    end_seconds: float = 40.0
    """All producers have delivered what waits by then, or are killed."""

    @property
    def offered_rate(self) -> float:
        """Of the producers that fill, in bytes per second."""
        return sum(load.rate_bytes for load in self.loads if load.role == FILLING)

    def volumes(self, fill: Fill) -> Mapping[int, tuple[int, ...]]:
        """Return the sizes of the brokers' volumes; the last one of the full broker fills."""
        roomy = (self.roomy_bytes,) if fill is Fill.REPLICATION else ()
        return {1: (self.roomy_bytes,), 2: (self.roomy_bytes,), FULL_BROKER: (*roomy, self.volume_bytes)}

    def replicas(self, load: Load, fill: Fill) -> list[list[int]]:
        """Return the replicas of each partition of a topic, the leader first."""
        if load.role == OTHERS:
            return [[1, 2], [2, 1], [1, 2], [2, 1]]
        pairs = [[1, FULL_BROKER], [2, FULL_BROKER]] * 2
        return pairs if fill is Fill.REPLICATION else [pair[::-1] for pair in pairs]
