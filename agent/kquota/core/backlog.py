"""Reading a long backlog: of each key only what still counts.

A topic holds many records of each broker until it is compacted. A tombstone, an order, or a well-formed
record that is not from the future settles whatever its key said before, so the backlog is read from its end,
and what is settled already is not even parsed. The view is the same as if all had been folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kquota.core.records import Event, RawValue, read_event
from kquota.core.view import ClusterView

RawRecord = tuple[bytes | str | None, RawValue | None]


def read_backlog(records: Sequence[RawRecord], view: ClusterView, now: datetime) -> list[Event | None]:
    """Return the event of each record, in their order; None for one that a later record has settled."""
    settled: set[bytes | str | None] = set()
    events: list[Event | None] = []
    for key, value in reversed(records):
        if key in settled:
            events.append(None)
            continue
        event = read_event(key, value)
        if view.settles(event, now):
            settled.add(key)
        events.append(event)
    events.reverse()
    return events
