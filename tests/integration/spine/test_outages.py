"""Outages of minutes: a cluster that loses its controller, its topic, its network; replication in a pause.

The tests share a fleet and come in this order.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from kquota.kafka.topics import usage_topic
from testbed.loopback.clients import admin_client, create_topic, visible_brokers
from testbed.loopback.island import Island, island
from testbed.loopback.node import KafkaNode
from testbed.loopback.plug_in import agent_name
from testbed.loopback.processes import ChildProcess
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import QUICK, USAGE_TOPIC, Fleet
from tests.integration.waiting import eventually

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
        create_topic(admin_of(fleet), topic.name, [[fleet.cluster.active_controller()]], topic.settings)
        for agent in fleet.of():
            agent.start()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        yield fleet


def admin_of(fleet: Fleet) -> AdminClient:
    return admin_client(fleet.cluster.client_configuration(agent_name(1)))


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


def names_the_topic(agent: AgentProcess, mark: int) -> bool:
    """Whether a warning since the mark names the usage topic."""
    return any(level == "WARNING" and USAGE_TOPIC in sentence for level, sentence in agent.journal(mark))


@pytest.mark.accepts("F15")
def test_a_topic_without_a_leader_after_a_failover_leaves_the_view_until_it_is_stale(
    fragile: Fleet, record_property: Measured
) -> None:
    dead = fragile.cluster.active_controller()
    others = [i for i in ALL if i != dead]
    marks = fragile.marks()
    with leases_hold(fragile, others) as look:
        fragile.cluster.nodes[dead].kill()
        begun = time.monotonic()
        eventually(lambda: fragile.cluster.active_controller() != dead, "another controller has taken over")
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
            eventually(partial(names_the_topic, agent, marks[agent.broker_id]), "the journal names the topic")
        begun = time.monotonic()
        fragile.cluster.restart(dead)
        fragile.await_enforced("OPEN", timeout_seconds=90)
        record_property("recovery_seconds", time.monotonic() - begun)


@pytest.mark.accepts("F10", "A12")
def test_a_topic_that_deletes_is_refused_until_it_is_compacted_again(
    fragile: Fleet, record_property: Measured
) -> None:
    marks, begun = fragile.marks(), time.monotonic()
    alter(fragile, ResourceType.TOPIC, USAGE_TOPIC, cleanup_policy="delete")
    fragile.await_enforced("PAUSE")
    record_property("safe_seconds", time.monotonic() - begun)
    for agent in fragile.of():
        assert [entry["cause"] for entry in agent.decision["undetermined"]] == ["topic-refused"]
        agent.await_metric(1, "kquota_undetermined", broker="", cause="topic-refused")
        mark = marks[agent.broker_id]
        eventually(
            lambda agent=agent, mark=mark: agent.told("cleanup.policy", since=mark), "the journal says why"
        )
    begun = time.monotonic()
    alter(fragile, ResourceType.TOPIC, USAGE_TOPIC, cleanup_policy="compact")
    fragile.await_enforced("OPEN")
    record_property("recovery_seconds", time.monotonic() - begun)


@pytest.mark.accepts("F10", "A12")
def test_a_topic_with_partitions_added_is_refused_until_it_is_made_again(fragile: Fleet) -> None:
    marks, admin = fragile.marks(), admin_of(fragile)
    admin.create_partitions([NewPartitions(USAGE_TOPIC, 5)])[USAGE_TOPIC].result(timeout=30)
    fragile.await_enforced("PAUSE")
    said = "partitions were added"
    for agent in fragile.of():
        assert [entry["cause"] for entry in agent.decision["undetermined"]] == ["topic-refused"]
        agent.await_metric(1, "kquota_undetermined", broker="", cause="topic-refused")
        mark = marks[agent.broker_id]
        eventually(lambda agent=agent, mark=mark: agent.told(said, since=mark), "the journal says why")
    # also to an agent that starts only now
    fragile.agents[2].stop()
    fragile.agents[2].start()
    fragile.await_enforced("PAUSE")
    assert [entry["cause"] for entry in fragile.agents[2].decision["undetermined"]] == ["topic-refused"]
    status = fragile.agents[1].cli("status", "--json")
    assert said in status.stdout
    admin.delete_topics([USAGE_TOPIC])[USAGE_TOPIC].result(timeout=30)
    fragile.read_anew()
    fragile.await_enforced("OPEN", timeout_seconds=90)


@pytest.mark.accepts("F9", "A26")
def test_a_deleted_topic_is_made_anew_and_verdicts_of_the_dead_stay(
    fragile: Fleet, record_property: Measured
) -> None:
    survivors = [1, 2]
    fragile.fill(3, headroom=-0.2)
    fragile.await_enforced("PAUSE")
    fragile.agents[3].kill()
    fragile.cluster.nodes[3].kill()

    address = fragile.cluster.nodes[1].clients_address
    eventually(lambda: visible_brokers(address) == set(survivors), "the dead broker is no longer listed")
    # a controller may have to be found first
    admin = admin_of(fragile)
    marks, begun = fragile.marks(), time.monotonic()
    with leases_hold(fragile, survivors) as look:
        admin.delete_topics([USAGE_TOPIC])[USAGE_TOPIC].result(timeout=30)
        fragile.read_anew()
        for agent in fragile.of(survivors):
            eventually(
                lambda agent=agent: agent.told("read again from its beginning", since=marks[agent.broker_id]),
                "a new topic is read",
            )
        eventually(
            lambda: {m.key() for m in fragile.records()} >= {b"1", b"2"}, "both have reported to the new one"
        )
        record_property("recovery_seconds", time.monotonic() - begun)
        while time.monotonic() - begun < STALENESS_SECONDS + 5:
            look()
            time.sleep(0.5)
    for agent in fragile.of(survivors):
        assert agent.process.running()
        assert set(agent.states_told(marks[agent.broker_id])) <= {"PAUSE"}
        assert agent.decision["reasons"][0]["broker_id"] == 3
        assert agent.decision["undetermined"] == []
    fragile.clear()
    fragile.cluster.restart(3)
    fragile.agents[3].start()
    fragile.await_enforced("OPEN", timeout_seconds=90)


@pytest.mark.accepts("F30")
def test_a_reassignment_that_fills_a_disk_in_pause_is_named_and_can_be_cancelled(
    fragile: Fleet, kafka_runtime: KafkaRuntime, tmp_path: Path, record_property: Measured
) -> None:
    agent = fragile.agents[3]
    admin = admin_client(fragile.cluster.client_configuration())
    create_topic(admin, "moved", [[1]])
    with fragile.produce("moved", 40e6):
        eventually(lambda: fragile.landed_bytes("moved") > 150e6, "there is something to move", 120)
    moves = tmp_path / "moves.json"
    move = {"topic": "moved", "partition": 0, "replicas": [3]}
    moves.write_text(json.dumps({"version": 1, "partitions": [move]}), "utf-8")

    def reassign(*arguments: str) -> None:
        process = ChildProcess(
            [
                kafka_runtime.java,
                *("-cp", kafka_runtime.class_path()),
                "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
                *("--bootstrap-server", fragile.cluster.bootstrap_servers),
                *("--reassignment-json-file", str(moves)),
                *arguments,
            ],
            log_path=tmp_path / "reassign.log",
            environment=fragile.cluster.environment(),
        )
        assert process.popen.wait(60) == 0, process.log_tail()

    fragile.fill(3, headroom=-0.02)
    fragile.await_enforced("PAUSE")
    mark, begun = agent.journal_mark(), time.monotonic()
    reassign("--execute", "--throttle", "2000000")
    growing = {"volume": fragile.disk(3).device, "mount_point": str(fragile.disk(3).mount_point)}

    def alerted() -> bool:
        values = [
            value
            for (name, labels), value in agent.metrics().items()
            if name == "kquota_volume_growing_in_pause" and growing.items() <= dict(labels).items()
        ]
        return values == [1]

    eventually(alerted, "a metric names the volume", 120)
    record_property("safe_seconds", time.monotonic() - begun)
    eventually(lambda: agent.told("topics that grow: moved", since=mark), "the journal names the topic", 60)
    [(level, sentence)] = agent.told("topics that grow: moved", since=mark)
    assert level == "WARNING"
    assert f"volume {growing['volume']} of broker 3 goes on growing in PAUSE" in sentence

    begun = time.monotonic()
    reassign("--cancel")
    eventually(lambda: not alerted(), "cancelled, it grows no more", 120)
    record_property("recovery_seconds", time.monotonic() - begun)
    fragile.clear()
    fragile.await_enforced("OPEN")


@pytest.fixture
def lone_agent(fragile: Fleet) -> Iterator[Island]:
    """Agent 2 behind a bridge."""
    agent = fragile.agents[2]
    brokers = [node.ports.internal for node in fragile.cluster.brokers]
    agent.stop()
    with island(fragile.cluster, "agent", reached_from_it=brokers, reached_in_it=[agent.metrics_port]) as one:
        agent.launcher = one.launcher
        agent.start()
        fragile.await_enforced("OPEN")
        yield one
        one.mend()
        agent.stop()
    agent.launcher = ()
    agent.start()
    fragile.await_enforced("OPEN", timeout_seconds=90)


@pytest.mark.accepts("F1", "A18")
def test_an_agent_alone_cut_off_makes_the_others_fall_back_and_itself(
    fragile: Fleet, lone_agent: Island, record_property: Measured
) -> None:
    marks, begun = fragile.marks(), time.monotonic()
    lone_agent.cut()
    fragile.await_enforced("PAUSE", timeout_seconds=3 * STALENESS_SECONDS)
    took_seconds = time.monotonic() - begun
    record_property("safe_seconds", took_seconds)
    assert took_seconds > 0.7 * STALENESS_SECONDS, "a short interruption is no reason to fall back"
    for agent in fragile.of([1, 3]):
        assert agent.decision["undetermined"] == [{"broker_id": 2, "cause": "stale"}]
        assert agent.decision["fallback"] is True
    cut_off = fragile.agents[2]
    assert cut_off.decision["fallback"] is True
    eventually(lambda: cut_off.states_told(marks[2]), "its journal follows the decision by a moment")
    assert set(cut_off.states_told(marks[2])) == {"PAUSE"}
    assert cut_off.applied["lost"] is None, "it goes on renewing its lease"
    begun = time.monotonic()
    lone_agent.mend()
    fragile.await_enforced("OPEN", timeout_seconds=90)
    record_property("recovery_seconds", time.monotonic() - begun)


@pytest.fixture
def lone_host(fragile: Fleet) -> Iterator[Island]:
    """Broker 3 and its agent behind a bridge."""
    node, agent = fragile.cluster.nodes[3], fragile.agents[3]

    def stop() -> None:
        agent.stop()
        node.stop()

    def start(launcher: tuple[str, ...]) -> None:
        node.launcher = agent.launcher = launcher
        fragile.cluster.restart(3, timeout_seconds=90)
        agent.start()
        fragile.await_enforced("OPEN", timeout_seconds=90)

    others = [port for n in fragile.cluster.brokers if n is not node for port in ports_of(n)]
    own = [*ports_of(node), agent.metrics_port]
    stop()
    with island(fragile.cluster, "host", reached_from_it=others, reached_in_it=own) as one:
        start(one.launcher)
        yield one
        one.mend()
        stop()
    start(())


def ports_of(node: KafkaNode) -> tuple[int, ...]:
    return node.ports.clients, node.ports.internal, node.ports.controller


@pytest.mark.accepts("F1", "A26")
def test_a_whole_host_cut_off_keeps_its_last_verdict_and_nobody_falls_back(
    fragile: Fleet, lone_host: Island, record_property: Measured
) -> None:
    survivors = [1, 2]
    fragile.fill(3, headroom=0.5)
    fragile.await_enforced("THROTTLE")
    marks, begun = fragile.marks(), time.monotonic()
    lone_host.cut()

    address = fragile.cluster.nodes[1].clients_address
    eventually(lambda: visible_brokers(address) == set(survivors), "the broker is fenced")
    record_property("safe_seconds", time.monotonic() - begun)
    while time.monotonic() - begun < STALENESS_SECONDS + 10:
        for agent in fragile.of(survivors):
            assert agent.applied_state == "THROTTLE"
            assert agent.decision["undetermined"] == []
        time.sleep(0.5)
    for agent in fragile.of(survivors):
        assert agent.decision["reasons"][0]["broker_id"] == 3, "its last verdict counts"
        assert set(agent.states_told(marks[agent.broker_id])) <= {"THROTTLE"}
    fragile.clear()
    begun = time.monotonic()
    lone_host.mend()
    fragile.await_enforced("OPEN", timeout_seconds=90)
    record_property("recovery_seconds", time.monotonic() - begun)
