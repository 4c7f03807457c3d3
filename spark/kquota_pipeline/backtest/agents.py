"""The agents of a cluster under one policy, run by the core itself: records in, decisions out. Pure.

Both loops of the back-test decide here: the open loop feeds recorded samples, the closed loop what the disks
would have held.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime, timedelta

from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision
from kquota.policy.events import TombstoneEvent, UsageEvent
from kquota.policy.latch import latch_volumes
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView
from kquota.policy.volume import Volume
from kquota_pipeline.backtest.policy import Policy

_TOLERANCE = timedelta(seconds=30)
_NONE: frozenset[int] = frozenset()


class Agents:
    """The agents of all brokers: their latches, their last records, and the decision they come to."""

    def __init__(self, policy: Policy, tick_seconds: float) -> None:
        self._margin = policy.release_margin
        # Within a tick there is no finer resolution.
        self._staleness = timedelta(seconds=max(policy.staleness_seconds, tick_seconds))
        self._settings = PolicySettings(policy.fallback_action, self._staleness, policy.scope)
        self._view = ClusterView(_TOLERANCE)
        self._published: dict[int, tuple[Volume, ...]] = {}
        self._seen_at: dict[int, datetime] = {}
        self._unread: set[int] = set()

    @property
    def any_known(self) -> bool:
        """Whether a broker that is not decommissioned has published a record."""
        return bool(self._seen_at)

    def publish(self, broker_id: int, volumes: list[Volume], at: datetime) -> None:
        """Latch a broker's volumes as observed then, and keep them as its record."""
        self._published[broker_id] = latch_volumes(self._published.get(broker_id, ()), volumes, self._margin)
        self._seen_at[broker_id] = at
        self._unread.add(broker_id)

    def decommission(self, broker_id: int, at: datetime) -> None:
        """Remove a broker's records, as an operator does."""
        self._view.fold(TombstoneEvent(broker_id), at)
        self._seen_at.pop(broker_id, None)
        self._unread.discard(broker_id)

    def decide(self, now: datetime, unknown: Set[int] = _NONE) -> Decision:
        """Return the decision at a time, no earlier than what was published; `unknown` names active brokers
        without a fresh record.
        """
        for broker_id in sorted(self._unread):
            record = UsageRecord(self._seen_at[broker_id], self._published[broker_id], None, None)
            self._view.fold(UsageEvent(broker_id, record), now)
        self._unread.clear()
        fresh = {broker for broker, seen_at in self._seen_at.items() if now - seen_at <= self._staleness}
        return decide(self._view, Situation(frozenset(fresh | unknown)), self._settings, now)
