"""The parts of a generated cluster: brokers, volumes, topics, their clients, and its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

HOUR_SECONDS = 3600
DAY_SECONDS = 86_400
_TERABYTE = 10**12
_GIGABYTE = 10**9
_SAMPLE_LIMIT = 5_000_000


class InvalidFleet(ValueError):
    """A fleet that can't be made; the text names the setting and the allowed values."""


@dataclass(frozen=True, slots=True)
class FleetSize:
    """How large a history to make: `days` of samples every `interval_seconds`, from `start` (UTC) on.

    Not `enforced`, the quota is only reported, and disks can run full.

    Raises:
        InvalidFleet: a number out of range.
    """

    seed: int = 7
    brokers: int = 9
    volumes_per_broker: int = 3
    days: int = 30
    interval_seconds: int = 120
    enforced: bool = True
    start: datetime = field(default_factory=lambda: datetime(2026, 10, 1, tzinfo=UTC))

    def __post_init__(self) -> None:
        for name, low, high in (
            ("brokers", 3, 200),
            ("volumes_per_broker", 1, 24),
            ("days", 1, 400),
            ("interval_seconds", 5, HOUR_SECONDS),
        ):
            if not low <= getattr(self, name) <= high:
                raise InvalidFleet(f"{name} is {getattr(self, name)}; allowed are {low} to {high}")
        if DAY_SECONDS % self.interval_seconds:
            raise InvalidFleet(f"interval_seconds is {self.interval_seconds}; it must divide a day")
        if self.samples > _SAMPLE_LIMIT:
            raise InvalidFleet(f"that is {self.samples} volume samples; at most {_SAMPLE_LIMIT} are made")

    @property
    def ticks(self) -> int:
        """How many samples each volume has."""
        return self.days * DAY_SECONDS // self.interval_seconds

    @property
    def samples(self) -> int:
        """How many volume samples there are at most."""
        return self.ticks * self.brokers * self.volumes_per_broker


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a generated cluster. `peak` is the largest over the mean rate of a day."""

    name: str
    retention_hours: float
    segment_bytes: int
    share_of_disk: float
    peak: float
    weekend: float
    growth_per_day: float
    age_days: float
    clients: tuple[tuple[str, str, float], ...]


# The usual content of a Kafka: most topics stand, two grow, and segments are large enough for saw-teeth.
TOPICS = (
    Topic("orders", 72, 2 * _GIGABYTE, 0.085, 1.6, 0.6, 0.001, 30,
          (("CN=orders", "orders-1", 0.6), ("CN=orders", "orders-2", 0.4))),
    Topic("payments", 168, 1 * _GIGABYTE, 0.05, 1.5, 0.7, 0.001, 30, (("CN=payments", "payments", 1.0),)),
    Topic("clicks", 48, 8 * _GIGABYTE, 0.11, 2.0, 1.2, 0.0, 30,
          (("CN=web", "clicks-eu", 0.45), ("CN=web", "clicks-us", 0.4), ("CN=app", "clicks-app", 0.15))),
    Topic("metrics", 24, 5 * _GIGABYTE, 0.07, 1.1, 1.0, 0.002, 30, (("CN=telegraf", "telegraf", 1.0),)),
    Topic("logs", 36, 20 * _GIGABYTE, 0.09, 1.4, 0.9, 0.004, 30,
          (("CN=shipper", "vector", 0.9), ("CN=legacy", "", 0.1))),
    Topic("audit", 2160, 3 * _GIGABYTE, 0.05, 1.3, 0.8, 0.0, 15, (("CN=audit", "audit", 1.0),)),
    Topic("exports", 336, 100 * _GIGABYTE, 0.035, 1.2, 1.0, 0.0, 6, (("CN=batch", "exporter", 1.0),)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outage:
    """Samples of a broker are missing from tick `begin` to `end`; with `agent_only` the broker runs on."""

    broker: int
    begin: int
    end: int
    agent_only: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """A volume is replaced by an empty one, which is filled again by replication in `refill_ticks`."""

    volume: int
    at: int
    refill_ticks: int


@dataclass(frozen=True, slots=True)
class Extension:
    """A volume's capacity is multiplied by `ratio`."""

    volume: int
    at: int
    ratio: float


