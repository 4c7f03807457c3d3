"""The faults of a run: which ones there are, and which of them each cycle has, by the run's trouble."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient

from bench.ledger.figures import Trouble
from kquota.policy.decision import State
from testbed.demo.loopback_stage import BROKER_IDS, LoopbackStage
from testbed.demo.sight import read_applied
from testbed.loopback.clients import admin_client, visible_brokers
from testbed.loopback.island import Fault as Impaired
from testbed.loopback.island import Island, island

FULL_BROKER = 3
"""The broker whose volume fills."""
_APART_BROKER = 1
_STOPPED_SECONDS = 3.0
_HUNG_SECONDS = 8.0
_NOTICED_SECONDS = 90.0
_LOOK_SECONDS = 0.2
_STOP_SECONDS = 60.0
_HELD: Impaired = {"held": True}
_LATE: Impaired = {"delay_seconds": 0.2, "jitter_seconds": 0.1}
_CLOSED_LATE: Impaired = {"close_seconds": 3.0}


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster with producers in one cycle of a run."""

    stage: LoopbackStage
    bridge: Island | None
    victim: int
    """The broker whose turn it is; another one in the next cycle, and never the one whose volume fills."""


Fault = Callable[[Scene], AbstractContextManager[None]]
"""It lasts from before a block until after it, and has had its effect when the block begins."""
Step = tuple[float, Impaired | None, Impaired | None]
"""Seconds, and the faults of bytes that leave producers and that enter them for this long."""


class Place(Enum):
    """The processes behind a bridge, in a network of their own."""

    NOWHERE = "none"
    PRODUCERS = "all producers"
    BROKER = "a broker with its agent"


