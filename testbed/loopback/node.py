"""One Kafka node as a process: broker, controller, or both."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.loopback.broker_config import NodePorts, role_properties, write_properties
from testbed.loopback.ports import LOOPBACK, accepts_connections
from testbed.loopback.processes import ChildProcess
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import LoopVolume

# One collector thread and the quick compiler only: a node serves in half the time on a busy two-core machine.
_JVM_OPTIONS = ("-server", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto")


# As in production: replication over TLS is four times as fast with the compiler that knows the instructions
# for AES.
ALL_COMPILERS = ("-XX:TieredStopAtLevel=4",)


def node_name(node_id: int) -> str:
    """The common name in a node's certificate."""
    return f"kquota-broker-{node_id}"


class NodeFailed(Exception):
    """A node ended, or did not get ready in time; the message holds the end of its log."""


@dataclass(frozen=True)
class NodeLayout:
    """Where a node keeps what."""

    directory: Path
    log_dirs: tuple[Path, ...]
    metadata_log_dir: Path | None
    volumes: tuple[LoopVolume, ...]
    metadata_volume: LoopVolume | None = None
    """That of the metadata log dir, if it has one of its own."""

    @property
    def server_properties(self) -> Path:
        """The node's configuration file."""
        return self.directory / "server.properties"

    @property
    def log(self) -> Path:
        """The output of the node's process."""
        return self.directory / "node.log"


class KafkaNode:
    """Starts and stops one node; the loopback cluster makes it and waits for it."""

    def __init__(
        self,
        node_id: int,
        roles: Sequence[str],
        *,
        runtime: KafkaRuntime,
        layout: NodeLayout,
        ports: NodePorts,
        environment: Mapping[str, str],
        class_path: Sequence[Path] = (),
        heap_mebibytes: int = 256,
        jvm_options: Sequence[str] = (),
    ) -> None:
        self.node_id = node_id
        self.roles = tuple(roles)
        self.layout = layout
        self.ports = ports
        self.class_path = tuple(class_path)
        self.launcher: tuple[str, ...] = ()
        """The command that starts the next process, if it has to run elsewhere (a network of its own)."""
        self._runtime = runtime
        self._environment = dict(environment)
        self._jvm_options = (f"-Xmx{heap_mebibytes}m", "-Xms64m", *_JVM_OPTIONS, *jvm_options)
        self._process: ChildProcess | None = None
        self._properties: dict[str, str] = {}

    @property
    def is_broker(self) -> bool:
        """Whether it has the broker role."""
        return "broker" in self.roles

    @property
    def clients_address(self) -> str:
        """host:port of the plain-text listener for applications."""
        return f"{LOOPBACK}:{self.ports.clients}"

    @property
    def internal_address(self) -> str:
        """host:port of the listener for brokers and agents."""
        return f"{LOOPBACK}:{self.ports.internal}"

    @property
    def volumes(self) -> tuple[LoopVolume, ...]:
        """Its loop-mounted volumes, in the order of its log dirs; empty with plain directories."""
        return self.layout.volumes

    @property
    def log(self) -> Path:
        """The output of its process."""
        return self.layout.log

    @property
    def pid(self) -> int:
        """Process id of the node."""
        return self._started().pid

    def running(self) -> bool:
        """Whether its process has been started and has not ended."""
        return self._process is not None and self._process.running()

    def configure(self, properties: Mapping[str, str]) -> None:
        """Write server.properties; a running node reads it at its next start."""
        self._properties = dict(properties)
        write_properties(self.layout.server_properties, self._properties)

    def change(self, runtime: KafkaRuntime, properties: Mapping[str, str]) -> None:
        """Have its next start use this Kafka, and these properties besides those it has."""
        self._runtime = runtime
        self.configure({**self._properties, **properties})

    def take_roles(self, roles: Sequence[str]) -> None:
        """Have its next start have these roles."""
        self.roles = tuple(roles)
        self.configure({**self._properties, **role_properties(roles, self.ports)})

    def format_command(
        self, cluster_id: str, *, ignore_formatted: bool = False, quorum: Sequence[str] = ()
    ) -> ChildProcess:
        """Start formatting its log dirs (`kafka-storage format`); the caller waits for the end.

        `ignore_formatted`: some are, and stay as they are. `quorum` are options of a dynamic one.
        """
        return self._java(
            "kafka.tools.StorageTool",
            [
                "format",
                *("-t", cluster_id, "-c", str(self.layout.server_properties)),
                *(["--ignore-formatted"] if ignore_formatted else []),
                *quorum,
            ],
        )

    def start(self) -> None:
        """Start the process; returns at once."""
        if self.running():
            raise ValueError(f"node {self.node_id} is running (pid {self.pid})")
        self._process = self._java("kafka.Kafka", [str(self.layout.server_properties)])

    def stop(self, timeout_seconds: float = 60.0) -> None:
        """Controlled shutdown: leaders move away first; killed when it takes longer."""
        process = self._started()
        process.send(signal.SIGCONT)
        process.terminate(timeout_seconds)

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer would."""
        self._started().kill()

    def suspend(self) -> None:
        """SIGSTOP: the node hangs, its connections stay."""
        self._started().send(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `suspend`."""
        self._started().send(signal.SIGCONT)

    def accepts_connections(self) -> bool:
        """Whether its main listener answers; a node that has ended is an error.

        Raises:
            NodeFailed: the process has ended.
        """
        process = self._started()
        if (code := process.exit_code()) is not None:
            raise NodeFailed(
                f"node {self.node_id} ended with {code}; end of {self.layout.log}:\n{self.log_tail()}"
            )
        return accepts_connections(self.ports.clients if self.is_broker else self.ports.controller)

    def log_tail(self, lines: int = 25) -> str:
        """The last lines of its log."""
        return self._started().log_tail(lines)

    def _started(self) -> ChildProcess:
        if self._process is None:
            raise ValueError(f"node {self.node_id} has not been started")
        return self._process

    def _archived(self) -> tuple[str, ...]:
        """Classes from the archive, if there is one; one that does not fit is left aside without a word."""
        if not self._runtime.archive.exists():
            return ()
        return (f"-XX:SharedArchiveFile={self._runtime.archive}", "-Xlog:cds*=off")

    def _java(self, main_class: str, arguments: Sequence[str]) -> ChildProcess:
        return ChildProcess(
            [
                *self.launcher,
                self._runtime.java,
                *self._archived(),
                *self._jvm_options,
                f"-Dlog4j2.configurationFile={self._runtime.logging_configuration}",
                "-cp",
                self._runtime.class_path(*self.class_path),
                main_class,
                *arguments,
            ],
            log_path=self.layout.log,
            environment=self._environment,
        )
