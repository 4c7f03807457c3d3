"""The orders topic on the agent's Kafka side: what is known of its reading, and folding its records.

A topic that can't be read, or is refused, does not change the decision on volumes: known orders go on until
they end. Without any order the volumes alone decide, which protects the disks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.sentences import malformed_sentence
from kquota.formats.topic_replay import TopicReplay
from kquota.guard.folding import fold_records
from kquota.guard.inputs import OrdersNews
from kquota.guard.orders import order_news
from kquota.guard.report import Folded
from kquota.kafka.errors import Kind
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.misplaced import MisplacedRecords
from kquota.kafka.topic_records import (
    CaughtUp,
    PartitionsChanged,
    ReaderEvent,
    ReadingFailed,
    ReadingRecovered,
    TopicRestarted,
)
from kquota.policy.events import Event, MalformedEvent, Refusal, RefusedEvent
from kquota.policy.view import FoldResult

# An agent looks for a new topic of the same name this often; orders themselves come at once.
LOOK_SECONDS = 10.0
_NOT_READABLE = (Kind.TOPIC_MISSING, Kind.ACL_DENIED)


@dataclass(frozen=True, slots=True)
class OfOrders:
    """An event that the reader of the orders topic has handed over."""

    event: TopicRecord | ReaderEvent


def orders_to_read(topic: str, sink: Callable[[OfOrders], None]) -> ReadTopic:
    """Return how to read the orders topic. The end of an order is judged by the broker's time."""
    return ReadTopic(topic, lambda event: sink(OfOrders(event)), LOOK_SECONDS, TopicKind.ORDERS)


def counts(verifier: RecordVerifier, record: TopicRecord) -> bool:
    """Whether a record in a wrong partition can be one from before partitions were added.

    Anybody can write one there, with no signature or a wrong one. The owner of an agent's key can sign one,
    and must not have the topic refused for all: of an agent's records the counter shows the newest anyway,
    in whatever partitions they are.
    """
    verdict = verifier.judge(record, datetime.now(UTC))
    return not isinstance(verdict, Refusal) and (verdict is None or not verdict.is_agents)


@dataclass(slots=True)
class OrdersKnowledge:
    """The answers of the reader of the orders topic so far."""

    topic: str
    verifier: RecordVerifier | None = None
    caught_up: bool = False
    is_readable: bool = True
    rereadings: int = 0
    misplaced: MisplacedRecords = field(init=False)

    def __post_init__(self) -> None:
        verifier = self.verifier
        judged = None if verifier is None else lambda one: counts(verifier, one)
        self.misplaced = MisplacedRecords(self.topic, judged, TopicKind.ORDERS)

    def take(self, event: TopicRecord | ReaderEvent) -> TopicRecord | None:
        """Take in one event, and return it if it is a record."""
        match event:
            case TopicRecord():
                self.misplaced.take(event)
                return event
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

    def __init__(self, future_tolerance: timedelta, verifier: RecordVerifier | None) -> None:
        """Begin with no orders."""
        self.reading = TopicReplay(future_tolerance, verifier)
        self._rereadings = 0
        self._was_caught_up = False

    def read_again(self, *, forget: bool = False) -> None:
        """Take in that the topic is read from its beginning."""
        self.reading.begin_again(same_topic=True, forget=forget)
        self._was_caught_up = False

    def fold(
        self, records: Sequence[TopicRecord], now: datetime, news: OrdersNews, fold: Folded
    ) -> list[tuple[TopicRecord, Event, FoldResult]]:
        """Fold the records of this topic, and note those that are news; return all of them."""
        if news.rereadings != self._rereadings:
            self._rereadings = news.rereadings
            self.read_again()
        of_orders = [one for one in records if one.topic is TopicKind.ORDERS]
        backlog = not self._was_caught_up
        folded = list(fold_records(self.reading, of_orders, now, backlog=backlog, fold=fold))
        for record, event, result in folded:
            if self._was_caught_up and result is not FoldResult.EXCESS:
                _take_news(record, event, fold)
        self._was_caught_up = news.caught_up
        if news.caught_up:
            self.reading.reached_end(now)
        return folded


def _take_news(record: TopicRecord, event: Event, fold: Folded) -> None:
    match event:
        case RefusedEvent():
            fold.refused.append(event)
        case MalformedEvent():
            fold.malformed.append(malformed_sentence(event))
    if (order := order_news(event, record.headers, record.appended_ms)) is not None:
        fold.orders.append(order)
