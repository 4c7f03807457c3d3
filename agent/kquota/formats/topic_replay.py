"""Reading a topic from its beginning, and perhaps again while the view is in use.

A topic holds many records of each broker until it is compacted. A tombstone or an order settles whatever its
key contained before; a well-formed record that is not from the future settles the earlier records of the same
instance of an agent. So the backlog is read from its end, and settled records are neither verified nor
parsed. The view is the same as if all had been folded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kquota.formats.record_verifier import RecordVerifier, Signed, claimed, event_of
from kquota.formats.records import TopicKind, TopicRecord, read_event, read_record
from kquota.policy.events import Event, OrderEvent, Refusal, UsageEvent
from kquota.policy.view import ClusterView, FoldResult, NoRecord

# Why a topic is read again after ``take_revocations``.
REVOKED_AGAIN = "the list of revoked certificates has changed"

_INSTANCE = re.compile(rb'"InstanceId"\s*:\s*"([^"]*)"')


class TopicReplay:
    """The view that counts (``view``), and the one that records are folded into (``target``).

    Old records must not pass for the present while the topic is read again. Of the same topic they make a
    view of their own, which takes the place of the first one at the end. A topic that was deleted and created
    again reverts nothing that is known: its records count at once, except those that are older.
    """

    def __init__(
        self,
        future_tolerance: timedelta,
        verifier: RecordVerifier | None = None,
    ) -> None:
        """Begin with an empty view; without a verifier no signature is looked at."""
        self.view = ClusterView(future_tolerance)
        self.verifier = verifier
        self._next: ClusterView | None = None
        self._older_is_no_news = self._forgets = False
        self._revoked = self._revoked_now()

    def view_with(self, orders: TopicReplay) -> ClusterView:
        """Return the view that counts at this moment, with the orders of their own topic."""
        return replace(self.view, orders=orders.view.orders)

    @property
    def target(self) -> ClusterView:
        """Return the view that the next records belong to."""
        return self._next or self.view

    def configure(self, future_tolerance: timedelta, verifier: RecordVerifier | None) -> None:
        """Go on with other settings."""
        self.view.future_tolerance, self.verifier = future_tolerance, verifier

    def know(self, cluster_id: str | None, listed: frozenset[int] | None) -> None:
        """Take in the cluster's id, if it has been reported, and the brokers that it lists."""
        for view in (self.view, self.target):
            view.know_cluster(cluster_id)
            view.listed = listed or frozenset()

    def take_revocations(self) -> bool:
        """Let nothing count that a revoked certificate has signed; return whether the list has changed.

        The records behind them on the topic, and those of a certificate that is revoked no more, count when
        the topic is read again.
        """
        revoked = self._revoked_now()
        if revoked == self._revoked:
            return False
        self._revoked = revoked
        keys = [] if self.verifier is None else self.verifier.counters.revoke(revoked)
        for view in (self.view, self.target):
            view.revoke(revoked)
            for key in keys:
                order = read_event(key, None, topic=TopicKind.ORDERS)
                if isinstance(order, OrderEvent):
                    view.orders.forget(order)
        return True

    def _revoked_now(self) -> frozenset[str]:
        return frozenset() if self.verifier is None else self.verifier.authorities.revoked()

    def read(self, records: Sequence[TopicRecord], now: datetime, *, backlog: bool) -> list[Event | None]:
        """Return the event of each record, in their order; None for one that another has settled.

        Of a backlog only what still counts is read.
        """
        if backlog:
            return read_backlog(records, self.target, now, self.verifier)
        if self.verifier is None:
            return [read_record(one) for one in records]
        return [self.verifier.read(one, now) for one in records]

    def fold(self, event: Event, now: datetime) -> FoldResult:
        """Take in one record."""
        if self._older_is_no_news and isinstance(event, UsageEvent):
            known = self.view.record_of(event.broker_id, now)
            if not isinstance(known, NoRecord) and event.record.snapshot_at < known.snapshot_at:
                return FoldResult.SUPERSEDED
        return self.target.fold(event, now)

    def begin_again(self, *, same_topic: bool, forget: bool = False) -> None:
        """Take in that the topic is read from its beginning again, or another one of its name is.

        With ``forget`` nothing that was read before counts any longer once it has been read to its end.
        """
        self._older_is_no_news = not same_topic
        if not same_topic:
            return
        self._forgets = self._forgets or forget
        if self.verifier is not None:
            self.verifier.counters.begin_again()
        view = self.view
        self._next = ClusterView(
            view.future_tolerance,
            cluster_id=view.cluster_id,
            listed=view.listed,
        )

    def reached_end(self, now: datetime) -> None:
        """Take in that the topic has been read to its end."""
        self._older_is_no_news = False
        if self.verifier is not None:
            self.verifier.counters.reached_end()
        if self._next is not None:
            if not self._forgets:
                self._next.take_over(self.view, now)
            self.view, self._next, self._forgets = self._next, None, False


def read_backlog(
    records: Sequence[TopicRecord], view: ClusterView, now: datetime, verifier: RecordVerifier | None = None
) -> list[Event | None]:
    """Return the event of each record, in their order; None for one that a later record has settled.

    With a verifier, a record settles those with its certificate, and unsigned ones.
    """
    settled = _Settled()
    events: list[Event | None] = []
    verdicts: list[Signed | Refusal | None] = []
    claims = None if verifier is None else claimed(records, verifier.counters)
    for number in range(len(records) - 1, -1, -1):
        record = records[number]
        certificate = None if claims is None else claims[number].certificate
        if settled.has(record.key, certificate, record.value):
            events.append(None)
            verdicts.append(None)
            continue
        verdict = None if verifier is None else verifier.judge(record, now)
        event = event_of(record, verdict)
        if view.settles(event, now) and (claims is None or claims[number].is_highest):
            settled.add(record.key, certificate, event)
        events.append(event)
        verdicts.append(verdict)
    events.reverse()
    if verifier is None:
        return events
    verdicts.reverse()
    return [verifier.in_turn(*judged) for judged in zip(records, verdicts, events, strict=True)]


class _Settled:
    """The records that a later one has settled, by key, certificate, and for usage records instance."""

    def __init__(self) -> None:
        self._all: set[tuple[bytes | None, bytes | None]] = set()
        self._instances: dict[tuple[bytes | None, bytes | None], set[str | None]] = {}

    def has(self, key: bytes | None, certificate: bytes | None, value: bytes | None) -> bool:
        """Return whether a record is settled, without parsing it."""
        place = key, certificate
        instances = self._instances.get(place)
        return place in self._all or (instances is not None and _is_of_one_of(instances, value))

    def add(self, key: bytes | None, certificate: bytes | None, event: Event) -> None:
        """Take in that a record settles those before it."""
        for place in {(key, certificate), (key, None)}:
            if isinstance(event, UsageEvent):
                # one that names no instance is settled by whatever comes later
                self._instances.setdefault(place, {None}).add(event.record.instance_id)
            else:
                self._all.add(place)


def _is_of_one_of(instances: set[str | None], value: bytes | None) -> bool:
    """Return whether a usage record is of one of these instances (None: it names none), without parsing it.

    False where only parsing can show it: a tombstone, and JSON with escapes.
    """
    if value is None or b"\\" in value:
        return False
    match = _INSTANCE.search(value)
    return (None if match is None else match[1].decode(errors="replace")) in instances
