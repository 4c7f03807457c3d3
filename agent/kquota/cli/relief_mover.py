"""Kafka's own tool for the moves of ``kquota relief``: where it is, how it connects, and what it is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import javaproperties
import typer

from kquota.cli.move_run import Replica
from kquota.cli.operator_config import DEFAULT_COMMAND_CONFIG, operator_config
from kquota.cli.relief_look import ReliefVolume
from kquota.core.relief_moves import place_of, reassignment
from kquota.core.relief_plan import PlannedStep
from kquota.core.segments import PartitionState
from kquota.kafka.config import ConfigurationError
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.operator_admin import OperatorConnection
from kquota.kafka.reassign_tool import NAMES, ReassignTool, ToolFailed, find_tool
from kquota.kafka.tool_properties import BOOTSTRAP, tool_properties
from kquota.observe.replica_dirs import ReplicaDir, replica_dirs, size_in
from kquota.settings import Settings

KafkaHomeOption = Annotated[
    Path | None,
    typer.Option(
        "--kafka-home",
        envvar="KAFKA_HOME",
        help="Kafka's directory, whose bin has the tool that moves replicas; by default /opt/kafka or /usr.",
    ),
]
ToolConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--tool-config",
        help="Client properties of that tool, where those of --command-config have no form for Java.",
    ),
]


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The options of the command that are about the tool."""

    command_config: Path | None
    kafka_home: Path | None
    tool_config: Path | None

    def tool(self, settings: Settings, volume: ReliefVolume) -> ReassignTool:
        """Return the tool, with an operator's credentials, or the agent's where there are none.

        Raises:
            ToolFailed: there is none, or it can't connect as the operator does.
        """
        path = find_tool(self.kafka_home)
        if path is None:
            where = "" if self.kafka_home is None else f" in {self.kafka_home}/bin"
            raise ToolFailed(f"{NAMES[0]} was not found{where}: name Kafka's directory by --kafka-home")
        options: Mapping[str, str] = settings.librdkafka()
        if self.command_config is not None or DEFAULT_COMMAND_CONFIG.exists():
            options = operator_config(self.command_config, settings).options
        try:
            properties = tool_properties(options) if self.tool_config is None else _read(self.tool_config)
            owner = Path(volume.observed.log_dirs[0]).stat()
        except ConfigurationError as error:
            raise ToolFailed(str(error)) from None
        except (OSError, ValueError) as error:
            raise ToolFailed(
                f"{self.tool_config or volume.observed.log_dirs[0]} can't be read: {error}"
            ) from None
        bootstrap = next((options[name] for name in BOOTSTRAP if options.get(name)), "")
        return ReassignTool(path, bootstrap, properties, (owner.st_uid, owner.st_gid))


@dataclass
class LogDirMover:
    """Moves of a broker's replicas to other log dirs of it; `volumes` are all of the broker."""

    tool: ReassignTool
    connection: OperatorConnection
    broker_id: int
    volumes: Sequence[ReliefVolume]
    stalled = timedelta(minutes=5)

    def reassigned(self) -> frozenset[str]:
        """Return the partitions that are being reassigned between brokers.

        Raises:
            ToolFailed: the cluster can't be asked.
        """
        return self.tool.reassigned()

    def obstacle(self) -> None:
        """Nothing of the cluster is in the way of moves between log dirs."""

    def look(self, steps: Collection[PlannedStep]) -> Mapping[str, Replica]:
        """Return the replicas of these steps, by their partitions; they are at log dirs."""
        found = local_dirs(self.volumes, [step.target for step in steps])
        return {name: _of_log_dirs(dirs) for name, dirs in found.items()}

    def target(self, goal: str, _other: str) -> str:
        """Return the log dir, in words."""
        return f"the volume of {goal}"

    def missing_bytes(self, target: str) -> int:
        """Return the bytes that its volume is over its soft limit; negative below it."""
        log_dir = target.removeprefix("the volume of ")
        rooms = (one.room for one in self.volumes if log_dir in one.observed.log_dirs)
        room = next(rooms, None)
        return 0 if room is None else room().missing_bytes

    def start(self, moves: Mapping[str, str]) -> None:
        """Have replicas copied to log dirs; to the one where a replica is, its copying ends.

        Raises:
            ToolFailed: not all of them have begun.
        """
        found = self.connection.replicas_of(topics_of(moves))
        if isinstance(found, KafkaFailure):
            raise ToolFailed(found.sentence)
        brokers = {name: one.brokers for name, one in found.items()}
        try:
            file = reassignment(moves, brokers, self.broker_id)
        except ValueError as error:
            raise ToolFailed(
                f"broker {self.broker_id} has no replica of partition {error} any more"
            ) from None
        self.tool.execute(file)

    def finish(self, moves: Mapping[str, str]) -> None:
        """Nothing is left of moves between log dirs."""


def local_dirs(volumes: Iterable[ReliefVolume], names: Collection[str]) -> Mapping[str, Sequence[ReplicaDir]]:
    """Return the directories of partitions on these volumes.

    Raises:
        ToolFailed: a log dir can't be listed.
    """
    log_dirs = [log_dir for one in volumes for log_dir in one.observed.log_dirs]
    try:
        return replica_dirs(log_dirs, names)
    except OSError as error:
        raise ToolFailed(f"the log dirs of the broker can't be listed: {error}") from None


def topics_of(names: Iterable[str]) -> list[str]:
    """Return the topics of partitions."""
    return sorted({place_of(name)[0] for name in names})


def _of_log_dirs(dirs: Sequence[ReplicaDir]) -> Replica:
    return Replica(
        next((one.log_dir for one in dirs if one.state is PartitionState.LOG), ""),
        next((one.log_dir for one in dirs if one.state is PartitionState.FUTURE), None),
        *(
            size_in(dirs, state)
            for state in (PartitionState.LOG, PartitionState.FUTURE, PartitionState.DELETED)
        ),
    )


def _read(path: Path) -> dict[str, str]:
    return dict(javaproperties.loads(path.read_bytes()))
