"""The verdict of a cluster's agents under many policies at once, on arrays of volumes and policies. Pure.

This is the policy of `kquota.policy` a second time, for the closed loop alone: latches, votes, silent brokers
and the fallback action. Its tests compare each tick with the core on random clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kquota.policy.decision import FallbackAction
from kquota.policy.limits import LimitPair
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.scene import Floats, Scene
from kquota_pipeline.backtest.shared_ids import SharedIds
from kquota_pipeline.backtest.thresholds import NO_PAIR, Bound, Thresholds, bound_of

_ABSENT = -2
_NEVER = np.iinfo(np.int64).min // 2


class Verdict(NamedTuple):
    """The agents' conclusion at the end of a tick.

    `headroom`, `undetermined` and `falls_back` (whether the fallback action may decide) are [policy]. `votes`
    has the headroom that each volume votes for, 1 without a vote, and `unnamed` is where a vote counts for
    all topics because its record is old: [volume, policy]; None stands for nowhere.
    """

    headroom: Floats
    undetermined: NDArray[np.int64]
    falls_back: NDArray[np.bool_]
    votes: Floats
    unnamed: NDArray[np.bool_] | None


class Verdicts:
    """The agents of all brokers under all policies: their last records, and the verdict they come to.

    `present` [tick, volume] is where the history has a record of a volume, `capacity_bytes` [tick, volume]
    its size.
    """

    def __init__(
        self,
        scene: Scene,
        present: NDArray[np.bool_],
        capacity_bytes: Floats,
        policies: Sequence[Policy],
    ) -> None:
        self._scene = scene
        self._present, self._capacity = present, capacity_bytes
        self._policies = policies
        shape = len(scene.volumes), len(policies)
        ids = sorted({volume.broker_id for volume in scene.volumes})
        self._index = {broker_id: number for number, broker_id in enumerate(ids)}
        self._broker = np.array([self._index[volume.broker_id] for volume in scene.volumes], dtype=np.int64)
        self._columns = [np.flatnonzero(self._broker == number) for number in range(len(ids))]
        self._thresholds = Thresholds(*shape)
        self._pairs = np.full(shape, NO_PAIR, dtype=np.int32)
        self._known_pairs: dict[LimitPair, int] = {}
        self._terms = np.full(shape[0], _ABSENT, dtype=np.int64)
        self._sizes = np.full(shape[0], -1.0)
        self._shared = SharedIds(scene.volume_ids, present, self._broker)
        # The brokers' last records.
        self._latched = np.zeros(shape, dtype=bool)
        self._headroom = np.ones(shape)
        self._ids = np.full(shape[0], _ABSENT, dtype=np.int64)
        self._ill = np.zeros((len(ids), len(policies)), dtype=bool)
        self._seen_at = np.full(len(ids), _NEVER, dtype=np.int64)
        # Within a tick there is no finer resolution.
        self._staleness = np.array([max(p.staleness_seconds, scene.tick_seconds) for p in policies])
        self._opens = np.array([p.fallback_action is FallbackAction.OPEN for p in policies])
        self._bounded = np.array([p.fallback_action is FallbackAction.BOUNDED for p in policies])
        self._published = np.zeros(shape) if self._bounded.any() else None

    def at(self, tick: int, consumed_bytes: Floats) -> Verdict:
        """Publish whole bytes consumed, [volume, policy], and return the verdict at the end of a tick."""
        for broker_id in self._scene.decommissioned.get(tick, ()):
            self._forget(broker_id)
        self._publish(tick, consumed_bytes)
        return self._judge(tick)

    def _forget(self, broker_id: int) -> None:
        if (broker := self._index.get(broker_id)) is not None:
            self._headroom[self._columns[broker]] = 1.0
            self._ill[broker] = False
            self._seen_at[broker] = _NEVER

    def _publish(self, tick: int, consumed_bytes: Floats) -> None:
        there = self._present[tick]
        reporting = np.zeros(len(self._columns), dtype=bool)
        reporting[self._broker[there]] = True
        if not reporting.any():
            return
        ids = self._scene.volume_ids[tick]
        inherited = self._shared.latched(tick, self._ids, self._latched, self._pairs)
        changed = there & ((self._scene.terms[tick] != self._terms) | (self._capacity[tick] != self._sizes))
        for column in np.flatnonzero(changed):
            self._set_terms(tick, int(column))
        other_disk = there & (ids != self._ids)
        if other_disk.any():
            self._latched[other_disk] = False
        for heir, pairs in inherited:
            self._latched[heir] |= pairs == self._pairs[heir]
        failed = self._scene.failed[tick] & there
        hit = consumed_bytes >= self._thresholds.low
        hit |= self._latched
        hit &= there[:, None]
        found = _look(hit, consumed_bytes, self._thresholds, self._latched, failed, self._capacity[tick])
        columns = reporting[self._broker]
        self._latched[columns] = False
        self._headroom[columns] = 1.0
        rows, of_policies, latched, headroom = found
        self._latched[rows, of_policies] = latched
        self._headroom[rows, of_policies] = headroom
        self._ids[columns] = np.where(there, ids, _ABSENT)[columns]
        if self._published is not None:
            self._published[columns] = consumed_bytes[columns]
        self._seen_at[reporting] = self._scene.ticks[tick]
        self._ill[reporting] = False
        unjudged = (self._pairs == NO_PAIR) & there[:, None]
        unjudged[failed] = True
        if unjudged.any():
            rows, of_policies = np.nonzero(unjudged)
            self._ill[self._broker[rows], of_policies] = True

    def _set_terms(self, tick: int, column: int) -> None:
        """Take the limits of a volume from its record, or from the policies; other limits end its latch."""
        self._terms[column] = code = int(self._scene.terms[tick, column])
        self._sizes[column] = capacity = self._capacity[tick, column]
        terms, broker_id = self._scene.all_terms[code], self._scene.volumes[column].broker_id
        bounds: list[Bound] = []
        for number, policy in enumerate(self._policies):
            pair = policy.pair(broker_id, terms.mount_point) or terms.recorded
            bounds.append(bound_of(pair, policy.release_margin, int(capacity)))
            known = NO_PAIR if pair is None else self._known_pairs.setdefault(pair, len(self._known_pairs))
            if known != self._pairs[column, number]:
                self._pairs[column, number] = known
                self._latched[column, number] = False
        self._thresholds.set(column, bounds)

    def _judge(self, tick: int) -> Verdict:
        undetermined = np.zeros(len(self._policies), dtype=np.int64)
        votes, unnamed = self._headroom, None
        unknown = self._scene.unknown.get(tick, frozenset())
        if unknown or self._ill.any():
            now = int(self._scene.ticks[tick])
            fresh = (now - self._seen_at)[:, None] <= self._staleness
            undetermined += (self._ill & fresh).sum(axis=0)
            for broker_id in unknown:
                broker = self._index.get(broker_id)
                if broker is None or self._seen_at[broker] == _NEVER:
                    undetermined += 1
                elif (silent := ~fresh[broker]).any():
                    if unnamed is None:
                        votes, unnamed = votes.copy(), np.zeros(votes.shape, dtype=bool)
                    columns = self._columns[broker]
                    bounded, reached = self._bound(broker, now)
                    # Where no report is fresh, the agents are cut off, and cover none.
                    covered = silent & bounded & fresh.any(axis=0)
                    # Stale state is ignored, but silence never releases.
                    breached = np.where(votes[columns] == 0, 0.0, 1.0)
                    votes[columns] = np.where(covered, reached, np.where(silent, breached, votes[columns]))
                    unnamed[columns] = silent
                    undetermined += silent & ~covered
        headroom = votes.min(axis=0)
        falls_back = (undetermined > 0) & ~self._opens
        headroom[falls_back] = 0.0
        return Verdict(headroom, undetermined, falls_back, votes, unnamed)

    def _bound(self, broker: int, now: int) -> tuple[NDArray[np.bool_], Floats]:
        """Return under which policies a silent broker counts with a bound, and its votes by that bound."""
        columns = self._columns[broker]
        votes = self._headroom[columns]
        in_record = self._ids[columns] != _ABSENT
        if self._published is None or self._scene.fill_ceilings is None:
            return np.zeros(len(self._policies), dtype=bool), votes
        seen = np.searchsorted(self._scene.ticks, self._seen_at[broker])
        ceilings = self._scene.fill_ceilings[seen, columns]
        bounded = self._bounded & ~self._ill[broker] & ~np.isnan(ceilings[in_record]).any()
        grown = np.where(in_record, ceilings, 0.0) * float(now - self._seen_at[broker])
        consumed = np.minimum(self._published[columns] + grown[:, None], self._sizes[columns, None])
        reached = self._thresholds.of(columns).headroom(consumed)
        return bounded, np.where(in_record[:, None], np.minimum(votes, reached), 1.0)


def _look(
    hit: NDArray[np.bool_],
    consumed_bytes: Floats,
    thresholds: Thresholds,
    was_latched: NDArray[np.bool_],
    failed: NDArray[np.bool_],
    capacity_bytes: Floats,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], Floats]:
    """Return volumes and policies where a volume may have a vote, whether it is latched, and its headroom."""
    rows, policies = np.nonzero(hit)
    consumed, was = consumed_bytes[rows, policies], was_latched[rows, policies]
    bounds = thresholds.at(rows, policies)
    headroom = bounds.headroom(consumed)
    breached = headroom == 0
    latched = breached | (was & (consumed >= bounds.kept))
    if failed.any():  # of its old figures only a breach counts, and nothing is learnt from them
        ill = failed[rows]
        latched = np.where(ill, was, latched)
        headroom[ill & ~(breached & (capacity_bytes[rows] > 0))] = 1.0
    headroom[latched] = 0.0
    return rows, policies, latched, headroom
