"""The decisions of a cluster's agents under many policies: the core decides, and arrays choose what it reads.

A decision is the worst that volumes ask for. So of the brokers that report, the core gets those volumes alone
that are over a hard limit, failed or latched, or may ask for the least headroom of all; with the scope of the
volume each one over its soft limit, because another topic may be on it. Which they are is found for all
volumes and policies at once, by whole bytes. Of a broker that falls silent the core gets the whole record.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kquota.policy.decision import Decision, Scope
from kquota.policy.limits import LimitPair
from kquota.policy.volume import Volume
from kquota_pipeline.backtest.agents import Agents
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.scene import NONE, Floats, Scene
from kquota_pipeline.backtest.thresholds import Thresholds, bound_of

Flags = NDArray[np.bool_]
_NEVER = -1


class Decided(NamedTuple):
    """The end of a tick: each policy's decision, None where all is OPEN without one; `soft` and `hard`
    [volume, policy] are where a volume is over its limits.
    """

    decisions: Sequence[Decision | None]
    soft: Flags
    hard: Flags

    @property
    def headroom(self) -> Floats:
        """The headroom under each policy."""
        return np.array([1.0 if one is None else float(one.headroom) for one in self.decisions])

    @property
    def undetermined(self) -> list[int]:
        """How many brokers are undetermined under each policy."""
        return [0 if one is None else len(one.undetermined) for one in self.decisions]


class Decisions:
    """The agents of all brokers under all policies.

    `present` [tick, volume] is where the history has the figures of a volume, `capacity_bytes` [tick, volume]
    its size.
    """

    def __init__(
        self, scene: Scene, present: Flags, capacity_bytes: Floats, policies: Sequence[Policy]
    ) -> None:
        self._scene, self._policies = scene, policies
        self._present, self._capacity = present, capacity_bytes
        self._agents = [Agents(policy, scene.tick_seconds) for policy in policies]
        self._ids = sorted({volume.broker_id for volume in scene.volumes})
        self._index = {broker_id: number for number, broker_id in enumerate(self._ids)}
        self._broker = np.array([self._index[volume.broker_id] for volume in scene.volumes], dtype=np.int64)
        self._columns = [np.flatnonzero(self._broker == number) for number in range(len(self._ids))]
        volumes, brokers, count = len(scene.volumes), len(self._ids), len(policies)
        self._thresholds = Thresholds(volumes, count)
        self._unjudged = np.zeros((volumes, count), dtype=bool)
        self._pairs: list[list[LimitPair | None]] = [[] for _ in range(volumes)]
        self._terms = np.full(volumes, NONE, dtype=np.int64)
        self._sizes = np.full(volumes, -1.0)
        self._published = np.zeros((volumes, count))
        # Of each broker: the tick of its last record; whether that says anything, and whether a volume of it
        # is latched; whether what the core has of it does, and whether the core has all of it.
        self._seen = np.full(brokers, _NEVER, dtype=np.int64)
        self._says, self._latched, self._counts, self._is_whole = (
            np.zeros((brokers, count), dtype=bool) for _ in range(4)
        )
        self._of_volumes = any(policy.scope is Scope.VOLUME for policy in policies)

    def at(self, tick: int, consumed_bytes: Floats) -> Decided:
        """Publish whole bytes consumed, [volume, policy], and decide at the end of a tick."""
        now = self._time(tick)
        for broker_id in self._scene.decommissioned.get(tick, ()):
            for agents in self._agents:
                agents.decommission(broker_id, now)
            if (broker := self._index.get(broker_id)) is not None:
                self._seen[broker], self._counts[broker] = _NEVER, False
        soft, hard, reporting = self._publish(tick, consumed_bytes)
        unknown = self._scene.unknown.get(tick, frozenset())
        self._complete(reporting, unknown)
        counts: Flags = np.any(self._counts, axis=0)
        return Decided(
            [
                agents.decide(now, unknown) if unknown or counts[place] else None
                for place, agents in enumerate(self._agents)
            ],
            soft,
            hard,
        )

    def _publish(self, tick: int, consumed_bytes: Floats) -> tuple[Flags, Flags, Flags]:
        """Publish what counts of a tick's records; return where volumes are over their limits, and which
        brokers report.
        """
        scene, there = self._scene, self._present[tick]
        named = there | scene.offline[tick]
        changed = named & ((scene.terms[tick] != self._terms) | (self._capacity[tick] != self._sizes))
        for column in np.flatnonzero(changed):
            self._set_terms(tick, int(column))
        hard = there[:, None] & (consumed_bytes >= self._thresholds.hard)
        soft = (there & ~scene.failed[tick])[:, None] & (consumed_bytes >= self._thresholds.low)
        soft |= hard
        unknown = named[:, None] & (scene.failed[tick][:, None] | self._unjudged)
        says = soft | unknown
        needed = says if self._of_volumes else unknown | self._thresholds.worst(soft, hard, consumed_bytes)
        reporting = np.zeros(len(self._ids), dtype=bool)
        reporting[self._broker[named]] = True
        self._seen[reporting] = tick
        self._published[named] = consumed_bytes[named]
        self._says[reporting] = self._by_broker(says)[reporting]
        self._is_whole[reporting] = False
        due = (self._by_broker(needed) | self._counts | self._latched) & reporting[:, None]
        for broker, place in zip(*(found.tolist() for found in np.nonzero(due)), strict=True):
            columns = self._columns[broker]
            if not self._latched[broker, place]:  # a latch may be of another name of the same disk
                columns = columns[needed[columns, place]]
            at, volumes = self._record(broker, place, columns)
            self._latched[broker, place] = self._agents[place].publish(self._ids[broker], volumes, at)
            self._counts[broker, place] = says[columns, place].any() or self._latched[broker, place]
        return soft, hard, reporting

    def _complete(self, reporting: Flags, unknown: Set[int]) -> None:
        """Publish all of the last record of brokers that do not report, and of those that others miss."""
        missed = ~reporting
        missed[[self._index[broker_id] for broker_id in unknown if broker_id in self._index]] = True
        due = (missed & (self._seen != _NEVER))[:, None] & ~self._is_whole
        for broker, place in zip(*(found.tolist() for found in np.nonzero(due)), strict=True):
            at, volumes = self._record(broker, place, self._columns[broker])
            self._agents[place].complete(self._ids[broker], volumes, at)
            self._counts[broker, place] = self._says[broker, place] or self._latched[broker, place]
            self._is_whole[broker, place] = True
        if unknown:  # where none is heard, no bound covers a silent one
            latest = int(self._seen.argmax())
            for place in np.flatnonzero(~self._counts[latest] & ~self._is_whole[latest]).tolist():
                if self._seen[latest] != _NEVER:
                    self._agents[place].publish(self._ids[latest], (), self._time(int(self._seen[latest])))

    def _by_broker(self, of_volumes: Flags) -> Flags:
        """Return for each broker and policy whether it is so of a volume."""
        found = np.zeros(self._counts.shape, dtype=bool)
        rows, places = np.nonzero(of_volumes)
        found[self._broker[rows], places] = True
        return found

    def _set_terms(self, tick: int, column: int) -> None:
        """Take the limits of a volume from its record, or from the policies."""
        self._terms[column] = code = int(self._scene.terms[tick, column])
        self._sizes[column] = capacity = self._capacity[tick, column]
        terms, broker_id = self._scene.all_terms[code], self._scene.volumes[column].broker_id
        pairs = [policy.pair(broker_id, terms.mount_point) or terms.recorded for policy in self._policies]
        self._pairs[column] = pairs
        self._unjudged[column] = [pair is None for pair in pairs]
        self._thresholds.set(column, [bound_of(pair, int(capacity)) for pair in pairs])

    def _record(self, broker: int, place: int, columns: NDArray[np.int64]) -> tuple[datetime, list[Volume]]:
        """Return the time of a broker's last record, and some of its volumes."""
        tick = int(self._seen[broker])
        named = self._present[tick] | self._scene.offline[tick]
        volumes = [
            self._scene.volume_at(
                tick,
                column,
                int(self._capacity[tick, column]),
                int(self._published[column, place]),
                self._pairs[column][place],
            )
            for column in columns[named[columns]].tolist()
        ]
        return self._time(tick), volumes

    def _time(self, tick: int) -> datetime:
        return datetime.fromtimestamp(int(self._scene.ticks[tick]), UTC)
