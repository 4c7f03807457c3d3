"""A protected cluster to play with: it runs until it is interrupted, and does nothing by itself."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from kquota.policy.decision import Scope
from testbed.demo.loopback_stage import BROKER_IDS, LoopbackStage
from testbed.demo.plan import Plan
from testbed.loopback.plug_in import OPERATOR, write_operator_properties
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, VolumeSpec

ENVIRONMENT_FILE = "env"
MARKER = ".kquota-playground"
# The names under which Kafka ships its tools, and their classes.
_TOOLS = {
    "kafka-configs.sh": "org.apache.kafka.tools.ConfigCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records.sh": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs.sh": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test.sh": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}
_LOOK_SECONDS = 0.5
_ENVIRONMENT = """\
# For a shell that wants to work with the playground: . {file}
export PLAYGROUND={directory}
export BOOTSTRAP={bootstrap}
export PATH={directory}/bin:{commands}:$PATH
# on 1 kquota status: as on the host of broker 1, where kquota finds both configurations by itself
on() {{
  _broker=$1; shift
  case "$1 $2" in
    "kquota hold" | "kquota quarantine" | "kquota maintenance" | "kquota decommission" | \\
    "kquota relief")
      "$@" --config "$PLAYGROUND/broker-$_broker.yml" --command-config "$PLAYGROUND/operator.properties" ;;
    *) "$@" --config "$PLAYGROUND/broker-$_broker.yml" ;;
  esac
}}
"""


class DirectoryTaken(Exception):
    """There is something else in the directory that the playground is to have; the message names it."""


def require_own_directory(directory: Path) -> None:
    """See that nothing is lost when the playground takes the directory, and removes it at its end.

    Raises:
        DirectoryTaken: it holds what no playground has left there.
    """
    if not directory.exists() or (directory / MARKER).is_file():
        return
    if not directory.is_dir() or any(directory.iterdir()):
        raise DirectoryTaken(f"{directory} is no playground's; name a directory to make with --directory")


def playground_plan() -> Plan:
    """One volume for each broker, broker 3's the smallest."""
    sizes = {1: 500, 2: 500, 3: 300}
    volumes = {broker_id: (VolumeSpec(sizes[broker_id] * MIB),) for broker_id in BROKER_IDS}
    return Plan(volumes=volumes, separate_metadata=False, scope=Scope.CLUSTER)


class Playground:
    """The directory through which others find the cluster: configurations, disks and Kafka's tools."""

    def __init__(self, directory: Path, stage: LoopbackStage, runtime: KafkaRuntime) -> None:
        self.directory = directory.absolute()
        self._stage = stage
        self._runtime = runtime

    def __enter__(self) -> Self:
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "bin").mkdir(parents=True)
        (self.directory / MARKER).touch()
        for node in self._stage.cluster.brokers:
            configuration = node.layout.directory / "agent.yml"
            (self.directory / f"broker-{node.node_id}.yml").symlink_to(configuration)
            (self.directory / f"disk-{node.node_id}").symlink_to(node.volumes[0].mount_point)
        operators = self._stage.cluster.client_configuration(OPERATOR)
        write_operator_properties(self.directory / "operator.properties", operators)
        for name, main_class in _TOOLS.items():
            self._write_tool(self.directory / "bin" / name, main_class)
        text = _ENVIRONMENT.format(
            file=self.directory / ENVIRONMENT_FILE,
            directory=shlex.quote(str(self.directory)),
            bootstrap=self._stage.cluster.bootstrap_servers,
            commands=shlex.quote(str(Path(sys.executable).parent)),
        )
        (self.directory / ENVIRONMENT_FILE).write_text(text, "utf-8")
        return self

    def __exit__(self, *_error: object) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def stay(self, report: Callable[[str], None]) -> None:
        """Print how to get there, and stay until interrupted.

        Raises:
            AgentFailed: an agent has ended.
        """
        report(f"ready: in another terminal: . {self.directory / ENVIRONMENT_FILE}")
        report("Ctrl-C ends it and leaves nothing behind")
        while True:
            time.sleep(_LOOK_SECONDS)
            self._stage.check_agents()

    def _write_tool(self, path: Path, main_class: str) -> None:
        """A script as Kafka's own, with little memory and quick to start."""
        java = [self._runtime.java, "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", self._runtime.class_path()]
        path.write_text(f'#!/bin/sh\nexec {shlex.join([*java, main_class])} "$@"\n', "utf-8")
        path.chmod(0o755)