@dataclass(frozen=True, slots=True)
class Burst:
    """A topic's rate is multiplied by `ratio` from tick `begin` to `end`."""

    topic: int
    begin: int
    end: int
    ratio: float


@dataclass(frozen=True, slots=True)
class Cleanup:
    """An operator shortens a topic's retention to `retention_hours` at a tick."""

    topic: int
    at: int
    retention_hours: float


@dataclass(frozen=True, slots=True)
class Failure:
    """A volume can't be read from tick `begin` to `end`."""

    volume: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """One cluster. Volumes are numbered broker by broker; `placement[v, k]` is the share of topic k's bytes,
    all replicas counted, that lands on volume v: a column adds up to the replication factor.
    """

    size: FleetSize
    cluster_id: str
    capacity_bytes: NDArray[np.int64]
    system_bytes: NDArray[np.int64]
    placement: NDArray[np.float64]
    base_rate_bytes: NDArray[np.float64]
    outages: tuple[Outage, ...]
    replacements: tuple[Replacement, ...]
    extensions: tuple[Extension, ...]
    bursts: tuple[Burst, ...]
    cleanups: tuple[Cleanup, ...]
    failures: tuple[Failure, ...]
    decommissioned: tuple[tuple[int, int], ...]

    @property
    def volumes(self) -> int:
        """How many volumes the cluster has."""
        return len(self.capacity_bytes)

    def broker_of(self, volume: int) -> int:
        """Return the broker id (from 1 on) of a volume."""
        return volume // self.size.volumes_per_broker + 1


def make_fleet(size: FleetSize, number: int = 0) -> Fleet:
    """Draw a cluster; the same size and number give the same one."""
    draw = np.random.default_rng([size.seed, number])
    volumes = size.brokers * size.volumes_per_broker
    capacity = draw.choice(np.array([2, 2, 4]) * _TERABYTE, volumes).astype(np.int64)
    # Kafka places partitions by count, never by size: volumes of one broker differ, and the small ones
    # suffer.
    placement = draw.gamma(60.0, 1.0, (volumes, len(TOPICS))) * (capacity / capacity.mean())[:, None] ** 0.85
    placement = 3.0 * placement / placement.sum(axis=0)
    total = capacity.sum()
    retained = np.array([min(topic.retention_hours / 24, topic.age_days) for topic in TOPICS]) * DAY_SECONDS
    rates = np.array([topic.share_of_disk for topic in TOPICS]) * total / 3.0 / retained
    hottest = int(np.argmax((placement * rates).sum(axis=1) / capacity))
    day = DAY_SECONDS // size.interval_seconds

    def at(share: float) -> int:
        return int(share * size.ticks)

    return Fleet(
        size=size,
        cluster_id=f"generated-{size.seed}-{number}",
        capacity_bytes=capacity,
        system_bytes=(capacity * draw.uniform(0.005, 0.02, volumes)).astype(np.int64),
        placement=placement,
        base_rate_bytes=rates,
        outages=_outages(draw, size, day),
        replacements=(Replacement(int(draw.integers(volumes)), at(0.33), max(1, day // 3)),),
        extensions=(Extension(hottest, at(0.56), 1.5),),
        bursts=(
            Burst(2, at(0.17), at(0.17) + max(1, day // 5), 3.0),
            Burst(4, at(0.44), at(0.44) + max(1, day // 2), 5.0),
        ),
        cleanups=(Cleanup(6, at(0.50), 24.0),),
        failures=(Failure(int(draw.integers(volumes)), at(0.27), at(0.27) + max(1, day // 96)),),
        decommissioned=((size.brokers, at(0.453)),) if size.brokers > 4 else (),
    )


def _outages(draw: np.random.Generator, size: FleetSize, day: int) -> tuple[Outage, ...]:
    found = []
    for share, hours, agent_only in ((0.12, 1.5, False), (0.23, 0.2, True), (0.62, 6.0, False)):
        begin = int(share * size.ticks)
        length = max(2, int(hours * day / 24))
        found.append(Outage(int(draw.integers(1, size.brokers)), begin, begin + length, agent_only))
    return tuple(found)
