"""The orders topic on the agent's Kafka side: what is known of its reading, and folding its records.

A topic that can't be read, or is refused, does not change the decision on volumes: known orders go on until
they end. Without any order the volumes alone decide, which protects the disks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from kquota.core.admission import Admission
from kquota.core.reading import Reading
from kquota.core.records import (
    DecommissionEvent,
    MalformedEvent,
    Refusal,
    RefusedEvent,
    TopicKind,
)
from kquota.core.view import FoldResult, excess_sentence
from kquota.daemon.inputs import Arrival, OrdersNews
from kquota.daemon.orders import order_news
from kquota.daemon.report import Folded
from kquota.fold.misplaced import MisplacedRecords
from kquota.fold.records import (
    CaughtUp,
    PartitionsChanged,
    ReaderEvent,
    ReadingFailed,
    ReadingRecovered,
    TopicRecord,
    TopicRestarted,
)
from kquota.kafka.errors import Kind

# An agent looks for a new topic of the same name this often; orders themselves come at once.
LOOK_SECONDS = 10.0
_NOT_READABLE = (Kind.TOPIC_MISSING, Kind.ACL_DENIED)


@dataclass(frozen=True, slots=True)
class OfOrders:
    """An event that the reader of the orders topic has handed over."""

    event: TopicRecord | ReaderEvent


def arrival_of(record: TopicRecord, topic: TopicKind) -> Arrival:
    """Return a record of a reader as a cycle takes it."""
    return Arrival(record.key, record.value, record.headers, record.timestamp_ms, record.partition, topic)


def counts(admission: Admission, record: TopicRecord, topic: TopicKind) -> bool:
    """Whether a record is signed as it has to be: anybody can write one into a wrong partition."""
    return not isinstance(admission.judge(arrival_of(record, topic).raw(), datetime.now(UTC)), Refusal)


@dataclass(slots=True)
class OrdersKnowledge:
    """The answers of the reader of the orders topic so far."""

    topic: str
    admission: Admission | None = None
    caught_up: bool = False
    is_readable: bool = True
    rereadings: int = 0
    misplaced: MisplacedRecords = field(init=False)

    def __post_init__(self) -> None:
        admission = self.admission
        judged = None if admission is None else lambda one: counts(admission, one, TopicKind.ORDERS)
        self.misplaced = MisplacedRecords(self.topic, judged, TopicKind.ORDERS)

    def take(self, event: TopicRecord | ReaderEvent) -> Arrival | None:
        """Take in one event; a record comes back as an arrival."""
        match event:
            case TopicRecord():
                self.misplaced.take(event)
                return arrival_of(event, TopicKind.ORDERS)
            case CaughtUp():
                self.caught_up = self.is_readable = True
            case ReadingFailed():
                self.is_readable = event.failure.kind not in _NOT_READABLE
            case ReadingRecovered():
                self.is_readable = True
            case TopicRestarted():
                self.misplaced.forget()
                if event.same_topic:
                    self.caught_up, self.rereadings = False, self.rereadings + 1
            case PartitionsChanged():
                self.misplaced.partitions_are(event.partitions)
        return None

    def news(self) -> OrdersNews:
        """Return what a cycle needs of it."""
        return OrdersNews(self.caught_up, self.is_readable, self.rereadings)


class OrdersFold:
    """Folds the records of the orders topic, from cycle to cycle."""

    def __init__(self, future_tolerance: timedelta, admission: Admission | None) -> None:
        """Begin with no orders."""
        self.reading = Reading(future_tolerance, admission)
        self._rereadings = 0
        self._was_caught_up = False

    def read_again(self, *, forget: bool = False) -> None:
        """Take in that the topic is read from its beginning."""
        self.reading.begin_again(same_topic=True, forget=forget)
        self._was_caught_up = False

    def fold(
        self, arrivals: Sequence[Arrival], now: datetime, news: OrdersNews, fold: Folded
    ) -> frozenset[int]:
        """Fold the arrivals of this topic; return brokers that were decommissioned."""
        if news.rereadings != self._rereadings:
            self._rereadings = news.rereadings
            self.read_again()
        of_orders = [one for one in arrivals if one.topic is TopicKind.ORDERS]
        records = [one.raw() for one in of_orders]
        events = self.reading.read(records, now, backlog=not self._was_caught_up)
        decommissioned = set()
        for arrival, event in zip(of_orders, events, strict=True):
            if event is None:
                fold.results[FoldResult.SUPERSEDED.value] += 1
                continue
            result = self.reading.fold(event, now)
            fold.results[result.value] += 1
            match event:
                case RefusedEvent():
                    fold.refusals[event.cause.value] += 1
                    fold.refused.append(event)
                case MalformedEvent(_, key, problem):
                    fold.malformed.append(f"the record of key {key} can't be used: {problem}")
                case DecommissionEvent(broker_id):
                    decommissioned.add(broker_id)
            if result is FoldResult.EXCESS:
                fold.malformed.append(excess_sentence(arrival.key))
            elif self._was_caught_up and (order := order_news(event, arrival.headers, arrival.timestamp_ms)):
                fold.orders.append(order)
        self._was_caught_up = news.caught_up
        if news.caught_up:
            self.reading.reached_end(now)
        return frozenset(decommissioned)
