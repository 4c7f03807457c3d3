"""Reading the topic from its beginning, and perhaps again while the view is in use.

A topic holds many records of each broker until it is compacted. A tombstone or an order settles whatever its
key contained before; a well-formed record that is not from the future settles the earlier records of the same
instance of an agent. So the backlog is read from its end, and settled records are not even parsed. The view
is the same as if all had been folded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from kquota.core.records import Event, RawValue, UsageEvent, read_event
from kquota.core.view import ClusterView, FoldResult, NoRecord

RawRecord = tuple[bytes | str | None, RawValue | None, int | None]  # key, value, timestamp in ms
_INSTANCE = re.compile(rb'"InstanceId"\s*:\s*"([^"]*)"')


class Reading:
    """The view that counts (``view``), and the one that records are folded into (``target``).

    Old records must not pass for the present while the topic is read again. Of the same topic they make a
    view of their own, which takes the place of the first one at the end. A topic that was deleted and created
    again reverts nothing that is known: its records count at once, except those that are older.
    """

    def __init__(self, future_tolerance: timedelta) -> None:
        self.view = ClusterView(future_tolerance)
        self._next: ClusterView | None = None
        self._older_is_no_news = False

    @property
    def target(self) -> ClusterView:
        """Return the view that the next records belong to."""
        return self._next or self.view

    def know(self, cluster_id: str | None, listed: frozenset[int] | None) -> None:
        """Take in the cluster's id, if it has been reported, and the brokers that it lists."""
        for view in (self.view, self.target):
            view.know_cluster(cluster_id)
            view.listed = listed or frozenset()

    def fold(self, event: Event, now: datetime) -> FoldResult:
        """Take in one record."""
        if self._older_is_no_news and isinstance(event, UsageEvent):
            known = self.view.record_of(event.broker_id, now)
            if not isinstance(known, NoRecord) and event.record.snapshot_at < known.snapshot_at:
                return FoldResult.SUPERSEDED
        return self.target.fold(event, now)

    def begin_again(self, *, same_topic: bool) -> None:
        """Take in that the topic is read from its beginning again, or another one of its name is."""
        self._older_is_no_news = not same_topic
        if not same_topic:
            return
        view = self.view
        self._next = ClusterView(view.future_tolerance, cluster_id=view.cluster_id, listed=view.listed)

    def reached_end(self, now: datetime) -> None:
        """Take in that the topic has been read to its end."""
        self._older_is_no_news = False
        if self._next is not None:
            self._next.take_over(self.view, now)
            self.view, self._next = self._next, None


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
