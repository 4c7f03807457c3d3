"""The closed loop of one policy as the core decides it: volume by volume, and with all that arrived. Slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from kquota.policy.decision import Decision
from kquota.policy.topic_scope import Topics
from kquota.policy.volume import Volume
from kquota_pipeline.backtest.agents import Agents
from kquota_pipeline.backtest.closed_loop import CATCH_UP_RATIO, REGAINED_SHARE
from kquota_pipeline.backtest.flows import Flows, retention_ticks
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.producers import Producers, Tally
from kquota_pipeline.backtest.scene import Scene


@dataclass(frozen=True, slots=True)
class Course:
    """Arrays [tick], `consumed_bytes` [tick, volume]."""

    factors: NDArray[np.float64]
    undetermined: NDArray[np.int64]
    held_bytes: NDArray[np.float64]
    consumed_bytes: NDArray[np.float64]
    lost_bytes: float
    tallies: tuple[Tally, ...]


def simulate_by_core(scene: Scene, flows: Flows, policy: Policy) -> Course:
    """Return the outcome of a policy for a history."""
    count = len(scene.ticks)
    brokers = _Brokers(scene, flows, policy)
    disks = _Disks(flows)
    factors, undetermined = np.ones(count), np.zeros(count, dtype=np.int64)
    consumed = np.empty((count, len(scene.volumes)))
    held_bytes = np.zeros(count)
    backlog = lost = 0.0
    passing = np.ones(len(scene.volumes))
    producing, tallies = Producers(), []
    for tick in range(count):
        offered = float(flows.offered_bytes[tick])
        latest, soonest = CATCH_UP_RATIO * offered, CATCH_UP_RATIO / (1 + CATCH_UP_RATIO) * offered
        late = min(max(backlog, -soonest), latest)
        wanted = offered + late
        landing = np.where(passing >= 1, wanted, np.minimum(wanted, passing * offered))
        accepted = _accepted(landing, flows.share[tick])
        held = held_bytes[tick] = max(0.0, min(wanted, offered) - accepted)
        lost += (1 - REGAINED_SHARE) * held
        caught_up = max(0.0, accepted - offered) if late > 0 else late
        backlog += REGAINED_SHARE * (held - float(flows.held_bytes[tick])) - caught_up
        consumed[tick] = disks.take(tick, landing)
        decision = brokers.decide(tick, consumed[tick])
        undetermined[tick] = len(decision.undetermined)
        factors[tick] = float(decision.headroom)
        names = [
            scene.topics_at(tick, column) if there else None
            for column, there in enumerate(flows.present[tick])
        ]
        passing = _passing(decision, names)
        if (writers := scene.producers.get(tick)) is not None:
            producing.observe(writers.topics, writers.unlisted, were_held=tick in scene.held)
        tallies.append(producing.held_by(decision, policy.scope))
    return Course(factors, undetermined, held_bytes, consumed, lost + max(0.0, backlog), tuple(tallies))


def _passing(decision: Decision, topics: Sequence[Topics | None]) -> NDArray[np.float64]:
    """Return for each volume the share of what is written to it that a decision lets through."""
    scope = decision.scope
    if scope is None:
        return np.full(len(topics), float(decision.headroom))
    return np.array(
        [float(max((scope.of(topic) for topic in names or ()), default=scope.others)) for names in topics]
    )


def _accepted(landing: NDArray[np.float64], share: NDArray[np.float64]) -> float:
    """Return the bytes accepted from producers, of which each volume takes its share."""
    if landing.min() == landing.max() or not share.any():
        return float(landing.min())
    return float(np.average(landing, weights=share))


class _Disks:
    """The contents of the disks while more or less arrives than did in the history."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self._ticks, self._shares = retention_ticks(flows)
        self._arrived = np.zeros_like(flows.arrived)
        self._columns = np.arange(flows.arrived.shape[1])

    def take(self, tick: int, landing_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Let a tick's bytes arrive and age; return what the disks hold, at most what fits.

        `landing_bytes` are those that producers may send, by the volume whose share of them lands.
        """
        flows = self._flows
        before = self._arrived[tick - 1] if tick else np.zeros(len(self._columns))
        arriving = flows.beyond_bytes[tick] + (flows.share[tick] * landing_bytes if tick else 0.0)
        self._arrived[tick] = before + arriving
        since = self._ticks[tick]
        rows = np.maximum(since, 0)
        following = np.minimum(rows + 1, tick)
        at, after = self._arrived[rows, self._columns], self._arrived[following, self._columns]
        aged = np.where(since < 0, 0.0, at + self._shares[tick] * np.maximum(0.0, after - at))
        first = np.minimum(flows.deleted_until[tick], flows.first_bytes)
        holds = flows.first_bytes - first + self._arrived[tick] - aged
        return np.asarray(np.clip(holds, 0.0, flows.capacity_bytes[tick]))


class _Brokers:
    """The brokers of the scene, whose agents publish the simulated content of their disks."""

    def __init__(self, scene: Scene, flows: Flows, policy: Policy) -> None:
        self._scene = scene
        self._flows = flows
        self._policy = policy
        self._agents = Agents(policy, scene.tick_seconds)
        self._of_broker: dict[int, list[int]] = {}
        for column, volume in enumerate(scene.volumes):
            self._of_broker.setdefault(volume.broker_id, []).append(column)

    def decide(self, tick: int, consumed_bytes: NDArray[np.float64]) -> Decision:
        """Publish what the brokers see, and decide at the end of a tick."""
        now = datetime.fromtimestamp(int(self._scene.ticks[tick]), UTC)
        for broker_id in self._scene.decommissioned.get(tick, ()):
            self._agents.decommission(broker_id, now)
        for broker_id, columns in self._of_broker.items():
            named = self._flows.present[tick] | self._scene.offline[tick]
            there = [column for column in columns if named[column]]
            if there:
                volumes = [self._volume(column, tick, consumed_bytes) for column in there]
                self._agents.publish(broker_id, volumes, now)
        return self._agents.decide(now, self._scene.unknown.get(tick, frozenset()))

    def _volume(self, column: int, tick: int, consumed: NDArray[np.float64]) -> Volume:
        scene, broker_id = self._scene, self._scene.volumes[column].broker_id
        terms = scene.all_terms[scene.terms[tick, column]]
        pair = self._policy.pair(broker_id, terms.mount_point) or terms.recorded
        capacity = int(self._flows.capacity_bytes[tick, column])
        return scene.volume_at(tick, column, capacity, round(consumed[column]), pair)
