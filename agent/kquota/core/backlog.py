"""Reading a long backlog: of each key only what still counts.

A topic holds many records of each broker until it is compacted. A tombstone or an order settles whatever its
key contained before; a well-formed record that is not from the future settles the earlier records of the same
instance of an agent. So the backlog is read from its end, and settled records are not even parsed. The view
is the same as if all had been folded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from kquota.core.records import Event, RawValue, UsageEvent, read_event
from kquota.core.view import ClusterView

RawRecord = tuple[bytes | str | None, RawValue | None, int | None]  # key, value, timestamp in ms
_INSTANCE = re.compile(rb'"InstanceId"\s*:\s*"([^"]*)"')


def read_backlog(records: Sequence[RawRecord], view: ClusterView, now: datetime) -> list[Event | None]:
    """Return the event of each record, in their order; None for one that a later record has settled."""
    settled: set[bytes | str | None] = set()
    settled_instances: dict[bytes | str | None, set[str | None]] = {}
    events: list[Event | None] = []
    for key, value, appended_ms in reversed(records):
        instances = settled_instances.get(key)
        if key in settled or (instances is not None and _is_of_one_of(instances, value)):
            events.append(None)
            continue
        event = read_event(key, value, appended_ms)
        if view.settles(event, now):
            if isinstance(event, UsageEvent):
                # one that names no instance is settled by whatever comes later
                settled_instances.setdefault(key, {None}).add(event.record.instance_id)
            else:
                settled.add(key)
        events.append(event)
    events.reverse()
    return events


def _is_of_one_of(instances: set[str | None], value: RawValue | None) -> bool:
    """Return whether a usage record is of one of these instances (None: it names none), without parsing it.

    False where only parsing can show it: a tombstone, and JSON with escapes.
    """
    if isinstance(value, str):
        value = value.encode(errors="replace")
    if not isinstance(value, bytes) or b"\\" in value:
        return False
    match = _INSTANCE.search(value)
    return (None if match is None else match[1].decode(errors="replace")) in instances
