"""`kquota relief` moves replicas from a full broker to others while all producers are held."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import ConfigResource, ResourceType

from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import QUICK, Fleet, min_free
from tests.integration.spine.reassign_tool import NAME, ReassignTool
from tests.integration.waiting import eventually
from tests.unit.policy.golden import complaints

HARD_FREE_BYTES, SOFT_FREE_BYTES = 100 * MIB, 110 * MIB
PARTITIONS, REPLICA_BYTES, RECORD_BYTES = 3, 16 * MIB, 64 * 1024
RATE = 10_000_000
BEFORE = {f"visits-{number}": [1, 2] for number in range(PARTITIONS)}


@dataclass
class Cluster:
    fleet: Fleet
    tool: ReassignTool

    @property
    def agent(self) -> AgentProcess:
        return self.fleet.agents[1]

    def relief(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.agent.cli("relief", *arguments, "--command-config", str(self.agent.operator))

    def replicas(self) -> dict[str, list[int]]:
        admin = admin_client(self.fleet.cluster.client_configuration())
        (future,) = admin.describe_topics(TopicCollection(["visits"])).values()
        return {
            f"visits-{one.id}": [node.id for node in one.replicas] for one in future.result(30).partitions
        }

    def throttles(self) -> dict[str, str]:
        """All of Kafka's throttles of replication that are set."""
        admin = admin_client(self.fleet.cluster.client_configuration())
        found = {}
        for resource in [
            ConfigResource(ResourceType.TOPIC, "visits"),
            *(ConfigResource(ResourceType.BROKER, str(one)) for one in self.fleet.agents),
        ]:
            (future,) = admin.describe_configs([resource]).values()
            found |= {
                f"{resource.name} {name}": entry.value
                for name, entry in future.result(30).items()
                if ".replication.throttled." in name and not entry.is_default
            }
        return found


@pytest.fixture(scope="module")
def cluster(
    kafka_runtime: KafkaRuntime, callback_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three brokers, with a topic on two of them."""
    limits = min_free(hard_bytes=HARD_FREE_BYTES, soft_bytes=SOFT_FREE_BYTES)
    with Fleet(
        kafka_runtime,
        callback_jar,
        {1: 1, 2: 1, 3: 1},
        settings=QUICK | {"limits": limits, "relief_copy_bytes_per_second": RATE},
        properties={"log.segment.delete.delay.ms": "3000", "log.initial.task.delay.ms": "1000"},
    ) as fleet:
        for agent in fleet.agents.values():
            agent.start()
        fleet.await_enforced("OPEN")
        create_topic(admin_client(fleet.cluster.client_configuration()), "visits", list(BEFORE.values()))
        write(fleet)
        tool = ReassignTool.of(kafka_runtime, tmp_path_factory.mktemp("kafka") / "bin", fleet.cluster)
        yield Cluster(fleet, tool)


def write(fleet: Fleet) -> None:
    """Give each partition the bytes of a replica."""
    producer = Producer(fleet.cluster.client_configuration() | {"linger.ms": 0, "batch.size": RECORD_BYTES})
    for number in range(PARTITIONS * REPLICA_BYTES // RECORD_BYTES):
        producer.produce("visits", os.urandom(RECORD_BYTES - 500), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0


def planned(cluster: Cluster, plan: Path) -> tuple[dict[str, Any], str]:
    """The plan, and the command for it."""
    made = cluster.relief("--plan", str(plan), "--reason", "broker 1 is full", "--actor", "alice")
    assert made.returncode == 0, made.stderr
    document = dict(json.loads(plan.read_text("utf-8")))
    assert complaints("relief", document) == []
    assert [(step["kind"], step["from"], step["to"]) for step in document["steps"]] == [
        ("replica-move", "1,2", "3,2")
    ] * 2
    checked = cluster.relief("--check", str(plan))
    assert (checked.returncode, checked.stderr) == (0, "")
    (command,) = (line for line in made.stdout.splitlines() if line.startswith(NAME))
    return document, command


@pytest.mark.long  # three brokers with agents, and some runs of the tool
@pytest.mark.accepts("G15")
def test_replicas_move_to_another_broker_in_a_pause_and_back(cluster: Cluster, tmp_path: Path) -> None:
    fleet, plan = cluster.fleet, tmp_path / "plan.json"
    ballast = fleet.disk(1).fill(leave_bytes=HARD_FREE_BYTES - 8 * MIB)
    fleet.await_enforced("PAUSE")
    document, command = planned(cluster, plan)
    assert command.endswith(f" --throttle {RATE}")

    # Replication goes on in a PAUSE, and ends it.
    consumed_bytes = fleet.disk(1).consumed_bytes()
    cluster.tool.run(command)
    assert cluster.throttles() != {}
    moved = {step["target"] for step in document["steps"]}
    after = BEFORE | {name: [3, 2] for name in moved}
    eventually(lambda: cluster.replicas() == after, "they are moved, and nothing else", 120)
    fleet.await_enforced("OPEN")
    freed_bytes = consumed_bytes - fleet.disk(1).consumed_bytes()
    assert freed_bytes == pytest.approx(sum(step["frees_bytes"] for step in document["steps"]), rel=0.2)
    end_of(cluster, command)

    ballast.unlink()
    back = command.replace(str(plan), str(tmp_path / "plan-back.json"))
    cluster.tool.run(back)
    eventually(lambda: cluster.replicas() == BEFORE, "they are back", 120)
    end_of(cluster, back)


def end_of(cluster: Cluster, command: str) -> None:
    """Run a command as kquota says that it ends."""
    cluster.tool.run(command.partition(" --execute")[0] + " --verify")
    eventually(lambda: cluster.throttles() == {}, "the brokers have heard of the throttle's end")
