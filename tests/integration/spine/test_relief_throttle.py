"""`kquota relief` names the replication that fills a volume in a PAUSE, and slows exactly that."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import QUICK, Fleet, min_free
from tests.integration.spine.reassign_tool import ReassignTool
from tests.integration.waiting import eventually
from tests.unit.policy.golden import complaints

HARD_FREE_BYTES, SOFT_FREE_BYTES = 300 * MIB, 310 * MIB
REPLICA_BYTES, RECORD_BYTES = 280 * MIB, 64 * 1024
NETWORK_BYTES_PER_SECOND = 2_000_000
FOLLOWER = "follower.replication.throttled"


@pytest.fixture(scope="module")
def growing(
    kafka_runtime: KafkaRuntime, callback_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    """Two brokers; the first one is full, and gets a replica through a slow network."""
    limits = min_free(hard_bytes=HARD_FREE_BYTES, soft_bytes=SOFT_FREE_BYTES)
    with Fleet(kafka_runtime, callback_jar, {1: 1, 2: 1}, settings=QUICK | {"limits": limits}) as fleet:
        for agent in fleet.agents.values():
            agent.start()
        fleet.await_enforced("OPEN")
        create_topic(admin_client(fleet.cluster.client_configuration()), "visits", [[2]], {})
        write(fleet)
        fleet.disk(1).fill(leave_bytes=HARD_FREE_BYTES - MIB)
        fleet.await_enforced("PAUSE")
        # Kafka's throttle of the leader is the slow network.
        configure(fleet, ResourceType.TOPIC, "visits", "leader.replication.throttled.replicas", "0:2")
        rate = str(NETWORK_BYTES_PER_SECOND)
        configure(fleet, ResourceType.BROKER, "2", "leader.replication.throttled.rate", rate)
        tool = ReassignTool.of(kafka_runtime, tmp_path_factory.mktemp("kafka") / "bin", fleet.cluster)
        tool.execute({"visits-0": [2, 1]})
        yield fleet


def write(fleet: Fleet) -> None:
    producer = Producer(fleet.cluster.client_configuration() | {"linger.ms": 0, "batch.size": RECORD_BYTES})
    for _ in range(REPLICA_BYTES // RECORD_BYTES):
        producer.produce("visits", os.urandom(RECORD_BYTES - 500))
        producer.poll(0)
    assert producer.flush(60) == 0


def configure(fleet: Fleet, kind: ResourceType, target: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, target, incremental_configs=[entry])
    admin = admin_client(fleet.cluster.client_configuration())
    admin.incremental_alter_configs([resource])[resource].result(30)


def throttles(fleet: Fleet) -> dict[str, str]:
    """The throttles of followers that are set."""
    admin = admin_client(fleet.cluster.client_configuration())
    found = {}
    for resource in [ConfigResource(ResourceType.TOPIC, "visits"), ConfigResource(ResourceType.BROKER, "1")]:
        (future,) = admin.describe_configs([resource]).values()
        found |= {
            f"{resource.name} {name}": str(entry.value)
            for name, entry in future.result(30).items()
            if name.startswith(FOLLOWER) and not entry.is_default
        }
    return found


def growth(fleet: Fleet, seconds: float) -> float:
    """The bytes per second that come to the first broker's replica."""
    directory = fleet.cluster.nodes[1].layout.log_dirs[0] / "visits-0"

    def size_bytes() -> int:
        return sum(one.stat().st_blocks * 512 for one in directory.glob("*.log"))

    before, begun = size_bytes(), time.monotonic()
    time.sleep(seconds)
    return (size_bytes() - before) / (time.monotonic() - begun)


def relief(agent: AgentProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    return agent.cli("relief", *arguments, "--command-config", str(agent.operator))


@pytest.mark.long  # two brokers with agents
@pytest.mark.accepts("G15")
def test_the_replication_that_fills_a_volume_is_named_slowed_and_let_go(
    growing: Fleet, tmp_path: Path
) -> None:
    agent, plan = growing.agents[1], tmp_path / "plan.json"
    eventually(
        lambda: growth(growing, 5) > NETWORK_BYTES_PER_SECOND / 10, "the replica is copied in the PAUSE"
    )
    ranked = json.loads(relief(agent, "--json").stdout)
    (note,) = [one for one in ranked["notes"] if one.startswith("replication fills volume ")]
    assert note.startswith(f"replication fills volume {growing.disk(1).device} at ")
    assert "/s: it gets replicas of visits-0, and is full in " in note
    explained = agent.order("explain")
    assert f"replication fills volume {growing.disk(1).device} at " in explained

    kinds = [one["steps"][0]["kind"] for one in ranked["options"]]
    number = str(kinds.index("throttle") + 1)
    made = relief(
        agent, "--plan", str(plan), "--option", number, "--reason", "it is full", "--actor", "alice"
    )
    assert made.returncode == 0, made.stderr
    assert "frees nothing, and slows what is copied to this volume" in made.stdout
    assert complaints("relief", json.loads(plan.read_text("utf-8"))) == []
    assert throttles(growing) == {}

    applied = relief(agent, "--apply", str(plan))
    assert applied.returncode == 0, applied.stderr + applied.stdout
    (replicas, rate) = (f"visits {FOLLOWER}.replicas", f"1 {FOLLOWER}.rate")
    eventually(lambda: throttles(growing).keys() == {replicas, rate}, "the broker has heard of both")
    assert throttles(growing)[replicas] == "0:1"
    eventually(lambda: growth(growing, 12) < NETWORK_BYTES_PER_SECOND / 20, "the replica hardly grows")
    assert agent.state == "PAUSE"

    undone = relief(agent, "--undo", str(plan))
    assert undone.returncode == 0, undone.stderr + undone.stdout
    eventually(lambda: throttles(growing) == {}, "the broker has heard of their end")
    eventually(lambda: growth(growing, 5) > NETWORK_BYTES_PER_SECOND / 10, "the replica is copied again")
