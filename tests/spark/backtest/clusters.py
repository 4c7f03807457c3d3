"""Random small clusters, as rows of the tables and as the core's own records, and what the core decides on
them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import FallbackAction, Scope
from kquota.policy.events import TombstoneEvent, UsageEvent
from kquota.policy.latch import latch_volumes
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus
from kquota_pipeline.backtest.policy import Limits, Policy

START = datetime(2026, 11, 1, tzinfo=UTC)
TICK_SECONDS = 30
TOLERANCE = timedelta(seconds=30)


def _percent(hard: int | Fraction, soft: int | Fraction) -> Limits:
    kind = LimitType.MIN_FREE_PERCENTAGE
    return Limits(hard=Limit.of(kind, hard), soft=Limit.of(kind, soft))


_CONSUMED_60, _CONSUMED_20, _CONSUMED_90 = (Limit.of(LimitType.CONSUMED_SPACE, n) for n in (60, 20, 90))
POLICIES = (
    Policy("recorded"),
    Policy("percent", _percent(5, Fraction(25, 2))),
    Policy(
        "bytes, open",
        Limits(hard=Limit.of(LimitType.MIN_FREE_BYTES, 7), soft=Limit.of(LimitType.MIN_FREE_BYTES, 30)),
        fallback_action=FallbackAction.OPEN,
        release_margin=Fraction(1, 2),
    ),
    Policy(
        "of different types",
        Limits(hard=_CONSUMED_90, soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 20)),
        staleness_seconds=90.0,
    ),
    Policy(
        "one volume by itself",
        Limits(volumes={"/data/0": (_CONSUMED_60, _CONSUMED_20)}),
        release_margin=Fraction(0),
    ),
    Policy("one broker by itself", brokers={1: _percent(40, 60)}),
    Policy("volume", scope=Scope.VOLUME),
    Policy("volume, open", _percent(5, 40), fallback_action=FallbackAction.OPEN, scope=Scope.VOLUME),
    Policy("bounded", fallback_action=FallbackAction.BOUNDED),
    Policy("bounded volume", _percent(5, 30), fallback_action=FallbackAction.BOUNDED, scope=Scope.VOLUME),
)
TOPICS = ("a", "b", "c", "d", "e")


@dataclass
class Cluster:
    """The brokers' reports (tick → record without latches), the unknown brokers by tick, and the
    decommissioned ones.
    """

    cluster_id: str
    ticks: int
    reports: dict[int, dict[int, tuple[Volume, ...]]] = field(default_factory=dict)
    unknown: dict[int, set[int]] = field(default_factory=dict)
    decommissioned: dict[int, int] = field(default_factory=dict)
    enforced: set[int] = field(default_factory=set)
    clients: list[dict[str, Any]] = field(default_factory=list)

    def ticks_of_history(self) -> set[int]:
        """The ticks up to the last record at which some broker that is not decommissioned has a record."""
        last = max(tick for reports in self.reports.values() for tick in reports)
        return {
            tick
            for tick in range(last + 1)
            if any(tick not in _after_end(self, broker, tick) for broker in self.reports)
        }


def random_cluster(number: int) -> Cluster:
    """Draw a cluster; the same number gives the same one."""
    draw = random.Random(number)
    cluster = Cluster(f"cluster-{number:03d}", ticks=draw.randint(6, 20))
    for broker in range(draw.randint(1, 3)):
        volumes = [_Disk(draw, i) for i in range(draw.randint(1, 3))]
        away = sorted(draw.sample(range(1, cluster.ticks), 2)) if draw.random() < 0.5 else [0, 0]
        known_missing = draw.random() < 0.6
        reports = {}
        for tick in range(cluster.ticks):
            for disk in volumes:
                disk.live()
            if away[0] <= tick < away[1]:
                if known_missing:
                    cluster.unknown.setdefault(tick, set()).add(broker)
                continue
            reports[tick] = tuple(disk.volume() for disk in volumes)
        cluster.reports[broker] = reports
        if away[1] and not known_missing and draw.random() < 0.5:
            cluster.decommissioned[broker] = draw.randrange(away[0], away[1])
    cluster.enforced = {tick for tick in range(cluster.ticks) if draw.random() < 0.3}
    cluster.clients = _client_rows(cluster, draw)
    return cluster


def _client_rows(cluster: Cluster, draw: random.Random) -> list[dict[str, Any]]:
    """Return rows of the table clients: records of several brokers, of which some list no client."""
    rows = []
    for number in range(draw.randint(0, 25)):
        record = {
            **_envelope(cluster, draw.randint(0, 2), number),
            "at": START + timedelta(seconds=draw.choice([30, 30, 7]) * draw.randint(-3, cluster.ticks)),
            "window_seconds": draw.choice([30.0, 30.0, 12.5, 75.0]),
            "omitted_clients": draw.choice([0, 0, 4]),
        }
        for client in draw.sample(range(4), draw.randint(0, 4)) or [None]:
            topics = draw.choice([None, draw.sample([*TOPICS, "elsewhere"], draw.randint(1, 2))])
            if client is None:
                rows.append(record)
                continue
            rows.append(
                record
                | {
                    "user": f"user {client // 2}",
                    "client_id": f"client {client}",
                    "produce_bytes_per_second": draw.choice([0.0, 5.0]),
                    "throttled_seconds": draw.choice([0.0, 0.0, 1.0]),
                    "topics": topics,
                }
            )
    return rows


class _Disk:
    def __init__(self, draw: random.Random, number: int) -> None:
        self._draw = draw
        self._topics: tuple[str, ...] | None = None
        self._ceiling = draw.choice([None, 0, 1, 3])
        self._number = number
        self._capacity = draw.choice([100, 100, 120, 999])
        self._consumed = draw.randint(0, self._capacity)
        self._generation = 0
        self._named = draw.random() < 0.8
        is_metadata = draw.random() < 0.1 and number > 0  # each broker has a volume of data
        self._role = VolumeRole.METADATA if is_metadata else VolumeRole.DATA
        self._pair = LimitPair(
            soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, draw.choice([15, 20, 30])),
            hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, draw.choice([5, 10])),
        )
        self._status = VolumeStatus.OK

    def live(self) -> None:
        step = self._draw.choice([-0.3, -0.1, -0.02, 0, 0.01, 0.03, 0.1, 0.2])
        self._consumed = min(self._capacity, max(0, self._consumed + round(step * self._capacity)))
        if self._draw.random() < 0.05:
            self._generation += 1
        if self._draw.random() < 0.3:
            known = sorted(self._draw.sample(TOPICS, self._draw.randint(0, 3)))
            self._topics = None if self._draw.random() < 0.2 else tuple(known)
        chance = self._draw.random()
        self._status = (
            VolumeStatus.FAILED
            if chance < 0.05
            else VolumeStatus.OFFLINE
            if chance < 0.1
            else VolumeStatus.OK
        )

    def volume(self) -> Volume:
        return Volume(
            name=f"/dev/sd{self._number}",
            capacity_bytes=self._capacity,
            consumed_bytes=self._consumed,
            limits=self._pair,
            volume_id=f"{id(self)}-{self._generation}" if self._named else None,
            mount_point=f"/data/{self._number}",
            status=self._status,
            role=self._role,
            fill_ceiling_bytes_per_second=self._ceiling,
            topics=self._topics,
        )


def at(tick: int) -> datetime:
    """When a tick ends."""
    return START + timedelta(seconds=TICK_SECONDS * tick)


def decided_by_core(cluster: Cluster, policy: Policy) -> list[tuple[str, float, int]]:
    """Return state, exact headroom and number of undetermined brokers at each tick, from the core itself."""
    view = ClusterView(TOLERANCE)
    settings = PolicySettings(policy.fallback_action, timedelta(seconds=policy.staleness_seconds))
    last: dict[int, tuple[Volume, ...]] = {}
    decided = []
    for tick in range(cluster.ticks):
        now = at(tick)
        fresh = set()
        for broker, reports in cluster.reports.items():
            if cluster.decommissioned.get(broker) == tick:
                view.fold(TombstoneEvent(broker), now)
            if tick in reports:
                own = [_under(policy, broker, volume) for volume in reports[tick]]
                last[broker] = latch_volumes(last.get(broker, ()), own, policy.release_margin)
                record = UsageRecord(snapshot_at=now, volumes=last[broker], hard=None, soft=None)
                view.fold(UsageEvent(broker, record), now)
            age = tick - max([t for t in reports if t <= tick], default=-(10**6))
            if age * TICK_SECONDS <= policy.staleness_seconds and tick not in _after_end(
                cluster, broker, tick
            ):
                fresh.add(broker)
        active = frozenset(fresh | cluster.unknown.get(tick, set()))
        decision = decide(view, Situation(active), settings, now)
        decided.append((decision.state.value, float(decision.headroom), len(decision.undetermined)))
    return decided


def _after_end(cluster: Cluster, broker: int, tick: int) -> Sequence[int]:
    """Return [tick] where the broker is decommissioned and not back: then it is not active."""
    end = cluster.decommissioned.get(broker)
    if end is None or tick < end:
        return []
    back = any(end < t <= tick for t in cluster.reports[broker])
    return [] if back else [tick]


def _under(policy: Policy, broker: int, volume: Volume) -> Volume:
    return volume._replace(limits=policy.pair(broker, volume.mount_point) or volume.limits)


def usage_rows(cluster: Cluster) -> list[dict[str, object]]:
    """Return the cluster's rows of the table usage."""
    rows = []
    for broker, reports in cluster.reports.items():
        for tick, volumes in reports.items():
            rows += [_row(cluster, broker, tick, volume) for volume in volumes]
    return _shortened(rows)


