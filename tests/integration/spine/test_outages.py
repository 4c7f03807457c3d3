"""What takes minutes: a cluster that loses its controller, its topic, its network; replication in a pause.

The tests share a fleet and come in this order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kquota.demo.clients import admin_client, create_topic
from kquota.demo.runtime import KafkaRuntime
from kquota.publish.topics import usage_topic
from tests.integration.spine.agents import agent_name, eventually
from tests.integration.spine.fleet import QUICK, USAGE_TOPIC, Fleet

pytestmark = [pytest.mark.long, pytest.mark.timeout(420)]

STALENESS_SECONDS = 25
ALL = [1, 2, 3]
Measured = Callable[[str, object], None]


@pytest.fixture
def fragile(shared: Fleet) -> Iterator[Fleet]:
    """The shared fleet, left with empty disks and a compacted topic."""
    yield shared
    shared.clear()
    for node in shared.cluster.brokers:
        if not node.running():
            shared.cluster.restart(node.node_id, timeout_seconds=90)
    alter(shared, ResourceType.TOPIC, USAGE_TOPIC, cleanup_policy="compact")
    for agent in shared.of():
        if not agent.process.running():
            agent.start()


@pytest.fixture(scope="module")
def shared(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """Three brokers; the usage topic has one replica, on the broker that is the active controller."""
    settings = {**QUICK, "staleness_seconds": STALENESS_SECONDS, "join_grace_seconds": 10}
    properties = {"replica.lag.time.max.ms": "5000"}
    volumes = {1: 1, 2: 1, 3: 1}
    with Fleet(kafka_runtime, callback_jar, volumes, settings=settings, properties=properties) as fleet:
        topic = usage_topic()
        create_topic(admin_of(fleet), topic.name, [[controller(fleet)]], topic.settings)
        for agent in fleet.of():
            agent.start()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        yield fleet


def admin_of(fleet: Fleet) -> AdminClient:
    return admin_client(fleet.cluster.client_configuration(agent_name(1)))


def controller(fleet: Fleet) -> int:
    """The active controller: the one that says so for the highest epoch."""
    epochs = {}
    for node in fleet.cluster.brokers:
        lines = node.layout.log.read_text("utf-8", "replace").splitlines()
        said = [line for line in lines if "Becoming the active controller at epoch" in line]
        if said:
            epochs[int(said[-1].split("at epoch ")[1].split()[0].rstrip(",."))] = node.node_id
    return epochs[max(epochs)]


def alter(fleet: Fleet, kind: ResourceType, name: str, **changes: str) -> None:
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in changes.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = admin_of(fleet)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(timeout=30)


@contextmanager
def leases_hold(fleet: Fleet, ids: list[int]) -> Iterator[Callable[[], None]]:
    """No lease of those brokers may have run out: looked at when it is called, and at the end."""
    begun = {i: fleet.agents[i].decision["sequence"] for i in ids}  # type: ignore[index]

    def look() -> None:
        for i in ids:
            applied = fleet.agents[i].applied
            assert applied is not None
            assert applied["lost"] is None, f"broker {i}: {applied}"

    yield look
    look()
    for i in ids:
        assert fleet.agents[i].decision["sequence"] > begun[i] + 3, "leases were renewed"  # type: ignore[index]


@pytest.mark.accepts("F15")
def test_a_topic_without_a_leader_after_a_failover_leaves_the_view_until_it_is_stale(
    fragile: Fleet, record_property: Measured
) -> None:
    dead = controller(fragile)
    others = [i for i in ALL if i != dead]
    marks = fragile.marks()
    with leases_hold(fragile, others) as look:
        fragile.cluster.nodes[dead].kill()
        begun = time.monotonic()
        eventually(lambda: controller(fragile) != dead, "another controller has taken over")
        while time.monotonic() - begun < 0.7 * STALENESS_SECONDS:
            look()
            assert all(agent.state == "OPEN" for agent in fragile.of(others)), "the view stands"
            time.sleep(0.2)
        eventually(
            lambda: all(agent.state == "PAUSE" for agent in fragile.of(others)), "stale records end it"
        )
        record_property("safe_seconds", time.monotonic() - begun)
        for agent in fragile.of(others):
            assert {entry["cause"] for entry in agent.decision["undetermined"]} == {"stale"}
            told = agent.journal(marks[agent.broker_id])
            assert any(USAGE_TOPIC in sentence for level, sentence in told if level == "WARNING")
        begun = time.monotonic()
        fragile.cluster.restart(dead)
        fragile.await_enforced("OPEN", timeout_seconds=90)
        record_property("recovery_seconds", time.monotonic() - begun)
