"""The orders of operators that are in force, in one list: for status and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kquota.policy.events import OrderTerms
from kquota.policy.timestamps import format_utc
from kquota.policy.view import ClusterView


@dataclass(frozen=True, slots=True)
class StandingOrder:
    """An order in force: ``hold`` with its action, ``relief`` with its plan there, or one about a broker."""

    order: str
    note: OrderTerms
    action: str = ""
    broker_id: int | None = None

    def to_document(self) -> Mapping[str, object]:
        """Return the JSON form in the status."""
        return {
            "order": self.order,
            "broker_id": self.broker_id,
            "action": self.action or None,
            "until": format_utc(self.note.until),
            "reason": self.note.reason,
            "actor": self.note.actor,
        }


def orders_in_force(view: ClusterView, now: datetime) -> tuple[StandingOrder, ...]:
    """Return the hold, then the maintenances and the quarantines, by broker, then relief plans, by id."""
    orders = view.orders
    hold = orders.hold_in_force(now)
    return (
        *(() if hold is None else (StandingOrder("hold", hold.note, hold.action.value),)),
        *(
            StandingOrder(kind.value, note, broker_id=broker_id)
            for kind, broker_id, note in orders.all_in_force(now)
        ),
        *(StandingOrder("relief", note, plan_id) for plan_id, note in orders.reliefs_in_force(now).items()),
    )