@dataclass(frozen=True, slots=True)
class Cycle:
    """The faults of one cycle: those of a state come one after the other."""

    at_changes: tuple[Fault, ...] = ()
    """During each change of state."""
    within: Mapping[State, tuple[Fault, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of a run, and the cluster they need."""

    cycles: tuple[Cycle, ...] = (Cycle(),)
    """In turn."""
    place: Place = Place.NOWHERE
    volumes: int = 1
    """Of each broker, with a log dir on each."""
    agent_settings: Mapping[str, object] = field(default_factory=dict)
    client_settings: Mapping[str, str] = field(default_factory=dict)

    def cycle(self, number: int) -> Cycle:
        """Of this number, from 0."""
        return self.cycles[number % len(self.cycles)]


@contextmanager
def bridged(stage: LoopbackStage, place: Place) -> Iterator[Island | None]:
    """Put the broker into a network of its own, if it is the one; producers are started there."""
    cluster = stage.cluster
    if place is Place.NOWHERE:
        yield None
    elif place is Place.PRODUCERS:
        addresses = [node.ports.clients for node in cluster.brokers]
        with island(cluster, "producers", reached_from_it=addresses, reached_in_it=()) as bridge:
            yield bridge
    else:
        ports = {
            node.node_id: (node.ports.clients, node.ports.internal, node.ports.controller)
            for node in cluster.brokers
        }
        apart = cluster.nodes[_APART_BROKER]
        own = ports.pop(_APART_BROKER)
        others = [port for of_node in ports.values() for port in of_node]
        stage.agents[_APART_BROKER].terminate(_STOP_SECONDS)
        apart.stop()
        with island(cluster, "broker", reached_from_it=others, reached_in_it=own) as bridge:
            apart.launcher = bridge.launcher
            cluster.restart(_APART_BROKER)
            stage.restart_agent(_APART_BROKER)
            yield bridge


@contextmanager
def all_of(faults: tuple[Fault, ...], scene: Scene) -> Iterator[None]:
    """Have all of these faults last for a block."""
    with ExitStack() as stack:
        for fault in faults:
            stack.enter_context(fault(scene))
        yield


@contextmanager
def _broker_killed(scene: Scene) -> Iterator[None]:
    scene.stage.cluster.nodes[scene.victim].kill()
    yield
    time.sleep(_STOPPED_SECONDS)
    scene.stage.cluster.restart(scene.victim)


@contextmanager
def _controller_killed(scene: Scene) -> Iterator[None]:
    cluster = scene.stage.cluster
    active = cluster.active_controller()
    cluster.nodes[active].kill()
    yield
    cluster.restart(active)


def _impaired(*steps: Step, then_reset: bool = False) -> Fault:
    """A bad network of the producers, in steps; `then_reset`: bytes still held back are lost."""

    @contextmanager
    def fault(scene: Scene) -> Iterator[None]:
        assert scene.bridge is not None
        for seconds, leaving, entering in steps:
            scene.bridge.impair(leaving=leaving, entering=entering)
            time.sleep(seconds)
        yield
        if then_reset:
            scene.bridge.reset()
        scene.bridge.mend()

    return fault


def _cut_off(direction: str) -> Fault:
    """A leader is cut off from other brokers and controllers in one direction; producers reach it."""

    @contextmanager
    def fault(scene: Scene) -> Iterator[None]:
        assert scene.bridge is not None
        cluster = scene.stage.cluster
        admin = admin_client(cluster.client_configuration())
        _await(lambda: _leads_its_own(admin, _APART_BROKER), f"broker {_APART_BROKER} leads its partitions")
        among_brokers = [
            port for node in cluster.brokers for port in (node.ports.internal, node.ports.controller)
        ]
        scene.bridge.impair(**{direction: _HELD}, ports=among_brokers)
        others = set(BROKER_IDS) - {_APART_BROKER}
        witness = cluster.nodes[min(others)].clients_address
        _await(lambda: visible_brokers(witness) == others, f"broker {_APART_BROKER} is fenced")
        yield
        time.sleep(_STOPPED_SECONDS)
        scene.bridge.mend()
        cluster.wait_until_serving(BROKER_IDS)

    return fault


@contextmanager
def _disk_hangs(scene: Scene) -> Iterator[None]:
    cluster = scene.stage.cluster
    cluster.nodes[scene.victim].volumes[-1].hang(_HUNG_SECONDS)
    yield
    cluster.wait_until_serving(BROKER_IDS)


@contextmanager
def _disk_fails(scene: Scene) -> Iterator[None]:
    """One of two; the broker goes on with the other one until the disk is repaired."""
    cluster, files = scene.stage.cluster, scene.stage.files[scene.victim]
    node = cluster.nodes[scene.victim]
    node.volumes[-1].shut_down()

    def offline() -> bool:
        applied = read_applied(scene.victim, files)
        return applied is not None and applied.offline_log_dirs == (str(node.layout.log_dirs[-1]),)

    _await(offline, f"broker {scene.victim} takes the log dir offline")
    yield
    time.sleep(_STOPPED_SECONDS)
    node.stop()
    node.volumes[-1].mount_again()
    cluster.restart(scene.victim)


def _agent_stopped(*, of_full: bool) -> Fault:
    """For longer than staleness_seconds."""

    @contextmanager
    def fault(scene: Scene) -> Iterator[None]:
        broker = FULL_BROKER if of_full else scene.victim
        agent = scene.stage.agents[broker]
        agent.send(signal.SIGSTOP)
        _await(lambda: _is_missed(scene.stage, broker), f"the agent of broker {broker} is missed")
        yield
        agent.send(signal.SIGCONT)

    return fault


def _agent_killed(*, of_full: bool) -> Fault:
    """And started again when it is missed."""

    @contextmanager
    def fault(scene: Scene) -> Iterator[None]:
        broker = FULL_BROKER if of_full else scene.victim
        scene.stage.agents[broker].kill()
        _await(lambda: _is_missed(scene.stage, broker), f"the agent of broker {broker} is missed")
        yield
        scene.stage.restart_agent(broker)

    return fault


@contextmanager
def _reports_removed(scene: Scene) -> Iterator[None]:
    for broker in BROKER_IDS:
        scene.stage.write_report(broker, None)
    yield


def _leads_its_own(admin: AdminClient, broker: int) -> bool:
    """Elect preferred leaders; whether it leads all partitions that it should."""
    try:
        admin.elect_leaders(ElectionType.PREFERRED).result(_NOTICED_SECONDS)
        topics = admin.list_topics(timeout=_NOTICED_SECONDS).topics.values()
    except KafkaException:  # a controller is just taking over
        return False
    partitions = [partition for topic in topics for partition in topic.partitions.values()]
    return all(one.leader == broker for one in partitions if one.replicas[0] == broker)


def _is_missed(stage: LoopbackStage, broker: int) -> bool:
    """Whether all other agents take it for undetermined."""
    decisions = [
        json.loads(files.decision.read_bytes()) for number, files in stage.files.items() if number != broker
    ]
    return all(broker in {entry["broker_id"] for entry in decision["undetermined"]} for decision in decisions)


def _await(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _NOTICED_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_NOTICED_SECONDS:g} s: {what}")
        time.sleep(_LOOK_SECONDS)


_LATENCY = _impaired((5.0, _LATE, _LATE))
_LOST_ANSWERS = _impaired((4.0, None, _HELD), then_reset=True)
_LATE_REQUESTS = _impaired((6.0, _HELD, _HELD), (4.0, _CLOSED_LATE, _CLOSED_LATE))
"""They are held for longer than clients wait, so they arrive together with those that were sent again."""
_BAD_NETWORKS = (_LATENCY, _LOST_ANSWERS, _LATE_REQUESTS)

PLANS: Mapping[Trouble, FaultPlan] = {
    Trouble.NONE: FaultPlan(),
    Trouble.BROKERS_KILLED: FaultPlan(
        (
            Cycle(within={State.THROTTLE: (_broker_killed,)}),
            Cycle(within={State.PAUSE: (_broker_killed,)}),
        )
    ),
    Trouble.NETWORK: FaultPlan(
        (Cycle(within={State.THROTTLE: _BAD_NETWORKS, State.PAUSE: _BAD_NETWORKS}),),
        place=Place.PRODUCERS,
        # librdkafka goes by the second one, which Java's client does not know.
        client_settings={"request.timeout.ms": "4000", "socket.timeout.ms": "4000"},
    ),
    Trouble.PARTITION: FaultPlan(
        (
            Cycle(at_changes=(_controller_killed,), within={State.PAUSE: (_cut_off("leaving"),)}),
            Cycle(within={State.THROTTLE: (_cut_off("entering"),), State.PAUSE: (_cut_off("entering"),)}),
        ),
        place=Place.BROKER,
    ),
    Trouble.DISK: FaultPlan(
        (
            Cycle(within={State.THROTTLE: (_disk_hangs,), State.PAUSE: (_disk_fails,)}),
            Cycle(within={State.THROTTLE: (_disk_fails,), State.PAUSE: (_disk_hangs,)}),
        ),
        volumes=2,
    ),
    Trouble.AGENTS: FaultPlan(
        (
            Cycle(
                within={
                    State.THROTTLE: (_agent_stopped(of_full=False),),
                    State.PAUSE: (_agent_killed(of_full=True), _reports_removed),
                }
            ),
            Cycle(
                within={
                    State.THROTTLE: (_agent_killed(of_full=False), _reports_removed),
                    State.PAUSE: (_agent_stopped(of_full=True),),
                }
            ),
        ),
        agent_settings={"interval_seconds": 2, "staleness_seconds": 15, "lease_seconds": 15},
    ),
}
"""By what a run is troubled with."""
