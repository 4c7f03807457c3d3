"""From the byte that breaches a hard limit on one broker until all three enforce, at default settings.

The peer runs on three brokers of its own at its fastest setting. The agents' usage in OPEN is measured on
the same stage.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import psutil

from bench.figures import AgentCost, Reaction
from bench.harness.processor import processor_seconds
from bench.maven import ensure_peer_jars
from bench.systems import PEER_CHECK_SECONDS, PEER_NAME, load_peer
from kquota.policy.decision import Mode, Scope, State
from kquota.policy.limits import Limit, LimitPair, LimitType
from testbed.demo.loopback_stage import BROKER_IDS, LoopbackStage
from testbed.demo.plan import Plan
from testbed.demo.sight import read_applied
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.node import ALL_COMPILERS
from testbed.loopback.plug_in import BrokerFiles
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, LoopVolume, VolumeSpec

KQUOTA = "kquota"
_VOLUME = VolumeSpec(1024 * MIB)
# The defaults of the agent's configuration.
_LIMITS = LimitPair(
    soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 15), hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 5)
)
_HARD_FREE_RATIO = 0.05
_LEFT_RATIO = 0.04
_LOOK_SECONDS = 0.002
_TIMEOUT_SECONDS = 60.0
_FULL_BROKER = 3
_IDLE_SECONDS = 20.0
_PEER_TELLS = {
    State.PAUSE: b" to ThrottleFactor{throttleFactor=0.0,",
    State.OPEN: b" to ThrottleFactor{throttleFactor=1.0,",
}


_Watched = TypeVar("_Watched")


class NotEnforced(Exception):
    """A state was not enforced everywhere in time; the message names the system and the brokers."""


def reaction(runtime: KafkaRuntime, repeats: int) -> list[Reaction | AgentCost]:
    """Breach and free a volume again and again, at moments that no schedule of theirs knows."""
    plan = Plan(volumes=dict.fromkeys(BROKER_IDS, (_VOLUME,)), limits=_LIMITS, scope=Scope.CLUSTER)
    peer_spec = ClusterSpec(
        nodes=tuple(
            NodeSpec(node_id=number, volumes=(_VOLUME,), jvm_options=ALL_COMPILERS) for number in BROKER_IDS
        ),
        tls=False,
        class_path=ensure_peer_jars(),
    )
    with ExitStack() as stack:
        stage = stack.enter_context(
            LoopbackStage(plan, runtime, callback_jar=find_callback_jar(), report=lambda _line: None)
        )
        kquota = AppliedStates(stage.files)
        kquota.wait_for(State.OPEN)
        agents = _agent_costs(stage)
        peer_cluster = stack.enter_context(KafkaCluster(peer_spec, runtime))
        volume = stage.cluster.nodes[_FULL_BROKER].volumes[0]
        peer_volume = peer_cluster.nodes[_FULL_BROKER].volumes[0]
        load_peer(peer_cluster, int(_HARD_FREE_RATIO * peer_volume.capacity_bytes()))
        time.sleep(3 * PEER_CHECK_SECONDS)  # its first looks
        peer = PeerLogs([node.layout.log for node in peer_cluster.brokers])
        # At the same time: they hardly do anything, and what the machine does hits both.
        with ThreadPoolExecutor(2) as pool:
            ours = pool.submit(_repeat, KQUOTA, volume, kquota.wait_for, repeats)
            theirs = pool.submit(_repeat, PEER_NAME, peer_volume, peer.wait_for, repeats)
            return [ours.result(), theirs.result(), *agents]


def _repeat(system: str, volume: LoopVolume, wait_for: Callable[[State], float], repeats: int) -> Reaction:
    moments = random.Random(system)
    paused, released = [], []
    for _ in range(repeats):
        time.sleep(moments.uniform(0.5, 1.5))
        breached_at = time.monotonic()
        volume.fill(int(_LEFT_RATIO * volume.capacity_bytes()))
        paused.append(wait_for(State.PAUSE) - breached_at)
        time.sleep(moments.uniform(0.5, 1.5))
        freed_at = time.monotonic()
        (volume.mount_point / "ballast").unlink()
        released.append(wait_for(State.OPEN) - freed_at)
    return Reaction(system, len(BROKER_IDS), tuple(paused), tuple(released))


def _when_all(
    system: str, state: State, watched: Iterable[_Watched], reached: Callable[[_Watched], bool]
) -> float:
    """The moment at which the last was seen to have reached a state (CLOCK_MONOTONIC).

    Raises:
        NotEnforced: not after a minute.
    """
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    missing = list(watched)
    while True:
        missing = [one for one in missing if not reached(one)]
        now = time.monotonic()
        if not missing:
            return now
        if now > deadline:
            raise NotEnforced(f"{system}: {', '.join(map(str, missing))} not at {state}")
        time.sleep(_LOOK_SECONDS)


class AppliedStates:
    """Watches the state that the plug-ins report."""

    def __init__(self, files: dict[int, BrokerFiles]) -> None:
        self._files = files

    def wait_for(self, state: State) -> float:
        """The moment at which the last broker was seen to enforce it."""
        return _when_all(KQUOTA, state, self._files, lambda number: self._enforces(number, state))

    def _enforces(self, number: int, state: State) -> bool:
        applied = read_applied(number, self._files[number])
        return applied is not None and applied.mode is Mode.ENFORCE and applied.state is state


class PeerLogs:
    """Watches the brokers' logs: the peer logs changes of its factor there."""

    def __init__(self, logs: Sequence[Path]) -> None:
        self._offsets = {path: path.stat().st_size for path in logs}

    def wait_for(self, state: State) -> float:
        """As of kquota."""
        return _when_all(PEER_NAME, state, self._offsets, lambda log: self._tells(log, _PEER_TELLS[state]))

    def _tells(self, path: Path, wanted: bytes) -> bool:
        if path.stat().st_size == self._offsets[path]:
            return False
        with path.open("rb") as log:
            log.seek(self._offsets[path])
            news = log.read()
        whole = news[: news.rfind(b"\n") + 1]
        self._offsets[path] += len(whole)
        return wanted in whole


def _agent_costs(stage: LoopbackStage) -> list[AgentCost]:
    """The processor time of each agent and its probe process while nothing happens."""
    began_at = time.monotonic()
    before = {number: processor_seconds(agent.pid) for number, agent in stage.agents.items()}
    time.sleep(_IDLE_SECONDS)
    passed = time.monotonic() - began_at
    costs = []
    for number, agent in stage.agents.items():
        used, process = processor_seconds(agent.pid) - before[number], psutil.Process(agent.pid)
        # The agent's own, and what its probe process has for itself: the rest of that is shared with it.
        others = sum(child.memory_full_info().uss for child in process.children(recursive=True))
        costs.append(AgentCost(number, passed, used / passed, process.memory_info().rss + others))
    return costs
