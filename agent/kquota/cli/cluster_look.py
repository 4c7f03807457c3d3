"""A look at the whole cluster from the command line: it needs no agent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Self

from kquota.cli import exit_codes
from kquota.cli.output import fail
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.sentences import refused_sentence, topic_sentence
from kquota.formats.status import status_document
from kquota.formats.topic_replay import REVOKED_AGAIN, TopicReplay
from kquota.guard.event_queue import EventQueue
from kquota.guard.folding import fold_records
from kquota.guard.kafka_side import KafkaEvent, KafkaState, hand_over, take_portion
from kquota.guard.orders_topic import OfOrders, OrdersFold, OrdersKnowledge, orders_to_read
from kquota.guard.report import Folded
from kquota.kafka.admin import AdminConnection
from kquota.kafka.brokers import BrokerList, BrokerWatch
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.reader import TopicReader
from kquota.kafka.topic_records import CaughtUp, TopicRestarted
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import UndeterminedCause
from kquota.policy.events import Event, RefusedEvent
from kquota.policy.known_brokers import vouched_in_reports
from kquota.policy.membership import Membership
from kquota.policy.view import MAX_UNLISTED_BROKERS, ClusterView, FoldResult
from kquota.settings import Settings, SettingsError
from kquota.trust.signing import signing_problems, verifier_of

CLIENT_NAME = "cli"
_MOST_REFUSED = 5
_TAKE_SECONDS = 1.0


def look_at_cluster(settings: Settings) -> ClusterLook:
    """Return a look at the cluster, or end with the problems of the configuration."""
    try:
        return ClusterLook(settings)
    except (ConfigurationError, SettingsError) as error:
        fail(str(error), exit_codes.CONFIGURATION)
    except OSError as error:
        fail(str(error))


class ClusterLook:
    """Reads the agents' inputs, and decides as they would, but for no broker of its own."""

    def __init__(self, settings: Settings) -> None:
        """Connect.

        Raises:
            ConfigurationError: librdkafka refuses a property.
            SettingsError: the authorities of signed records can't be read.
            OSError: no client can be started.
        """
        verifier, topics = verifier_of(settings), settings.topics
        orders_verifier = None if verifier is None else verifier.of_topic(topics.orders.name)
        properties = ClientProperties(settings.librdkafka(), CLIENT_NAME)
        self._inbox: EventQueue[KafkaEvent] = EventQueue()
        self._admin = AdminConnection(properties)
        orders = OrdersKnowledge(topics.orders.name, orders_verifier)
        self._knowledge = KafkaState(topics.usage.name, verifier=verifier, orders=orders)
        begins = None if verifier is None else lambda: self._knowledge.active_brokers is not None
        self._reader = TopicReader(
            properties,
            self._admin,
            ReadTopic(topics.usage.name, self.put),
            orders_to_read(topics.orders.name, self.put),
            may_begin=begins,
            passing=True,
        )
        self._brokers = BrokerWatch(self._admin, self.put)
        staleness = timedelta(seconds=settings.staleness_seconds)
        self._policy = PolicySettings(settings.fallback_action, staleness, settings.scope)
        self._release_margin = settings.release_margin_ratio
        tolerance = timedelta(seconds=settings.future_tolerance_seconds)
        self._orders = OrdersFold(tolerance, orders_verifier)
        self._reading = TopicReplay(tolerance, verifier, self._orders.reading)
        self._settings = settings
        self._refused = dict[tuple[TopicKind, bytes | None], RefusedEvent]()
        self.membership = Membership(timedelta(seconds=settings.join_grace_seconds), tolerance)
        self._read_once, self._behind = False, True

    def __enter__(self) -> Self:
        self._reader.start()
        self._brokers.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all clients."""
        self._inbox.close()
        self._brokers.close()
        self._reader.close()
        self._admin.close()

    @property
    def view(self) -> ClusterView:
        """The topic's state: as of the last complete reading, while it is read again."""
        return self._reading.view

    @property
    def complete(self) -> bool:
        """Whether the topics were read to their ends, and the brokers are known."""
        orders = self._knowledge.orders
        orders_read = orders.caught_up or not orders.is_readable
        return self._read_once and orders_read and self.membership.active is not None

    @property
    def problems(self) -> Sequence[str]:
        """The obstacles that keep the look from being complete: a sentence of each subject."""
        last = {trouble.subject: trouble.sentence for trouble in self._knowledge.standing()}
        refused = [refused_sentence(one) for one in self._refused.values()]
        signing = signing_problems(self._settings, self._knowledge.verifier, datetime.now(UTC))
        return tuple(dict.fromkeys((*last.values(), *signing, *refused[:_MOST_REFUSED])))

    def wait(self, timeout_seconds: float, active_broker: int | None = None) -> bool:
        """Wait until the look is complete, and that broker is active; return whether it is so."""
        deadline = time.monotonic() + timeout_seconds
        while not self._is_enough(active_broker) and time.monotonic() < deadline:
            self.take(0.2)
        return self._is_enough(active_broker)

    def _is_enough(self, active_broker: int | None) -> bool:
        return self.complete and (active_broker is None or active_broker in (self.membership.active or ()))

    def put(self, event: KafkaEvent) -> None:
        """Hand over an event, from any thread; `take` takes it in."""
        hand_over(self._inbox, event)

    def take(self, timeout_seconds: float) -> None:
        """Take in arrived events; wait for the first of them, at most this long.

        Of more than can be taken in within a second, the rest is left to the next call.
        """
        topics = self._settings.topics
        for reading, topic in (
            (self._reading, topics.usage.name),
            (self._orders.reading, topics.orders.name),
        ):
            if reading.take_revocations():
                self._reader.read_again(topic, REVOKED_AGAIN)
        self._inbox.wait(timeout_seconds)
        deadline = time.monotonic() + _TAKE_SECONDS
        while events := list(take_portion(self._inbox, self._knowledge.verifier)):
            self._take_all(events)
            if time.monotonic() >= deadline:
                return

    def _take_all(self, events: Sequence[KafkaEvent]) -> None:
        of_orders = [event for event in events if isinstance(event, OfOrders)]
        events = [event for event in events if not isinstance(event, OfOrders)]
        self._take_orders(of_orders)
        for are_records, group in groupby(events, lambda event: isinstance(event, TopicRecord)):
            if are_records:
                self._take_records(group)
            else:
                for event in group:
                    self._take(event)

    def document(self, cluster_topics: int | None = None, topic: str | None = None) -> dict[str, Any]:
        """Return the status document as of now; ``cluster_topics`` is how many the cluster has, if known.

        With ``topic`` it also has ``topic_sentence``: what producers to this topic may do.
        """
        now = datetime.now(UTC)
        situation = self._situation(now)
        decision = decide(self.view, situation, self._policy, now)
        document = status_document(
            self.view,
            situation,
            decision,
            now,
            release_margin=self._release_margin,
            cluster_id=self._knowledge.cluster_id,
            cluster_topics=cluster_topics,
            signing=self._settings.signing.mode,
        )
        document["problems"] = list(self.problems)
        if topic is not None:
            if decision.scope is not None:
                decision = decide(self.view, situation, self._policy, now, topic=topic)
            document["topic_sentence"] = topic_sentence(topic, decision)
        return document

    def _situation(self, now: datetime) -> Situation:
        active = self.membership.active
        known = (
            None
            if active is None
            else vouched_in_reports(self.view, active, now, now - self._policy.staleness)
        )
        return Situation(
            active_brokers=active,
            known_brokers=known,
            joining_brokers=self.membership.joining(now, self.view.joined(now), self.view.removals(now)),
            cluster_causes=tuple(self._causes()),
        )

    def _causes(self) -> Iterator[UndeterminedCause]:
        if self._knowledge.misplaced.sentence is not None:
            yield UndeterminedCause.TOPIC_REFUSED
        elif not self._read_once:
            yield UndeterminedCause.NOT_READ

    def _take_orders(self, events: Sequence[OfOrders]) -> None:
        records: list[TopicRecord] = []
        for event in events:
            if isinstance(event.event, TopicRestarted) and event.event.same_topic:
                records.clear()
            record = self._knowledge.take(event)
            if record is not None:
                records.append(record)
        news = self._knowledge.orders.news()
        self._note_refused(self._orders.fold(records, datetime.now(UTC), news, Folded()))

    def _take_records(self, events: Iterable[KafkaEvent]) -> None:
        records = [record for event in events if (record := self._knowledge.take(event)) is not None]
        now, backlog = datetime.now(UTC), self._behind
        self._note_refused(fold_records(self._reading, records, now, backlog=backlog, fold=Folded()))

    def _note_refused(self, folded: Iterable[tuple[TopicRecord, Event, FoldResult]]) -> None:
        """Keep the refused record of each key until a later one counts."""
        for record, event, _ in folded:
            if not isinstance(event, RefusedEvent):
                self._refused.pop((record.topic, record.key), None)
            elif len(self._refused) < MAX_UNLISTED_BROKERS:
                self._refused[record.topic, record.key] = event

    def _take(self, event: KafkaEvent) -> None:
        self._knowledge.take(event)
        now = datetime.now(UTC)
        match event:
            case TopicRestarted():
                self._reading.begin_again(same_topic=event.same_topic)
                self._behind = True
            case CaughtUp():
                self._reading.reached_end(now)
                self._read_once, self._behind = True, False
            case BrokerList():
                self.membership.update(event.ids, now, self.view.joined(now))
                self._reading.know(event.cluster_id, self.membership.active)
            case _:
                pass
