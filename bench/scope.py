"""The scope of the volume on six brokers and sixty topics: one volume fills, and the other producers go on.

Each topic has two replicas, so that a third of them has one on the volume that fills. Producers write to
topics of one kind, or each to a topic of both kinds. The peer runs on six brokers of its own; it knows no
THROTTLE.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from statistics import fmean

from bench.figures import Scoped
from bench.loads import Client, Delivery, JavaLoadClass, Load
from bench.log_ends import LogEnds
from bench.maven import ensure_peer_jars
from bench.reaction import AppliedStates, PeerLogs
from bench.systems import PEER_CHECK_SECONDS, PEER_NAME, load_peer
from kquota.policy.decision import Scope, State
from kquota.policy.limits import Limit, LimitPair, LimitType
from testbed.demo.loopback_stage import start_agent
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.node import ALL_COMPILERS
from testbed.loopback.plug_in import FENCE_PROPERTIES, broker_files, loaded_plug_in, principals_of
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, LoopVolume, VolumeSpec

KQUOTA = "kquota, scope volume"
BROKER_IDS = tuple(range(1, 7))
FULL_BROKER = 6
STAKE, FREE = "stake-", "free-"
STAKES, FREES, MIXED = 20, 40, 10
_VOLUME = VolumeSpec(16384 * MIB)
_LIMITS = LimitPair(
    soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 15), hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 5)
)
_HARD_FREE_RATIO = 0.05
_PAUSE_LEFT_RATIO, _THROTTLE_LEFT_RATIO = 0.04, 0.10  # of the capacity; the second is half of the way
# Of each topic: a broker that took in less than 1 MiB/s is slowed to a share of that (baseline.min).
_RATE_BYTES, _MIXED_RATE_BYTES = 200e3, 600e3
# Twenty records a second in a request each would measure requests, which two cores hardly serve six brokers.
_LINGER = "linger.ms=250"
# A producer to both kinds needs memory for what waits.
_MIXED_SETTINGS = {
    Client.JAVA: f"buffer.memory={64 * MIB}",
    Client.LIBRDKAFKA: f"queue.buffering.max.kbytes={64 * 1024}",
}
_WARM_SECONDS, _BEFORE_SECONDS, _HELD_SECONDS, _BACK_SECONDS = 20.0, 10.0, 20.0, 15.0
# Six new brokers compile their code for a minute or two, and do little else on two cores.
_COMPILED_ANSWER_SECONDS, _MOST_WARM_SECONDS = 0.5, 300.0
_LATE_SECONDS, _SETTLED_SECONDS = 0.5, 5.0
_SAMPLE_SECONDS = 0.2
_REQUEST_SECONDS = 30.0


def scope(runtime: KafkaRuntime, java: JavaLoadClass) -> Iterator[Scoped]:
    """Fill and free the volume, with producers of one kind of topic and then of both."""
    with _kquota(runtime) as (cluster, states):
        rig = _Rig(KQUOTA, cluster, java, states.wait_for)
        for client, mixed in ((Client.JAVA, False), (Client.JAVA, True), (Client.LIBRDKAFKA, True)):
            yield from rig.run(client, [State.PAUSE, State.THROTTLE], mixed=mixed)
    with _peer(runtime) as (cluster, logs):
        rig = _Rig(PEER_NAME, cluster, java, logs.wait_for)
        yield from rig.run(Client.JAVA, [State.PAUSE], mixed=False)


def _nodes() -> tuple[NodeSpec, ...]:
    # One controller: six would take the machine's time from the brokers.
    return tuple(
        NodeSpec(
            node_id=number,
            roles=("broker", "controller") if number == 1 else ("broker",),
            volumes=(_VOLUME,),
            jvm_options=ALL_COMPILERS,
        )
        for number in BROKER_IDS
    )


@contextmanager
def _kquota(runtime: KafkaRuntime) -> Iterator[tuple[KafkaCluster, AppliedStates]]:
    spec = ClusterSpec(
        nodes=_nodes(),
        properties=FENCE_PROPERTIES,
        node_properties=loaded_plug_in(principals_of(BROKER_IDS)),
        class_path=(find_callback_jar(),),
    )
    with KafkaCluster(spec, runtime) as cluster:
        agents = [start_agent(cluster, i, _LIMITS, scope=Scope.VOLUME.value) for i in BROKER_IDS]
        states = AppliedStates({node.node_id: broker_files(node.layout) for node in cluster.brokers})
        states.wait_for(State.OPEN)
        try:
            yield cluster, states
        finally:
            for agent in agents:
                agent.terminate(_REQUEST_SECONDS)


@contextmanager
def _peer(runtime: KafkaRuntime) -> Iterator[tuple[KafkaCluster, PeerLogs]]:
    spec = ClusterSpec(nodes=_nodes(), tls=False, class_path=ensure_peer_jars())
    with KafkaCluster(spec, runtime) as cluster:
        load_peer(cluster, int(_HARD_FREE_RATIO * cluster.nodes[FULL_BROKER].volumes[0].capacity_bytes()))
        time.sleep(3 * PEER_CHECK_SECONDS)  # its first looks
        yield cluster, PeerLogs([node.layout.log for node in cluster.brokers])


class _Rig:
    """Sixty topics, their producers, and the volume that fills."""

    def __init__(
        self,
        system: str,
        cluster: KafkaCluster,
        java: JavaLoadClass,
        wait_for: Callable[[State], float],
    ) -> None:
        self._system, self._cluster, self._java, self._wait_for = system, cluster, java, wait_for
        self._volume: LoopVolume = cluster.nodes[FULL_BROKER].volumes[0]
        admin = admin_client(cluster.client_configuration())
        others = BROKER_IDS[:-1]
        for number in range(STAKES):  # half of them led by the full broker, half followed
            pair = [FULL_BROKER, others[number % len(others)]]
            create_topic(admin, f"{STAKE}{number + 1}", [pair if number % 2 else pair[::-1]])
        for number in range(FREES):
            pair = [others[number % len(others)], others[(number + 1 + number // len(others)) % len(others)]]
            if pair[0] == pair[1]:
                pair[1] = others[(others.index(pair[0]) + 1) % len(others)]
            create_topic(admin, f"{FREE}{number + 1}", [pair])

    def run(self, client: Client, states: Sequence[State], *, mixed: bool) -> list[Scoped]:
        """Hold the producers by each of these states in turn."""
        if mixed:
            settings = f"also={FREE}", _LINGER, _MIXED_SETTINGS[client]
            loads = [self._load(client, STAKE, MIXED, _MIXED_RATE_BYTES, *settings)]
            topics = _topics(MIXED, MIXED)
        else:
            loads = [
                self._load(client, prefix, count, _RATE_BYTES, _LINGER)
                for prefix, count in ((STAKE, STAKES), (FREE, FREES))
            ]
            topics = _topics(STAKES, FREES)
        try:
            with closing(LogEnds(self._cluster, topics, _SAMPLE_SECONDS)) as ends:
                ends.start()
                ends.wait_until_quick(_COMPILED_ANSWER_SECONDS, _WARM_SECONDS, _MOST_WARM_SECONDS)
                held = [self._hold(state, ends, client, mixed=mixed) for state in states]
        finally:
            failed = sum(load.stop().failed_records for load in loads)
        return [replace(one, failed_records=failed) for one in held]

    def _load(self, client: Client, prefix: str, connections: int, rate: float, *settings: str) -> Load:
        path = self._cluster.path / f"load-{time.monotonic_ns()}.log"
        return Load(
            self._cluster,
            client,
            connections,
            Delivery.USUAL,
            rate * connections,
            self._java,
            path,
            prefix,
            settings,
        )

    def _factor(self) -> float:
        """The factor by the decision of the full broker; that of a system without decisions is 0."""
        decision = broker_files(self._cluster.nodes[FULL_BROKER].layout).decision
        return float(json.loads(decision.read_text("utf-8"))["factor"]) if decision.exists() else 0.0

    def _hold(self, state: State, ends: LogEnds, client: Client, *, mixed: bool) -> Scoped:
        time.sleep(_BEFORE_SECONDS)
        began_at = time.monotonic()
        ratio = _PAUSE_LEFT_RATIO if state is State.PAUSE else _THROTTLE_LEFT_RATIO
        self._volume.fill(int(ratio * self._volume.capacity_bytes()))
        enforced_at = self._wait_for(state)
        time.sleep(_SETTLED_SECONDS)
        factors = [self._factor()]
        time.sleep(_HELD_SECONDS - _SETTLED_SECONDS)
        factors.append(self._factor())
        ended_at = time.monotonic()
        (self._volume.mount_point / "ballast").unlink()
        self._wait_for(State.OPEN)
        time.sleep(_BACK_SECONDS)
        at_stake, others = ends.landed(STAKE), ends.landed(FREE)
        settled_at = began_at + _SETTLED_SECONDS
        return Scoped(
            system=self._system,
            client=client,
            mixed=mixed,
            state=state.value,
            factor=fmean(factors),
            enforced_seconds=enforced_at - began_at,
            held_seconds=ended_at - began_at,
            others_before=others.rate(began_at - _BEFORE_SECONDS, began_at),
            others_held=others.rate(began_at, ended_at),
            stake_before=at_stake.rate(began_at - _BEFORE_SECONDS, began_at),
            stake_held=at_stake.rate(settled_at, ended_at),
            stake_late_bytes=at_stake.bytes(began_at + _LATE_SECONDS, ended_at),
            failed_records=0,
        )


def _topics(stakes: int, frees: int) -> list[str]:
    return [f"{STAKE}{i}" for i in range(1, stakes + 1)] + [f"{FREE}{i}" for i in range(1, frees + 1)]
