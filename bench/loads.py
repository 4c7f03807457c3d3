"""Starts producers for a broker: Java's or librdkafka's, at the same rate and with like settings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.processes import ChildProcess
from testbed.loopback.runtime import KafkaRuntime

RECORD_BYTES = 10_000
TOPIC_PREFIX = "bench-"
_BUFFER_BYTES = 32 * 2**20
_REPOSITORY = Path(__file__).resolve().parents[1]
_STOP_SECONDS = 20.0
_JAVA_LOAD = Path(__file__).with_name("JavaLoad.java")
_FIRST_FIELD = '{"acknowledged_records"'


class Client(StrEnum):
    """The client library of the producers."""

    JAVA = "Java"
    LIBRDKAFKA = "librdkafka"

    @property
    def largest_request_bytes(self) -> int:
        """The most that one request of a connection with one partition holds."""
        return 131_072 if self is Client.JAVA else 1_000_000


class Delivery(StrEnum):
    """The load of producers on the broker."""

    USUAL = "usual"
    """As the client has it by default: Java's is idempotent with acks=all, librdkafka's has acks=all."""
    ACKS_0 = "acks=0"
    ACKS_1 = "acks=1"
    ACKS_ALL = "acks=all"
    IDEMPOTENT = "idempotent"
    TRANSACTIONAL = "transactional"
    """Java alone: a transaction every half second."""

    @property
    def settings(self) -> tuple[str, ...]:
        """The client's, as name=value; both clients know these names."""
        if self is Delivery.USUAL:
            return ()
        if self in {Delivery.IDEMPOTENT, Delivery.TRANSACTIONAL}:
            return ("acks=all", "enable.idempotence=true")
        return (self.value, "enable.idempotence=false")


@dataclass(frozen=True, slots=True)
class LoadResults:
    """The producers' results until they were stopped."""

    acknowledged_records: int
    failed_records: int
    errors: list[str]
    median_milliseconds: float | None
    """From send to acknowledgement, without the first second; None where nothing was acknowledged."""
    p99_milliseconds: float | None


class JavaLoadClass:
    """A program in Java next to the bench, JavaLoad by default, compiled once below a directory."""

    def __init__(self, runtime: KafkaRuntime, directory: Path, source: Path = _JAVA_LOAD) -> None:
        self.runtime = runtime
        self.name = source.stem
        self.classes = directory / self.name
        command = [runtime.java, "-m", "jdk.compiler/com.sun.tools.javac.Main"]
        (clients,) = runtime.jars.glob("kafka-clients-*.jar")  # the compiler expands no wildcard
        command += ["-cp", str(clients), "-d", str(self.classes)]
        subprocess.run([*command, str(source)], check=True)

    def command(self) -> list[str]:
        """The command that runs it, without arguments."""
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
        return [self.runtime.java, *options, "-cp", self.runtime.class_path(self.classes), self.name]


class Load:
    """Running producers of one client, a process of their own; they end with the cluster at the latest."""

    def __init__(
        self,
        cluster: KafkaCluster,
        client: Client,
        connections: int,
        delivery: Delivery,
        rate_bytes: float,
        java: JavaLoadClass,
        log_path: Path,
        prefix: str = TOPIC_PREFIX,
        more_settings: Sequence[str] = (),
    ) -> None:
        """Start them; `rate_bytes` per second is shared by all connections, 0 means flat out.

        The setting also=PREFIX is the programs' own: each producer writes to a topic of that prefix, too, at
        the same rate.

        Raises:
            ValueError: this client has no such delivery here.
        """
        buffer_bytes = max(2 * 2**20, _BUFFER_BYTES // connections)
        if client is Client.JAVA:
            command = java.command()
            settings = [f"batch.size={client.largest_request_bytes}", f"buffer.memory={buffer_bytes}"]
        else:
            if delivery is Delivery.TRANSACTIONAL:
                raise ValueError(f"delivery: {delivery} is tried with {Client.JAVA} alone")
            command = [sys.executable, "-m", "bench.librdkafka_load"]
            settings = ["linger.ms=5", f"queue.buffering.max.kbytes={buffer_bytes // 1024}"]
        settings += delivery.settings
        if delivery is Delivery.TRANSACTIONAL:
            settings.append("transactional=true")
        settings += more_settings
        numbers = [str(connections), str(RECORD_BYTES), str(rate_bytes / connections)]
        self._process = ChildProcess(
            [*command, cluster.bootstrap_servers, prefix, *numbers, *settings],
            log_path=log_path,
            environment={**cluster.environment(), "PYTHONPATH": str(_REPOSITORY)},
        )

    def stop(self) -> LoadResults:
        """End them.

        Raises:
            RuntimeError: they ended before; with the end of their log.
        """
        self._process.terminate(_STOP_SECONDS)
        lines = self._process.log_path.read_text(errors="replace").splitlines()
        found = next((line for line in reversed(lines) if line.startswith(_FIRST_FIELD)), None)
        if found is None:
            raise RuntimeError(f"the load ended before its time:\n{self._process.log_tail()}")
        return LoadResults(**json.loads(found))


def topics(connections: int) -> Sequence[str]:
    """The topic of each connection."""
    return [f"{TOPIC_PREFIX}{number}" for number in range(1, connections + 1)]
