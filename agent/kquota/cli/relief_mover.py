"""Kafka's own tool for the moves of ``kquota relief``: where it is, how it connects, and what it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import javaproperties
import typer

from kquota.cli.operator_config import DEFAULT_COMMAND_CONFIG, operator_config
from kquota.cli.relief_look import ReliefVolume
from kquota.core.relief_moves import place_of, reassignment
from kquota.kafka.config import ConfigurationError
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.operator_admin import OperatorConnection
from kquota.kafka.reassign_tool import NAMES, ReassignTool, ToolFailed, find_tool
from kquota.kafka.tool_properties import BOOTSTRAP, tool_properties
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

    def reassigned(self, settings: Settings, volume: ReliefVolume) -> frozenset[str] | str:
        """Return the partitions that are being reassigned between brokers, or why they are not known."""
        try:
            return self.tool(settings, volume).reassigned()
        except ToolFailed as error:
            return str(error)


@dataclass(frozen=True, slots=True)
class KafkaMover:
    """Moves of the replicas of one broker between its log dirs."""

    tool: ReassignTool
    connection: OperatorConnection
    broker_id: int

    def reassigned(self) -> frozenset[str]:
        """Return the partitions that are being reassigned between brokers.

        Raises:
            ToolFailed: the cluster can't be asked.
        """
        return self.tool.reassigned()

    def start(self, moves: Mapping[str, str]) -> None:
        """Have replicas copied to log dirs; to the one where a replica is, its copying ends.

        Raises:
            ToolFailed: not all of them have begun.
        """
        replicas: dict[str, list[int]] = {}
        for topic in sorted({place_of(name)[0] for name in moves}):
            found = self.connection.replicas(topic).result()
            if isinstance(found, KafkaFailure):
                raise ToolFailed(found.sentence)
            replicas |= {f"{topic}-{partition}": list(brokers) for partition, brokers in found.items()}
        try:
            file = reassignment(moves, replicas, self.broker_id)
        except ValueError as error:
            raise ToolFailed(
                f"broker {self.broker_id} has no replica of partition {error} any more"
            ) from None
        self.tool.execute(file)


def _read(path: Path) -> dict[str, str]:
    return dict(javaproperties.loads(path.read_bytes()))
