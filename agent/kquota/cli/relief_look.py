"""A look at the volume that relief is for: figures, segments, settings of topics, and who has read what."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from kquota.cli import exit_codes
from kquota.cli.configuration import broker_id_of, broker_of
from kquota.cli.local import look_at_volumes
from kquota.cli.local_state import read_decision
from kquota.cli.operator_config import DEFAULT_COMMAND_CONFIG, operator_config
from kquota.cli.output import fail
from kquota.cli.relief_run import Room, soft_room
from kquota.disks.observation import VolumeObservation
from kquota.disks.replica_dirs import copied_replicas, replica_dirs, size_in
from kquota.disks.segment_scan import SegmentLook
from kquota.disks.segments import (
    BrokerRules,
    InvalidTopicSettings,
    PartitionOnDisk,
    PartitionState,
    TopicRules,
    broker_rules,
    topic_rules,
)
from kquota.display.figures import size_text
from kquota.guard.agent_state import FILE_NAME, AgentStateFile
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.policy.cordon import ALL as ALL_CORDONED
from kquota.policy.cordon import SETTING as CORDONED
from kquota.policy.decision import Mode, State
from kquota.policy.volume import VolumeRole, VolumeStatus
from kquota.retention.operator_admin import Offsets, OperatorConnection
from kquota.retention.relief import Situation, Target
from kquota.settings import Settings

CLIENT_NAME = "cli"
_REMOTE_STORAGE = "remote.log.storage.system.enable"
_COPY_BOUND = "replica.alter.log.dirs.io.max.bytes.per.second"


@dataclass(frozen=True, slots=True)
class ReliefVolume:
    """The volume that relief is for."""

    observed: VolumeObservation
    soft_bytes: float
    hard_bytes: float
    others: tuple[ReliefVolume, ...] = ()
    """The broker's other volumes that are in use and have not failed."""

    @property
    def all_of_them(self) -> tuple[ReliefVolume, ...]:
        """All volumes of the broker, this one first."""
        return self, *self.others

    @property
    def all_log_dirs(self) -> list[str]:
        """The log dirs of all of them."""
        return [log_dir for one in self.all_of_them for log_dir in one.observed.log_dirs]

    def room(self) -> Room:
        """Look how much it has consumed now."""
        status = os.statvfs(self.observed.mount_point)
        consumed_bytes = (status.f_blocks - status.f_bavail) * status.f_frsize
        return soft_room(consumed_bytes, self.soft_bytes)

    def reserved_bytes(self) -> int:
        """Return what is free for root alone."""
        status = os.statvfs(self.observed.mount_point)
        return (status.f_bfree - status.f_bavail) * status.f_frsize


@dataclass(frozen=True, slots=True)
class ReliefLook:
    """All that options are ranked by; ``notes`` are what could not be learnt, ``copy_rate`` is the rate of
    moves, and where it is from.
    """

    situation: Situation
    groups_known: bool
    notes: tuple[str, ...]
    copy_rate: str

    @property
    def at(self) -> datetime:
        """When it was."""
        return datetime.fromtimestamp(self.situation.now_ms / 1000, UTC)


def connect(settings: Settings, command_config: Path | None, *, as_operator: bool) -> OperatorConnection:
    """Connect with an operator's credentials; for reading alone, with the agent's where there are none."""
    if as_operator or command_config is not None or DEFAULT_COMMAND_CONFIG.exists():
        options = operator_config(command_config, settings).options
    else:
        options = settings.librdkafka()
    try:
        return OperatorConnection(ClientProperties(options, CLIENT_NAME))
    except ConfigurationError as error:
        fail(str(error), exit_codes.CONFIGURATION)


def volume_of(settings: Settings, wanted: str | None) -> ReliefVolume | None:
    """Return the volume of this name, or the fullest one that is over its soft limit; None if none is."""
    seen = look_at_volumes(settings, broker_of(settings), AgentStateFile(settings.state_dir / FILE_NAME))
    found = []
    for volume in seen.volumes:
        if volume.role is not VolumeRole.DATA or not volume.capacity_bytes:
            continue
        bounds = settings.limits.pair(volume.limits_path).bounds(volume.capacity_bytes)
        one = ReliefVolume(volume, float(bounds.soft_bytes), float(bounds.hard_bytes))
        found.append((bounds.headroom(volume.consumed_bytes or 0), one))
    for _, one in found:
        if wanted in (one.observed.name, one.observed.mount_point, *one.observed.log_dirs):
            return _with_others(one, found)
    if wanted is not None:
        names = ", ".join(one.observed.name for _, one in found)
        fail(f"--volume {wanted}: is no volume of this broker; there are {names}", exit_codes.USAGE)
    over = [(headroom, one) for headroom, one in found if headroom < 1]
    return _with_others(min(over, key=lambda pair: pair[0])[1], found) if over else None


def _with_others(volume: ReliefVolume, all_of_them: Sequence[tuple[Any, ReliefVolume]]) -> ReliefVolume:
    sound = (one for _, one in all_of_them if one.observed.status is VolumeStatus.OK)
    return replace(volume, others=tuple(one for one in sound if one is not volume))


def go_elsewhere(settings: Settings) -> str | None:
    """Return which volume of another broker decides, by this host's decision; None if there is none."""
    decision, problem = read_decision(settings.decision_file)
    if decision is None:
        return problem
    here = broker_id_of(settings)
    reasons = [one for one in decision["reasons"] if one["volume"] and one["broker_id"] not in (None, here)]
    if not reasons:
        return None
    volume, broker_id = reasons[0]["volume"], reasons[0]["broker_id"]
    return f"volume {volume} of broker {broker_id} decides: run kquota relief on that broker's host"


