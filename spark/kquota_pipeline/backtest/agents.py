"""The agents of a cluster under one policy, run by the core itself: records in, decisions out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Set
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

    def publish(self, broker_id: int, volumes: Iterable[Volume], at: datetime) -> bool:
        """Latch a broker's volumes as observed then, keep them as its record, and return whether one is
        latched.
        """
        latched = latch_volumes(self._published.get(broker_id, ()), volumes, self._margin)
        self._keep(broker_id, latched, at)
        return any(volume.latched for volume in latched)

    def complete(self, broker_id: int, volumes: Iterable[Volume], at: datetime) -> None:
        """Keep all volumes of the broker's last record, of which it has published those that count."""
        latched = {volume.name for volume in self._published.get(broker_id, ()) if volume.latched}
        self._keep(broker_id, tuple(one._replace(latched=one.name in latched) for one in volumes), at)

    def decommission(self, broker_id: int, at: datetime) -> None:
        """Remove a broker's records, as an operator does."""
        self._view.fold(TombstoneEvent(broker_id), at)
        self._seen_at.pop(broker_id, None)

    def decide(self, now: datetime, unknown: Set[int] = _NONE) -> Decision:
        """Return the decision at a time, no earlier than what was published; `unknown` names active brokers
        without a fresh record.
        """
        fresh = {broker for broker, seen_at in self._seen_at.items() if now - seen_at <= self._staleness}
        return decide(self._view, Situation(frozenset(fresh | unknown)), self._settings, now)

    def _keep(self, broker_id: int, volumes: tuple[Volume, ...], at: datetime) -> None:
        self._published[broker_id] = volumes
        self._seen_at[broker_id] = at
        self._view.fold(UsageEvent(broker_id, UsageRecord(at, volumes, None, None)), at)
