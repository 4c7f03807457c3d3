"""Operators' orders: the last one of each key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from kquota.policy.events import (
    BrokerOrder,
    BrokerOrderEvent,
    Decommission,
    DecommissionEvent,
    Hold,
    HoldEvent,
    OrderEvent,
    OrderTerms,
    ReliefEvent,
)
from kquota.policy.usage import UsageRecord

# Orders of each kind about single brokers that are kept. Far more than a cluster has brokers.
MAX_BROKER_ORDERS = 4096
MAX_RELIEFS = 256
"""Relief plans that are kept: more than operators have in force."""


@dataclass(slots=True)
class Orders:
    """The last order of each key; None for one that was withdrawn."""

    hold: Hold | None = None
    notes: dict[tuple[BrokerOrder, int], OrderTerms | None] = field(default_factory=dict)
    decommissions: dict[int, Decommission] = field(default_factory=dict)
    reliefs: dict[str, OrderTerms] = field(default_factory=dict)

    def fold(self, event: OrderEvent, now: datetime) -> bool:
        """Take in an order; return whether there was room for it."""
        match event:
            case HoldEvent(hold):
                self.hold = hold
            case BrokerOrderEvent(order, broker_id, note):
                if not self._takes(order, broker_id, now):
                    return False
                self.notes[order, broker_id] = note
            case DecommissionEvent(broker_id, None):
                self.decommissions.pop(broker_id, None)
            case DecommissionEvent(broker_id, decommission):
                assert decommission is not None
                self.decommissions[broker_id] = decommission
                if len(self.decommissions) > MAX_BROKER_ORDERS:
                    highest = max(self.decommissions)
                    del self.decommissions[highest]
                    return broker_id != highest
            case ReliefEvent(plan_id, note):
                return self._fold_relief(plan_id, note, now)
        return True

    def forget(self, event: OrderEvent) -> None:
        """Drop the order of an event's key, as if there had been no word on it."""
        match event:
            case HoldEvent():
                self.hold = None
            case BrokerOrderEvent(order, broker_id):
                self.notes.pop((order, broker_id), None)
            case DecommissionEvent(broker_id):
                self.decommissions.pop(broker_id, None)
            case ReliefEvent(plan_id):
                self.reliefs.pop(plan_id, None)

    def hold_in_force(self, now: datetime) -> Hold | None:
        """Return the hold that has not yet ended."""
        return self.hold if self.hold is not None and self.hold.note.in_force(now) else None

    def in_force(self, order: BrokerOrder, broker_id: int, now: datetime) -> OrderTerms | None:
        """Return the order about a broker that has not yet ended."""
        note = self.notes.get((order, broker_id))
        return note if note is not None and note.in_force(now) else None

    def all_in_force(self, now: datetime) -> Iterator[tuple[BrokerOrder, int, OrderTerms]]:
        """Yield the orders about single brokers that have not yet ended, by order and broker."""
        for order, broker_id in sorted(self.notes):
            note = self.in_force(order, broker_id, now)
            if note is not None:
                yield order, broker_id, note

    def forgets(self, broker_id: int, record: UsageRecord) -> bool:
        """Whether a record is from before its broker's decommission."""
        decommission = self.decommissions.get(broker_id)
        return decommission is not None and (record.appended_at or record.snapshot_at) <= decommission.at

    def reliefs_in_force(self, now: datetime) -> dict[str, OrderTerms]:
        """Return the relief plans that have not yet ended, by id."""
        return {key: note for key, note in sorted(self.reliefs.items()) if note.in_force(now)}

    def _fold_relief(self, plan_id: str, note: OrderTerms | None, now: datetime) -> bool:
        if note is None:
            self.reliefs.pop(plan_id, None)
            return True
        self.reliefs[plan_id] = note
        if len(self.reliefs) > MAX_RELIEFS:
            self.reliefs = self.reliefs_in_force(now)
        if len(self.reliefs) > MAX_RELIEFS:
            del self.reliefs[last := max(self.reliefs)]
            return plan_id != last
        return True

    def _takes(self, order: BrokerOrder, broker_id: int, now: datetime) -> bool:
        """Whether there is room for an order; ended orders, and orders about higher ids, make room."""
        if (order, broker_id) in self.notes or len(self.notes) < MAX_BROKER_ORDERS:
            return True
        self.notes = {
            key: note for key, note in self.notes.items() if note is not None and note.in_force(now)
        }
        if len(self.notes) < MAX_BROKER_ORDERS:
            return True
        highest = max(self.notes, key=lambda key: (key[1], key[0]))
        if (broker_id, order) < (highest[1], highest[0]):
            del self.notes[highest]
            return True
        return False
