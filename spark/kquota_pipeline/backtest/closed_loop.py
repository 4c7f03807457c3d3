"""Closed loop: a policy decides with the core, and its decisions change what the disks hold. Pure.

Producers send what they would have sent, less what the policy holds back; four fifths of that they keep and
send later, up to half as fast again as usual. The decision of one tick holds for the next.

With the scope of the volume, a disk takes as much as the least held of its topics lets through. A topic
that is held for another disk lands on this one all the same: that is more than would have landed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kquota.core.decision import Decision
from kquota.core.limits import LimitPair
from kquota.core.topic_scope import Topics
from kquota.core.usage import Volume, VolumeStatus
from kquota_pipeline.backtest.agents import Agents
from kquota_pipeline.backtest.flows import Flows, retention_ticks
from kquota_pipeline.backtest.policy import NOT_JUDGED, Policy
from kquota_pipeline.backtest.producers import Name, Producers, Tally

REGAINED_SHARE = 0.8
CATCH_UP_RATIO = 0.5


@dataclass(frozen=True, slots=True)
class VolumePlace:
    """One volume of the cluster, with its broker and the limits that its records carried."""

    broker_id: int
    name: str
    mount_point: str | None
    recorded: LimitPair | None


class Writers(NamedTuple):
    """The producers of a tick with their topics, and how many clients its records do not list."""

    topics: Mapping[Name, Collection[str] | None]
    unlisted: int


@dataclass(frozen=True, slots=True)
class Scene:
    """The world around the policy: ticks are epoch seconds.

    `volume_ids`, `failed`, `fill_ceilings` (bytes per second, or None) and `topics` (None where not named)
    are [tick, volume]; `unknown` names brokers that were active without a fresh record, `decommissioned` the
    tick of each broker's end. `producers` has who wrote in a tick, where records report it, and `held` are
    the ticks in which the brokers held producers.
    """

    ticks: NDArray[np.int64]
    volumes: Sequence[VolumePlace]
    volume_ids: NDArray[np.object_]
    failed: NDArray[np.bool_]
    unknown: Mapping[int, frozenset[int]]
    decommissioned: Mapping[int, int]
    fill_ceilings: NDArray[np.object_]
    topics: NDArray[np.object_]
    producers: Mapping[int, Writers]
    held: Set[int]

    @property
    def tick_seconds(self) -> int:
        """The length of a tick."""
        return int(self.ticks[1] - self.ticks[0]) if len(self.ticks) > 1 else 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result: [tick] factors (the worst of all topics), brokers undetermined, bytes held back and
    producers held, [tick, volume] bytes on disk.

    Of `held_bytes`, `lost_bytes` in all have not been sent by the end.
    """

    factors: NDArray[np.float64]
    undetermined: NDArray[np.int64]
    held_bytes: NDArray[np.float64]
    consumed_bytes: NDArray[np.float64]
    lost_bytes: float
    tallies: tuple[Tally, ...]


def simulate(scene: Scene, flows: Flows, policy: Policy) -> Outcome:
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
        wanted = offered + min(backlog, CATCH_UP_RATIO * offered)
        landing = np.where(passing >= 1, wanted, np.minimum(wanted, passing * offered))
        accepted = _accepted(landing, flows.share[tick])
        held = held_bytes[tick] = max(0.0, offered - accepted)
        lost += (1 - REGAINED_SHARE) * held
        backlog += REGAINED_SHARE * held - max(0.0, accepted - offered)
        consumed[tick] = disks.take(tick, landing)
        decision = brokers.decide(tick, consumed[tick])
        undetermined[tick] = len(decision.undetermined)
        factors[tick] = float(decision.headroom)
        passing = _passing(decision, scene.topics[tick])
        if (writers := scene.producers.get(tick)) is not None:
            producing.observe(writers.topics, writers.unlisted, were_held=tick in scene.held)
        tallies.append(producing.held_by(decision, policy.scope))
    return Outcome(factors, undetermined, held_bytes, consumed, lost + backlog, tuple(tallies))


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
        self._pairs = [policy.pair(v.broker_id, v.mount_point) or v.recorded for v in scene.volumes]
        self._agents = Agents(policy, scene.tick_seconds)
        self._of_broker: dict[int, list[int]] = {}
        for column, volume in enumerate(scene.volumes):
            self._of_broker.setdefault(volume.broker_id, []).append(column)

    def decide(self, tick: int, consumed_bytes: NDArray[np.float64]) -> Decision:
        """Publish what the brokers see, and decide at the end of a tick."""
        now = datetime.fromtimestamp(int(self._scene.ticks[tick]), UTC)
        for broker_id, ended in self._scene.decommissioned.items():
            if ended == tick:
                self._agents.decommission(broker_id, now)
        for broker_id, columns in self._of_broker.items():
            there = [column for column in columns if self._flows.present[tick, column]]
            if there:
                volumes = [self._volume(column, tick, consumed_bytes) for column in there]
                self._agents.publish(broker_id, volumes, now)
        return self._agents.decide(now, self._scene.unknown.get(tick, frozenset()))

    def _volume(self, column: int, tick: int, consumed: NDArray[np.float64]) -> Volume:
        capacity = int(self._flows.capacity_bytes[tick, column])
        volume_id = self._scene.volume_ids[tick, column]
        pair = self._pairs[column]
        return Volume(
            name=self._scene.volumes[column].name,
            capacity_bytes=capacity,
            consumed_bytes=min(capacity, int(consumed[column])),
            limits=pair,
            limits_problem=None if pair is not None else NOT_JUDGED,
            volume_id=volume_id if isinstance(volume_id, str) else None,
            status=VolumeStatus.FAILED if self._scene.failed[tick, column] else VolumeStatus.OK,
            fill_ceiling_bytes_per_second=self._scene.fill_ceilings[tick, column],
            topics=self._scene.topics[tick, column],
        )
