"""A cycle with its edges in memory: it reads its own publications back, as from a topic."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kquota.disks.observation import Observation, VolumeObservation
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.usage_format import usage_to_document
from kquota.guard.applied_state import (
    AppliedState,
    AppliedUnknown,
    ExemptSeen,
    Mechanism,
    UnknownCause,
)
from kquota.guard.applied_verification import Verification
from kquota.guard.cycle import Cycle
from kquota.guard.inputs import ClusterNews, Moment
from kquota.guard.report import CycleReport
from kquota.host.boot_clock import BootMoment
from kquota.kafka.topic_records import CaughtUp, TopicEvent, TopicRestarted
from kquota.policy.decision import Mode, State
from kquota.policy.known_brokers import ListedBrokers
from kquota.policy.limits import Limit, LimitType
from kquota.policy.timestamps import format_utc
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import Volume, VolumeRole
from kquota.settings.model import BrokerSection, LimitsSection, Settings

START = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)
CLUSTER = "a-cluster"
BOOT = "a-boot"
VERIFIED = Verification(True, False, "User:CN=agent is exempt on this broker")
UNKNOWN = Verification(False, False, "there is no applied-state file")
CONTRADICTED = Verification(False, True, "the broker's plug-in has not seen a client kquota-1-… as exempt")
NO_FILE = AppliedUnknown(UnknownCause.MISSING, "there is no applied-state file")

SETTINGS = Settings(
    broker=BrokerSection(server_properties=Path("/etc/kafka/server.properties")),
    kafka={"bootstrap.servers": "localhost:9092"},
    limits=LimitsSection(
        hard=Limit.of(LimitType.MIN_FREE_BYTES, 10), soft=Limit.of(LimitType.MIN_FREE_BYTES, 20)
    ),
    mode=Mode.ENFORCE,
    fill_floor_bytes_per_second=100,
)


def settings_with(**fields: Any) -> Settings:
    """The settings above, but for these."""
    return SETTINGS.model_copy(update=fields)


NEWS = ClusterNews(
    cluster_id=CLUSTER,
    active_brokers=frozenset({1}),
    topic_refused=None,
    asked_own_broker=True,
)


def moment(seconds: float, *, wall_offset_seconds: float = 0.0) -> Moment:
    """The moment this long after the start, on all clocks."""
    wall = START + timedelta(seconds=seconds + wall_offset_seconds)
    return Moment(wall, 1000.0 + seconds, BootMoment(BOOT, 5_000_000 + round(seconds * 1000)))


def volume(free: int, name: str = "/dev/sda1", **fields: Any) -> VolumeObservation:
    """A volume of 100 bytes; with the limits above, headroom is (free - 10) / 10."""
    seen = VolumeObservation(
        name=name,
        volume_id=f"id of {name}",
        mount_point=f"/mnt{name}",
        fs_type="ext4",
        log_dirs=(f"/mnt{name}/kafka",),
        role=VolumeRole.DATA,
        capacity_bytes=100,
        consumed_bytes=100 - free,
        sampled_at_monotonic=None,
    )
    return replace(seen, **fields)


def applied_state(state: State = State.OPEN, **fields: Any) -> AppliedState:
    """The report of a plug-in that exempts the agent."""
    said = AppliedState(
        schema_version=1,
        plugin_version="1",
        decision_schema_versions=(1,),
        boot_id=BOOT,
        written_uptime_ms=5_000_000,
        started_uptime_ms=1,
        cluster_id=CLUSTER,
        broker_id=1,
        sequence=1,
        lost=None,
        mode=Mode.ENFORCE,
        broker_mode=Mode.ENFORCE,
        state=state,
        factor={State.OPEN: 1.0, State.THROTTLE: 0.5, State.PAUSE: 0.0}[state],
        mechanism=Mechanism.NONE if state is State.OPEN else Mechanism.GOVERNOR,
        exempt=(ExemptSeen("User:CN=agent", ("kquota-1-admin",), 5_000_000),),
        offline_log_dirs=(),
        errors={},
    )
    return replace(said, **fields)


@dataclass
class MemoryPorts:
    """The edges of a cycle; everything that goes out is kept."""

    volumes: tuple[VolumeObservation, ...] = (volume(50),)
    warnings: tuple[str, ...] = ()
    plug_in: tuple[AppliedState | AppliedUnknown, Verification] = (NO_FILE, UNKNOWN)
    write_error: str | None = None
    published: list[dict[str, Any]] = field(default_factory=list)
    news: list[bool] = field(default_factory=list)
    written: list[dict[str, Any]] = field(default_factory=list)
    grants: list[str] = field(default_factory=list)
    listed: list[tuple[str, frozenset[int]]] = field(default_factory=list)
    recalled: list[tuple[Volume, ...]] = field(default_factory=list)
    active: list[bool] = field(default_factory=list)

    def observe(self, *, is_active: bool) -> Observation:
        self.active.append(is_active)
        return Observation(self.volumes, self.warnings)

    def recall(self, volumes: Iterable[Volume]) -> None:
        self.recalled.append(tuple(volumes))

    def publish(self, record: UsageRecord, applied: Mapping[str, object] | None, *, is_news: bool) -> None:
        self.published.append(dict(usage_to_document(record, applied=applied)))
        self.news.append(is_news)

    def write(self, document: Mapping[str, object]) -> str | None:
        if self.write_error is None:
            self.written.append(dict(document))
        return self.write_error

    def applied(
        self, _moment: Moment, _cluster_id: str | None
    ) -> tuple[AppliedState | AppliedUnknown, Verification]:
        return self.plug_in

    def remember_grant(self, cluster_id: str, _moment: Moment) -> None:
        self.grants.append(cluster_id)

    def remember_listed(self, cluster_id: str, broker_ids: frozenset[int]) -> None:
        self.listed.append((cluster_id, broker_ids))


class Bench:
    """One agent's cycles, one after the other; its own records come back at the next one."""

    def __init__(
        self,
        *,
        granted_for: str | None = None,
        settings: Settings = SETTINGS,
        covered_seconds: float = 0.0,
        listed: ListedBrokers | None = None,
        wall_offset_seconds: float = 0.0,
    ) -> None:
        self.ports = MemoryPorts()
        self.news = NEWS
        self.seconds = 0.0
        self.cycle = Cycle(
            settings,
            1,
            self.ports,
            moment(0, wall_offset_seconds=wall_offset_seconds),
            granted_for=granted_for,
            covered_until_uptime_ms=moment(covered_seconds).boot.uptime_ms if covered_seconds else 0,
            listed=listed,
        )
        self.echoes = True
        self.behind: set[TopicKind] = set()
        self._echoed = 0

    def run(self, *events: TopicEvent, after: float = 0.2, wall_offset_seconds: float = 0.0) -> CycleReport:
        """Run a cycle ``after`` this many seconds, with these events after our own records.

        The topics that are not ``behind`` are read to their ends then.
        """
        self.seconds += after
        own = [arrival(1, document) for document in self.ports.published[self._echoed :] if self.echoes]
        self._echoed = len(self.ports.published)
        now = moment(self.seconds, wall_offset_seconds=wall_offset_seconds)
        ends = [CaughtUp(0, kind) for kind in TopicKind if kind not in self.behind]
        self.cycle.take([*own, *events, *ends])
        return self.cycle.run(now, self.news)

    def replace_ports(self, ports: MemoryPorts, settings: Settings) -> None:
        """Reload the configuration."""
        self.cycle.configure(settings, ports)
        self.ports, self._echoed = ports, 0

    def settle(self) -> CycleReport:
        """Run until our own first record has come back."""
        reports: Sequence[CycleReport] = [self.run() for _ in range(4)]
        assert reports[-1].decision is not None
        return reports[-1]

    def usage(self, free: int, *, age_seconds: float = 0.0, **fields: Any) -> dict[str, Any]:
        """A usage record of another agent at the present moment."""
        at = START + timedelta(seconds=self.seconds - age_seconds)
        disk = {"VolumeName": "/dev/other", "Capacity": 100, "Consumed": 100 - free}
        return {
            "SnapshotAt": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "HardLimit": {"type": "MinFreeBytes", "level": 10},
            "SoftLimit": {"type": "MinFreeBytes", "level": 20},
            "Volumes": [disk],
            **fields,
        }


def arrival(key: int | str, value: Mapping[str, Any] | bytes | None, **headers: str) -> TopicRecord:
    """A record as it comes from its topic: an order, appended at the start, from that of orders."""
    raw = json.dumps(value).encode() if isinstance(value, Mapping) else value
    named = tuple((name, text.encode()) for name, text in headers.items())
    read = TopicRecord(str(key).encode(), raw, headers=named)
    if str(key).isdecimal():
        return read
    return read._replace(topic=TopicKind.ORDERS, appended_ms=round(START.timestamp() * 1000))


def cut(topic: TopicKind = TopicKind.USAGE) -> TopicRestarted:
    """The event of a log that lost its newest records, which is read again from its beginning."""
    return TopicRestarted("id", "the offset is out of range", same_topic=True, topic=topic)


def state(report: CycleReport) -> str | None:
    """The decision, if there was any."""
    return None if report.decision is None else report.decision.state.value


def order(until_seconds: float, **fields: Any) -> dict[str, Any]:
    """The value of a hold or another order, which ends this long after the start."""
    until = format_utc(START + timedelta(seconds=until_seconds))
    return {"Until": until, "Reason": "a test", "Actor": "alice", **fields}