def look(settings: Settings, volume: ReliefVolume, connection: OperatorConnection) -> ReliefLook:
    """Look at the segments on a volume, and ask the cluster about their topics and who has read these."""
    observed = volume.observed
    partitions = _partitions(observed)
    settings_in_force = _in_force(connection, broker_id_of(settings))
    has_remote_storage = settings_in_force.get(_REMOTE_STORAGE) == "true"
    notes: list[str] = []
    rules = _rules(connection, partitions, notes, has_remote_storage=has_remote_storage)
    broker = _broker_rules(settings_in_force)
    committed = connection.committed()
    known: Mapping[str, Offsets] = {}
    if isinstance(committed, KafkaFailure):
        notes.append(f"it is not known which consumer groups have read what goes: {committed.sentence}")
    else:
        known = committed
    targets, busy = _targets(volume, settings_in_force)
    rate, source = _copy_rate(settings, settings_in_force)
    situation = Situation(
        partitions,
        rules,
        broker,
        now_ms=round(time.time() * 1000),
        to_free_bytes=max(0, volume.room().missing_bytes),
        flows=not _is_paused(settings),
        committed=known,
        protected=settings.relief_protected,
        targets=targets,
        busy=busy,
        copy_bytes_per_second=rate,
    )
    return ReliefLook(situation, not isinstance(committed, KafkaFailure), tuple(notes), source)


def _targets(volume: ReliefVolume, in_force: Mapping[str, str]) -> tuple[list[Target], frozenset[str]]:
    """Return a log dir of each other volume that a move may go to, and the partitions that are moving."""
    cordoned = in_force.get(CORDONED, "").split(",")
    targets = []
    try:
        busy = copied_replicas(volume.all_log_dirs)
        for other in volume.others:
            offline = (*other.observed.offline_log_dirs, *cordoned)
            usable = [one for one in other.observed.log_dirs if one not in offline]
            if usable and ALL_CORDONED not in cordoned:
                room_bytes = -other.room().missing_bytes - _to_come_bytes(volume, other, busy)
                targets.append(Target(usable[0], room_bytes))
    except OSError as error:
        fail(f"the log dirs of the broker can't be listed: {error}")
    return targets, busy


def _to_come_bytes(volume: ReliefVolume, other: ReliefVolume, busy: frozenset[str]) -> int:
    """Return what copies that have begun will still take of a volume."""
    total_bytes = 0
    for dirs in replica_dirs(volume.all_log_dirs, busy).values():
        begun = [one for one in dirs if one.state is PartitionState.FUTURE]
        if any(one.log_dir in other.observed.log_dirs for one in begun):
            total_bytes += max(size_in(dirs, PartitionState.LOG) - size_in(begun, PartitionState.FUTURE), 0)
    return total_bytes


def _copy_rate(settings: Settings, in_force: Mapping[str, str]) -> tuple[int, str]:
    """Return the rate of moves between log dirs, and in words where it is from."""
    rate = settings.relief_copy_bytes_per_second
    bound = in_force.get(_COPY_BOUND, "")
    if bound.isascii() and bound.isdigit() and 0 < int(bound) < rate:
        return int(bound), f"{size_text(int(bound))}/s, the broker's {_COPY_BOUND}"
    return rate, f"{size_text(rate)}/s, as relief_copy_bytes_per_second assumes"


def _in_force(connection: OperatorConnection, broker_id: int) -> Mapping[str, str]:
    found = connection.broker_settings(broker_id).result()
    if isinstance(found, KafkaFailure):
        _unknown(found)
    return found


def _broker_rules(in_force: Mapping[str, str]) -> BrokerRules:
    try:
        return broker_rules(in_force)
    except InvalidTopicSettings as error:
        fail(f"the settings of the broker can't be used: {error}")


def _partitions(observed: VolumeObservation) -> list[PartitionOnDisk]:
    try:
        with SegmentLook(observed.log_dirs, files_per_second=0) as look_at_segments:
            partitions = list(look_at_segments.partitions())
            problem = look_at_segments.problem
    except OSError as error:
        problem, partitions = str(error), []
    if problem is not None:
        fail(f"the segments of volume {observed.name} can't be looked at: {problem}")
    return partitions


def _rules(
    connection: OperatorConnection,
    partitions: list[PartitionOnDisk],
    notes: list[str],
    *,
    has_remote_storage: bool,
) -> dict[str, TopicRules]:
    found = {}
    topics = sorted({one.topic for one in partitions})
    for topic, in_force in connection.settings_of(topics).items():
        if isinstance(in_force, KafkaFailure):
            if in_force.is_connection:
                _unknown(in_force)
            gone = "it does not exist any more, so that no settings say when the rest of it leaves"
            why = gone if in_force.kind is Kind.TOPIC_MISSING else in_force.sentence
            notes.append(f"topic {topic} is left alone: {why}")
            continue
        try:
            found[topic] = topic_rules(in_force, broker_has_remote_storage=has_remote_storage)
        except InvalidTopicSettings as error:
            notes.append(f"topic {topic} is left alone: {error}")
    return found


def _is_paused(settings: Settings) -> bool:
    """Whether producers to the topics on this host's full volume are held."""
    decision, _ = read_decision(settings.decision_file)
    return (
        decision is not None
        and decision["mode"] == Mode.ENFORCE.value
        and decision["state"] == State.PAUSE.value
    )


def _unknown(failure: KafkaFailure) -> NoReturn:
    fail(f"the cluster can't be asked: {failure.sentence}")
