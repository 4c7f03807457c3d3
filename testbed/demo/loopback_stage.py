"""Sets the stage: the cluster, its topic, and, when protected, plug-in and agents."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import confluent_kafka
import yaml

from kquota.kafka.topics import usage_topic
from kquota.policy.limits import LimitPair
from testbed.demo.plan import Plan
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.node import ALL_COMPILERS
from testbed.loopback.plug_in import (
    CALLBACK,
    FENCE,
    FENCE_PROPERTIES,
    BrokerFiles,
    agent_name,
    broker_files,
    classes_of,
    loaded_plug_in,
    principals_of,
)
from testbed.loopback.processes import ChildProcess
from testbed.loopback.runtime import KafkaRuntime

BROKER_IDS = (1, 2, 3)
_WRITE_SECONDS = 60.0
# The command of this very installation, wherever PATH leads.
_KQUOTA = (sys.executable, "-c", "from kquota.cli.main import main; main()")


class AgentFailed(Exception):
    """An agent ended; the message holds the end of its log."""


def cluster_spec(plan: Plan, callback_jar: Path | None, *, has_metrics: bool = True) -> ClusterSpec:
    """Three brokers on volumes of their own; with the plug-in when its jar is given.

    `has_metrics`: whether their Kafka has a place for its metrics.
    """
    nodes = tuple(
        NodeSpec(
            node_id=broker_id,
            volumes=plan.volumes[broker_id],
            separate_metadata_dir=plan.separate_metadata,
            jvm_options=ALL_COMPILERS,
        )
        for broker_id in BROKER_IDS
    )
    classes = classes_of(has_metrics=has_metrics)
    fence = FENCE_PROPERTIES | {FENCE: classes[FENCE]} if callback_jar and plan.fence else {}
    plug_in = loaded_plug_in(principals_of(BROKER_IDS), classes[CALLBACK]) if callback_jar else None
    return ClusterSpec(
        nodes=nodes,
        properties=plan.broker_properties | fence,
        node_properties=plug_in,
        class_path=(callback_jar,) if callback_jar else (),
    )


def agent_configuration(cluster: KafkaCluster, broker_id: int, limits: LimitPair) -> dict[str, object]:
    """The content of a broker's agent.yml."""
    layout = cluster.nodes[broker_id].layout
    files = broker_files(layout)
    return {
        "broker": {"server_properties": str(layout.server_properties)},
        "kafka": cluster.client_configuration(agent_name(broker_id)),
        "limits": {"hard": limits.hard.to_document(), "soft": limits.soft.to_document()},
        "mode": "enforce",
        "decision_file": str(files.decision),
        "applied_file": str(files.applied),
        "state_dir": str(layout.directory / "kquota-state"),
        "metrics": {"listen": "127.0.0.1:0"},
    }


def start_agent(cluster: KafkaCluster, broker_id: int, limits: LimitPair, **settings: object) -> ChildProcess:
    """Start a broker's agent; other settings than usual are named."""
    (cluster.nodes[broker_id].layout.directory / "kquota-state").mkdir()
    document = agent_configuration(cluster, broker_id, limits) | settings
    agent_yml(cluster, broker_id).write_text(yaml.safe_dump(document, sort_keys=False))
    return _run_agent(cluster, broker_id)


def agent_yml(cluster: KafkaCluster, broker_id: int) -> Path:
    """Where the configuration of a broker's agent is."""
    return cluster.nodes[broker_id].layout.directory / "agent.yml"


def _run_agent(cluster: KafkaCluster, broker_id: int) -> ChildProcess:
    """Where the broker runs."""
    configuration = agent_yml(cluster, broker_id)
    return ChildProcess(
        [*cluster.nodes[broker_id].launcher, *_KQUOTA, "run", "--config", str(configuration)],
        log_path=configuration.with_name("agent.log"),
        # As its unit has it: without that, memory grows with each lost connection.
        environment={**cluster.environment(), "MALLOC_ARENA_MAX": "2"},
    )


class LoopbackStage:
    """The running cluster and, with a plug-in, one agent per broker."""

    def __init__(
        self,
        plan: Plan,
        runtime: KafkaRuntime,
        *,
        callback_jar: Path | None,
        report: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.protected = callback_jar is not None
        self.cluster = KafkaCluster(
            cluster_spec(plan, callback_jar, has_metrics=runtime.has_plug_in_metrics), runtime, report=report
        )
        self.agents: dict[int, ChildProcess] = {}
        self._report = report
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.cluster)
            if self.protected:
                self._report("starting an agent for each broker, connected by mutual TLS")
                for broker_id in BROKER_IDS:
                    self.agents[broker_id] = start_agent(
                        self.cluster,
                        broker_id,
                        self.plan.limits,
                        scope=self.plan.scope.value,
                        **self.plan.agent_settings,
                    )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    @property
    def files(self) -> dict[int, BrokerFiles]:
        """Per broker; empty without the plug-in."""
        if not self.protected:
            return {}
        return {node.node_id: broker_files(node.layout) for node in self.cluster.brokers}

    def restart_agent(self, broker_id: int) -> None:
        """Start one that has ended (terminate or kill it first); its state is kept."""
        self.agents[broker_id] = _run_agent(self.cluster, broker_id)

    def write_report(self, broker_id: int, value: bytes | None) -> None:
        """Write to the usage topic in the name of a broker; None removes its report.

        Raises:
            TimeoutError: it could not be written.
        """
        configuration = self.cluster.client_configuration(agent_name(broker_id))
        producer = confluent_kafka.Producer({**configuration, "log_level": 0})
        topic = usage_topic().name
        producer.produce(topic, key=str(broker_id), value=value)
        if producer.flush(_WRITE_SECONDS):
            raise TimeoutError(f"{topic} could not be written within {_WRITE_SECONDS:g} s")

    def check_agents(self) -> None:
        """See that no agent has ended.

        Raises:
            AgentFailed: one has.
        """
        for broker_id, agent in self.agents.items():
            if (code := agent.exit_code()) is not None:
                raise AgentFailed(f"the agent of broker {broker_id} ended with {code}:\n{agent.log_tail()}")