def _shortened(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the rows with a reference where the same topics were named before."""
    named: dict[object, tuple[object, object]] = {}
    for row in rows:
        volume, topics = (row["broker_id"], row["volume_name"]), row["topics"]
        if topics is not None and volume in named and named[volume][0] == topics:
            row |= {"topics": None, "topics_sequence": named[volume][1]}
        else:
            named[volume] = topics, row["sequence"]
    return rows


def _row(cluster: Cluster, broker: int, tick: int, volume: Volume) -> dict[str, object]:
    assert volume.limits is not None
    return {
        **_envelope(cluster, broker, tick),
        "volume_name": volume.name,
        "volume_id": volume.volume_id,
        "mount_point": volume.mount_point,
        "status": volume.status.value,
        "role": volume.role.value,
        "latched": False,
        "capacity_bytes": volume.capacity_bytes,
        "consumed_bytes": volume.consumed_bytes,
        "hard_limit_type": volume.limits.hard.type.value,
        "hard_limit_level": float(volume.limits.hard.level),
        "soft_limit_type": volume.limits.soft.type.value,
        "soft_limit_level": float(volume.limits.soft.level),
        "fill_ceiling_bytes_per_second": volume.fill_ceiling_bytes_per_second,
        "topics": None if volume.topics is None else list(volume.topics),
    }


def _envelope(cluster: Cluster, broker: int, tick: int) -> dict[str, object]:
    return {
        "cluster_id": cluster.cluster_id,
        "broker_id": broker,
        "instance_id": "test",
        "sequence": tick,
        "at": at(tick),
        "day": date(2026, 11, 1),
        "kafka_partition": 0,
        "kafka_offset": tick,
    }


def decision_rows(cluster: Cluster) -> list[dict[str, object]]:
    """Return the rows of the table decisions: an observer that names the unknown brokers at each tick, some
    as undetermined, and others as covered.
    """
    return [
        {
            **_envelope(cluster, 99, tick),
            "state": "PAUSE",
            "mode": "enforce" if tick in cluster.enforced else "observe",
            "undetermined": [
                {"broker_id": broker, "cause": "stale"}
                for broker in cluster.unknown.get(tick, ())
                if (tick + broker) % 2
            ],
            "covered": [broker for broker in cluster.unknown.get(tick, ()) if (tick + broker) % 2 == 0],
        }
        for tick in range(cluster.ticks)
    ]


def operator_rows(cluster: Cluster) -> list[dict[str, object]]:
    """Return the rows of the table operators: the decommissions."""
    return [
        {
            **_envelope(cluster, 99, tick),
            "order_kind": "decommission",
            "subject_broker_id": broker,
            "withdrawn": False,
        }
        for broker, tick in cluster.decommissioned.items()
    ]


def _rare() -> list[Cluster]:
    """Return cases that random clusters hardly ever contain."""
    kind = LimitType.MIN_FREE_PERCENTAGE
    hard = Limit.of(kind, 5)
    recorded = LimitPair(soft=Limit.of(kind, 15), hard=hard)

    def volume(consumed_bytes: int, status: VolumeStatus = VolumeStatus.OK) -> Volume:
        return Volume(
            "/dev/sda", 100, consumed_bytes, recorded, volume_id="x", mount_point="/a", status=status
        )

    healthy = {tick: (volume(10),) for tick in range(10)}
    breached, below = volume(96), volume(94)
    offline = Cluster("offline-when-last-seen", 10)
    offline.reports = {0: {0: (breached,), 1: (volume(96, VolumeStatus.OFFLINE),)}, 1: healthy}
    limits = Cluster("other-limits-in-between", 4)
    others = below._replace(limits=LimitPair(soft=Limit.of(kind, 30), hard=hard))
    limits.reports = {0: {0: (breached,), 1: (others,), 2: (below,), 3: (below,)}}
    silent = Cluster("active-without-a-record", 10)
    silent.reports = {0: {}, 1: healthy}
    silent.unknown = {tick: {0} for tick in range(10)}
    return [offline, limits, silent]


RARE = _rare()
