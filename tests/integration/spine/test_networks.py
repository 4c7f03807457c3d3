"""Networks that are bad rather than cut: slow, narrow, resetting, closing late, deaf in one direction.

The tests share a fleet. Agent 2 is behind a bridge, and broker 3 with its agent behind another one; what the
bridges do is ordered of the relay in testbed/loopback.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kquota.kafka.topics import usage_topic
from testbed.loopback.clients import admin_client, create_topic, visible_brokers
from testbed.loopback.island import Fault, Island, island
from testbed.loopback.node import KafkaNode
from testbed.loopback.plug_in import agent_name
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.fleet import QUICK, Fleet
from tests.integration.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(420)]

STALENESS_SECONDS = 25
HELD: Fault = {"held": True}
LATE: Fault = {"delay_seconds": 0.2, "jitter_seconds": 0.1}
NARROW: Fault = {"bytes_per_second": 10_000}
CLOSES_LATE: Fault = {"close_seconds": 8.0}
Measured = Callable[[str, object], None]
Bridges = dict[str, Island]
BOTH_PLACES = pytest.mark.parametrize("place", ["agent", "broker"])
BOTH_DIRECTIONS = pytest.mark.parametrize("deaf", ["leaving", "entering"])


@pytest.fixture(scope="module")
def bridged(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[tuple[Fleet, Bridges]]:
    """The fleet, and the bridge of agent 2 and that of broker 3. Broker 1 leads the usage topic."""
    settings = {**QUICK, "staleness_seconds": STALENESS_SECONDS, "join_grace_seconds": 10}
    with Fleet(kafka_runtime, callback_jar, {1: 1, 2: 1, 3: 1}, settings=settings) as fleet:
        topic, nodes = usage_topic(), fleet.cluster.nodes
        admin = admin_client(fleet.cluster.client_configuration(agent_name(1)))
        create_topic(admin, topic.name, [[1, 2, 3]], topic.settings)
        internal = [node.ports.internal for node in nodes.values()]
        others = [port for i in (1, 2) for port in ports_of(nodes[i])]
        own = [*ports_of(nodes[3]), fleet.agents[3].metrics_port]
        nodes[3].stop()
        with (
            island(fleet.cluster, "broker", reached_from_it=others, reached_in_it=own) as host,
            island(
                fleet.cluster,
                "agent",
                reached_from_it=internal,
                reached_in_it=[fleet.agents[2].metrics_port],
            ) as agent,
        ):
            nodes[3].launcher = fleet.agents[3].launcher = host.launcher
            fleet.agents[2].launcher = agent.launcher
            fleet.cluster.restart(3, timeout_seconds=90)
            for one in fleet.of():
                one.start()
            fleet.await_enforced("OPEN", timeout_seconds=120)
            yield fleet, {"agent": agent, "broker": host}
            for one in fleet.of():
                one.kill()
            nodes[3].kill()


@pytest.fixture
def bridges(bridged: tuple[Fleet, Bridges]) -> Iterator[Bridges]:
    """The bridges, good again afterwards, with every agent at OPEN and heard of."""
    shared, both = bridged
    yield both
    for one in both.values():
        one.mend()
    shared.clear()
    shared.await_enforced("OPEN", timeout_seconds=120)
    await_reports(shared)


@pytest.fixture
def fleet_of_bridges(bridged: tuple[Fleet, Bridges], bridges: Bridges) -> Fleet:
    return bridged[0]


def ports_of(node: KafkaNode) -> tuple[int, ...]:
    return node.ports.clients, node.ports.internal, node.ports.controller


def await_reports(fleet: Fleet) -> None:
    """Wait until every broker has reported again, twice."""
    before = {i: len(fleet.usage_of(i)) for i in fleet.agents}
    for broker_id, count in before.items():
        eventually(
            lambda i=broker_id, n=count: len(fleet.usage_of(i)) > n + 1, f"broker {broker_id} reports", 90
        )


@contextmanager
def nothing_changes(fleet: Fleet) -> Iterator[Callable[[float], None]]:
    """No agent may decide anything new, and no lease may run out; the function looks for some seconds."""
    marks = fleet.marks()

    def look(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for agent in fleet.of():
                applied = agent.applied
                assert applied is not None
                assert (agent.state, applied["lost"]) == ("OPEN", None), f"{agent}: {applied}"
            time.sleep(0.2)

    yield look
    look(0.5)
    for broker_id, agent in fleet.agents.items():
        assert agent.states_told(marks[broker_id]) == [], f"{agent}"


def fills_and_is_cleared(fleet: Fleet) -> None:
    """A full disk pauses all and its end opens all, each once."""
    marks = fleet.marks()
    fleet.fill(1, headroom=-0.1)
    fleet.await_enforced("PAUSE")
    fleet.clear()
    fleet.await_enforced("OPEN")
    for broker_id, agent in fleet.agents.items():
        agent.await_passed("PAUSE", "OPEN", since=marks[broker_id])


@BOTH_PLACES
@pytest.mark.accepts("F36")
def test_latency_with_jitter_changes_no_state_and_keeps_no_breach_back(
    fleet_of_bridges: Fleet, bridges: Bridges, place: str
) -> None:
    with nothing_changes(fleet_of_bridges) as look:
        bridges[place].impair(leaving=LATE, entering=LATE)
        look(8)
    fills_and_is_cleared(fleet_of_bridges)


@pytest.mark.accepts("F36")
def test_an_agent_starts_although_its_bootstrap_server_is_behind_a_narrow_line(
    fleet_of_bridges: Fleet, bridges: Bridges
) -> None:
    fleet, agent = fleet_of_bridges, fleet_of_bridges.agents[2]
    bootstrap = fleet.cluster.nodes[1].ports.internal
    bridges["agent"].impair(leaving=NARROW, entering=NARROW, ports=[bootstrap])
    marks = fleet.marks()
    agent.stop()
    agent.write_config(kafka=fleet.cluster.client_configuration(agent_name(2), broker=1))
    agent.start()
    fleet.await_enforced("OPEN", timeout_seconds=120)
    eventually(lambda: agent.told("OPEN: ", since=marks[2]), "it has decided itself", 120)
    # At its start an agent that has not read all within its patience falls back, and once.
    assert agent.states_passed(marks[2]) in (["OPEN"], ["PAUSE", "OPEN"])
    await_reports(fleet)
    for other in fleet.of([1, 3]):
        assert other.states_passed(marks[other.broker_id]) in ([], ["PAUSE", "OPEN"])
    fills_and_is_cleared(fleet)


@BOTH_PLACES
@pytest.mark.accepts("F37")
def test_bytes_held_back_for_less_than_the_staleness_change_nothing(
    fleet_of_bridges: Fleet, bridges: Bridges, place: str
) -> None:
    with nothing_changes(fleet_of_bridges) as look:
        bridges[place].impair(leaving=HELD, entering=HELD)
        look(0.4 * STALENESS_SECONDS)  # longer than a broker's session
        bridges[place].mend()
        await_reports(fleet_of_bridges)
    fills_and_is_cleared(fleet_of_bridges)


@BOTH_PLACES
@pytest.mark.accepts("F37")
def test_connections_that_are_reset_again_and_again_change_nothing(
    fleet_of_bridges: Fleet, bridges: Bridges, place: str
) -> None:
    with nothing_changes(fleet_of_bridges) as look:
        for _ in range(5):
            bridges[place].reset()
            look(2)
        await_reports(fleet_of_bridges)


@pytest.mark.accepts("F37")
def test_an_agent_that_learns_late_of_a_closed_connection_changes_nothing(
    fleet_of_bridges: Fleet, bridges: Bridges
) -> None:
    fleet = fleet_of_bridges
    with nothing_changes(fleet) as look:
        bridges["agent"].impair(leaving=CLOSES_LATE, entering=CLOSES_LATE)
        fleet.cluster.nodes[1].stop()  # it leads the usage topic
        fleet.cluster.restart(1, timeout_seconds=90)
        await_reports(fleet)
        look(2)


@BOTH_DIRECTIONS
@pytest.mark.accepts("F38", "A18")
def test_an_agent_cut_off_in_one_direction_is_undetermined_as_in_both(
    fleet_of_bridges: Fleet, bridges: Bridges, deaf: str, record_property: Measured
) -> None:
    fleet = fleet_of_bridges
    marks, begun = fleet.marks(), time.monotonic()
    bridges["agent"].impair(**{deaf: HELD})
    fleet.await_enforced("PAUSE", timeout_seconds=3 * STALENESS_SECONDS)
    took_seconds = time.monotonic() - begun
    record_property("safe_seconds", took_seconds)
    assert took_seconds > 0.6 * STALENESS_SECONDS, "a short interruption is no reason to fall back"
    for agent in fleet.of([1, 3]):
        assert agent.decision["undetermined"] == [{"broker_id": 2, "cause": "stale"}]
    assert fleet.agents[2].applied["lost"] is None, "it goes on renewing its lease"
    begun = time.monotonic()
    bridges["agent"].mend()
    fleet.await_enforced("OPEN", timeout_seconds=90)
    record_property("recovery_seconds", time.monotonic() - begun)
    for broker_id, agent in fleet.agents.items():
        agent.await_passed("PAUSE", "OPEN", since=marks[broker_id])


@BOTH_DIRECTIONS
@pytest.mark.accepts("F38", "A26")
def test_a_host_cut_off_in_one_direction_keeps_its_last_verdict(
    fleet_of_bridges: Fleet, bridges: Bridges, deaf: str, record_property: Measured
) -> None:
    fleet, survivors = fleet_of_bridges, [1, 2]
    fleet.fill(3, headroom=0.5)
    fleet.await_enforced("THROTTLE")
    marks, begun = fleet.marks(), time.monotonic()
    bridges["broker"].impair(**{deaf: HELD})
    address = fleet.cluster.nodes[1].clients_address
    eventually(lambda: visible_brokers(address) == set(survivors), "the broker is fenced")
    record_property("safe_seconds", time.monotonic() - begun)
    while time.monotonic() - begun < STALENESS_SECONDS + 8:
        for agent in fleet.of(survivors):
            assert (agent.applied_state, agent.decision["undetermined"]) == ("THROTTLE", [])
        time.sleep(0.5)
    for agent in fleet.of(survivors):
        assert agent.decision["reasons"][0]["broker_id"] == 3, "its last verdict counts"
        assert set(agent.states_told(marks[agent.broker_id])) <= {"THROTTLE"}
    fleet.clear()
    begun = time.monotonic()
    bridges["broker"].mend()
    fleet.await_enforced("OPEN", timeout_seconds=120)
    record_property("recovery_seconds", time.monotonic() - begun)


@BOTH_DIRECTIONS
@pytest.mark.accepts("F38")
def test_a_controller_cut_off_in_one_direction_changes_nothing(
    fleet_of_bridges: Fleet, bridges: Bridges, deaf: str
) -> None:
    """The broker may be fenced and another controller take over: its verdict stands, reports go on."""
    fleet = fleet_of_bridges
    ports = [node.ports.controller for node in fleet.cluster.nodes.values()]
    with nothing_changes(fleet) as look:
        bridges["broker"].impair(**{deaf: HELD}, ports=ports)
        look(0.6 * STALENESS_SECONDS)
        bridges["broker"].mend()
        look(5)
