"""A look at the volume that relief is for: figures, segments, settings of topics, and who has read what."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from kquota.cli import exit_codes
from kquota.cli.configuration import broker_id_of, broker_of
from kquota.cli.local import look_at_volumes
from kquota.cli.local_state import read_decision
from kquota.cli.operator_config import DEFAULT_COMMAND_CONFIG, operator_config
from kquota.cli.output import fail
from kquota.cli.relief_run import Room, soft_room
from kquota.core.decision import Mode, State
from kquota.core.relief import Situation
from kquota.core.segments import (
    BrokerRules,
    InvalidTopicSettings,
    PartitionOnDisk,
    TopicRules,
    broker_rules,
    topic_rules,
)
from kquota.core.usage import VolumeRole
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.operator_admin import Offsets, OperatorConnection
from kquota.observe.observation import VolumeObservation
from kquota.observe.segments import SegmentLook
from kquota.settings import Settings
from kquota.write.agent_state import FILE_NAME, AgentStateFile

CLIENT_NAME = "cli"
_REMOTE_STORAGE = "remote.log.storage.system.enable"


@dataclass(frozen=True, slots=True)
class ReliefVolume:
    """The volume that relief is for."""

    observed: VolumeObservation
    soft_bytes: float
    hard_bytes: float

    def room(self) -> Room:
        """Look how much it has consumed now."""
        status = os.statvfs(self.observed.mount_point)
        consumed_bytes = (status.f_blocks - status.f_bavail) * status.f_frsize
        return soft_room(consumed_bytes, self.soft_bytes)


@dataclass(frozen=True, slots=True)
class ReliefLook:
    """All that options are ranked by; ``notes`` are what could not be learnt."""

    situation: Situation
    groups_known: bool
    notes: tuple[str, ...]


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
        if wanted in (volume.name, volume.mount_point, *volume.log_dirs):
            return one
        found.append((bounds.headroom(volume.consumed_bytes or 0), one))
    if wanted is not None:
        names = ", ".join(one.observed.name for _, one in found)
        fail(f"--volume {wanted}: is no volume of this broker; there are {names}", exit_codes.USAGE)
    over = [(headroom, one) for headroom, one in found if headroom < 1]
    return min(over, key=lambda pair: pair[0])[1] if over else None


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
    settings_in_force = connection.broker_settings(broker_id_of(settings)).result()
    if isinstance(settings_in_force, KafkaFailure):
        _unknown(settings_in_force)
    has_remote_storage = settings_in_force.get(_REMOTE_STORAGE) == "true"
    notes: list[str] = []
    rules = _rules(connection, partitions, notes, has_remote_storage=has_remote_storage)
    try:
        broker = broker_rules(settings_in_force)
    except InvalidTopicSettings as error:
        fail(f"the settings of broker {broker_id_of(settings)} can't be used: {error}")
    committed = connection.committed()
    known: Mapping[str, Offsets] = {}
    if isinstance(committed, KafkaFailure):
        notes.append(f"it is not known which consumer groups have read what goes: {committed.sentence}")
    else:
        known = committed
    situation = Situation(
        partitions,
        rules,
        BrokerRules(broker.retention_check_interval_ms, broker.checked_ms),
        now_ms=round(time.time() * 1000),
        to_free_bytes=max(0, volume.room().missing_bytes),
        flows=not _is_paused(settings),
        committed=known,
        protected=settings.relief_protected,
    )
    return ReliefLook(situation, not isinstance(committed, KafkaFailure), tuple(notes))


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
            notes.append(f"topic {topic} is left alone: {in_force.sentence}")
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
