"""How long a decision that is written now holds."""

from __future__ import annotations

from datetime import timedelta

from kquota.guard.inputs import Moment
from kquota.policy.decision import MAX_MAINTENANCE_LEASE, Lease
from kquota.policy.events import Hold, OrderTerms


def lease_of(shortest: timedelta, hold: Hold | None, maintenance: OrderTerms | None, moment: Moment) -> Lease:
    """Return the lease of a decision made now; in maintenance it lasts until the planned stop is over.

    The state of a hold ends with the hold, also when no agent is there any more to end it.
    """
    duration = shortest
    if maintenance is not None:
        duration = max(shortest, min(maintenance.until - moment.wall, MAX_MAINTENANCE_LEASE))
    if hold is not None:
        duration = max(shortest, min(hold.note.until - moment.wall, duration))
    end = moment.boot.later(duration.total_seconds())
    return Lease(moment.wall + duration, end.boot_id, end.uptime_ms)
