"""Closed loop: policies decide, and their decisions change what the disks hold. Pure: arrays in, arrays out.

Producers send what they would have sent, less what the policy holds back; four fifths of that they keep and
send later, up to half as fast again as usual. The decision of one tick holds for the next.

Bytes that the brokers held back in the history came later there, too, and are among those that producers
sent. So only bytes that a policy holds back in addition are added later; and where it holds back fewer, the
difference was sent before, and is missing later, up to a third of a tick's.

With the scope of the volume, a disk takes as much as the least held of its topics lets through. A topic
that is held for another disk lands on this one all the same: that is more than would have landed.

The disks of all volumes and policies of a tick are filled together, on arrays; the agents' own core decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kquota.policy.decision import Decision, Scope
from kquota_pipeline.backtest.decisions import Decided, Decisions
from kquota_pipeline.backtest.disks import Disks
from kquota_pipeline.backtest.flows import Flows
from kquota_pipeline.backtest.holds import Holds
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.producers import Producers
from kquota_pipeline.backtest.scene import NONE, Floats, Outcome, Scene

REGAINED_SHARE = 0.8
CATCH_UP_RATIO = 0.5
_FULL_RATIO = 0.9999
# Of what producers could send to each volume in each tick, which only the scope of the volume needs.
_LANDED_BYTES = 256 * 1024 * 1024

Watch = Callable[[int, NDArray[np.int64], Floats], None]
"""Called in each tick with its number, the places of policies, and what the disks hold: [volume, policy]."""


def simulate(
    scene: Scene,
    flows: Flows,
    policies: Sequence[Policy],
    watch: Watch | None = None,
    holds: Holds | None = None,
) -> Outcome:
    """Return the outcome of policies for a history, in their order; count in `holds` how long they hold each
    producer.
    """
    outcome = Outcome.empty(len(scene.ticks), len(scene.volumes), len(policies))
    for scope, at_once in ((Scope.CLUSTER, len(policies)), (Scope.VOLUME, _together(scene))):
        places = [place for place, policy in enumerate(policies) if policy.scope is scope]
        for first in range(0, len(places), at_once):
            some = places[first : first + at_once]
            loop = _Loop(scene, flows, [policies[place] for place in some], np.array(some), holds)
            outcome.put(loop.run(watch), some)
    return outcome


def _together(scene: Scene) -> int:
    """Return how many policies with the scope of the volume fit into memory."""
    return max(1, _LANDED_BYTES // (8 * max(1, len(scene.ticks) * len(scene.volumes))))


class _Loop:
    """The course of events under policies of one scope."""

    def __init__(
        self,
        scene: Scene,
        flows: Flows,
        policies: Sequence[Policy],
        places: NDArray[np.int64],
        holds: Holds | None,
    ) -> None:
        self._scene, self._flows, self._policies = scene, flows, policies
        self._places, self._holds_of = places, holds
        self._outcome = Outcome.empty(len(scene.ticks), len(scene.volumes), len(policies))
        self._decisions = Decisions(scene, flows.present, flows.capacity_bytes, policies)
        self._producers = Producers()
        self._by_volume = policies[0].scope is Scope.VOLUME
        self._disks = Disks(flows, len(policies), by_volume=self._by_volume)
        shape = (len(scene.volumes), len(policies)) if self._by_volume else len(policies)
        self._passing = np.ones(shape)

    def run(self, watch: Watch | None) -> Outcome:
        """Return the outcome; `watch` is called with the places of the policies."""
        outcome, count = self._outcome, len(self._policies)
        backlog, lost = np.zeros(count), np.zeros(count)
        for tick in range(len(self._scene.ticks)):
            offered = float(self._flows.offered_bytes[tick])
            late = np.clip(
                backlog, -CATCH_UP_RATIO / (1 + CATCH_UP_RATIO) * offered, CATCH_UP_RATIO * offered
            )
            wanted = offered + late
            landing = np.where(self._passing >= 1, wanted, np.minimum(wanted, self._passing * offered))
            accepted = self._accepted(landing, self._flows.share[tick])
            held = np.maximum(0.0, wanted - np.maximum(late, 0.0) - accepted)
            lost += (1 - REGAINED_SHARE) * held
            backlog += REGAINED_SHARE * (held - self._flows.held_bytes[tick])
            backlog -= np.where(late > 0, np.maximum(0.0, accepted - offered), late)
            consumed = self._disks.take(tick, landing)
            if watch is not None:
                watch(tick, self._places, consumed)
            outcome.held_bytes[tick] = held
            self._note_disks(tick, consumed)
            decided = self._decisions.at(tick, np.rint(consumed))
            self._note_limits(tick, decided)
            outcome.factors[tick] = decided.headroom
            outcome.undetermined[tick] = decided.undetermined
            self._hold(tick, decided)
        outcome.lost_bytes[:] = lost + np.maximum(0.0, backlog)
        return outcome

    def _accepted(self, landing: Floats, share: Floats) -> Floats:
        """Return the bytes accepted from producers under each policy; each volume takes its share of them."""
        if not self._by_volume:
            return landing
        least, total = landing.min(axis=0), float(share.sum())
        if total == 0:
            return np.asarray(least)
        return np.where(least == landing.max(axis=0), least, share @ landing / total)

    def _note_disks(self, tick: int, consumed: Floats) -> None:
        outcome, there = self._outcome, self._flows.present[tick][:, None]
        np.maximum(outcome.crest_bytes, consumed, out=outcome.crest_bytes, where=there)
        ratio = consumed / np.maximum(self._flows.capacity_bytes[tick], 1.0)[:, None]
        ratio *= there
        fullest = ratio.argmax(axis=0)
        outcome.fullest[tick] = fullest
        outcome.fullest_ratio[tick] = ratio[fullest, np.arange(len(fullest))]
        if (outcome.fullest_ratio[tick] >= _FULL_RATIO).any():
            outcome.filled[tick] = (ratio >= _FULL_RATIO).sum(axis=0)

    def _note_limits(self, tick: int, decided: Decided) -> None:
        for places, over in (
            (self._outcome.soft_tick, decided.soft),
            (self._outcome.hard_tick, decided.hard),
        ):
            if over.any():
                places[over & (places == NONE)] = tick

    def _hold(self, tick: int, decided: Decided) -> None:
        """Note whom the decisions hold, and what they let through in the next tick."""
        scene, outcome, headroom = self._scene, self._outcome, self._outcome.factors[tick]
        if (writers := scene.producers.get(tick)) is not None:
            self._producers.observe(writers.topics, writers.unlisted, were_held=tick in scene.held)
        if not self._by_volume:
            self._passing = headroom
            held = headroom < 1
            outcome.paused[tick] = np.where(headroom == 0, self._producers.count, 0)
            outcome.slowed[tick] = np.where(held & (headroom > 0), self._producers.count, 0)
            outcome.unlisted[tick] = np.where(held, self._producers.unlisted, 0)
            if self._holds_of is not None and held.any():
                self._holds_of.add(self._producers.names, self._places, headroom)
            return
        self._passing = np.ones(self._passing.shape)
        for policy, decision in enumerate(decided.decisions):
            if decision is None or decision.headroom >= 1:
                continue
            self._passing[:, policy] = self._let_through(tick, decision)
            if self._holds_of is not None:
                for name, factor in self._producers.factors(decision).items():
                    self._holds_of.add([name], self._places[[policy]], np.array([float(factor)]))
            tally = self._producers.held_by(decision, Scope.VOLUME)
            for column, value in zip(
                (outcome.paused, outcome.slowed, outcome.unlisted, outcome.by_cluster), tally, strict=True
            ):
                column[tick, policy] = value

    def _let_through(self, tick: int, decision: Decision) -> Floats:
        """Return for each volume the share of what is written to it that a decision lets through."""
        volumes, scope = len(self._scene.volumes), decision.scope
        if scope is None:
            return np.full(volumes, float(decision.headroom))
        passing = np.full(volumes, float(scope.others))
        if self._scene.topics is not None:
            for column in np.flatnonzero(self._flows.present[tick]):
                if names := self._scene.topics_at(tick, int(column)):
                    passing[column] = float(max(scope.of(topic) for topic in names))
        return passing
