"""A look at the whole cluster from the command line: it needs no agent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from kquota.cli import exit_codes
from kquota.cli.output import fail
from kquota.formats.records import TopicKind
from kquota.formats.sentences import refused_sentence, topic_sentence
from kquota.formats.status import status_document
from kquota.formats.topic_replay import REVOKED_AGAIN
from kquota.guard.event_queue import EventQueue
from kquota.guard.folded import Folded
from kquota.guard.kafka_state import (
    KafkaEvent,
    KafkaState,
    ReaderState,
    hand_over,
    orders_to_read,
    take_portion,
)
from kquota.guard.topic_state import FoldedRecord, TopicState
from kquota.kafka.admin import AdminConnection
from kquota.kafka.brokers import BrokerList, BrokerWatch
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.reader import TopicReader
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import UndeterminedCause
from kquota.policy.events import RefusedEvent
from kquota.policy.known_brokers import vouched_in_reports
from kquota.policy.membership import Membership
from kquota.policy.view import MAX_UNLISTED_BROKERS, ClusterView
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
        self._queue: EventQueue[KafkaEvent] = EventQueue()
        self._admin = AdminConnection(properties)
        self._knowledge = KafkaState(
            ReaderState(topics.usage.name, TopicKind.USAGE, verifier),
            ReaderState(topics.orders.name, TopicKind.ORDERS, orders_verifier),
        )
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
        self._orders = TopicState(TopicKind.ORDERS, tolerance, orders_verifier)
        self._usage = TopicState(TopicKind.USAGE, tolerance, verifier)
        self._settings = settings
        self._refused = dict[tuple[TopicKind, bytes | None], RefusedEvent]()
        self.membership = Membership(timedelta(seconds=settings.join_grace_seconds), tolerance)

    def __enter__(self) -> Self:
        self._reader.start()
        self._brokers.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all clients."""
        self._queue.close()
        self._brokers.close()
        self._reader.close()
        self._admin.close()

    @property
    def view(self) -> ClusterView:
        """The topics' state: as of the last complete reading, while one is read again."""
        return self._usage.replay.view_with(self._orders.replay)

    @property
    def complete(self) -> bool:
        """Whether the topics were read to their ends, and the brokers are known."""
        orders_read = self._orders.caught_up or not self._knowledge.orders.is_readable
        return self._usage.was_read and orders_read and self.membership.active is not None

    @property
    def problems(self) -> Sequence[str]:
        """The obstacles that keep the look from being complete: a sentence of each subject."""
        last = {problem.subject: problem.sentence for problem in self._knowledge.standing()}
        refused = [refused_sentence(one) for one in self._refused.values()]
        signing = signing_problems(self._settings, self._knowledge.usage.verifier, datetime.now(UTC))
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
        hand_over(self._queue, event)

    def take(self, timeout_seconds: float) -> None:
        """Take in arrived events; wait for the first of them, at most this long.

        Of more than can be taken in within a second, the rest is left to the next call.
        """
        topics = self._settings.topics
        for state, topic in ((self._usage, topics.usage.name), (self._orders, topics.orders.name)):
            if state.replay.take_revocations():
                self._reader.read_again(topic, REVOKED_AGAIN)
        self._queue.wait(timeout_seconds)
        deadline = time.monotonic() + _TAKE_SECONDS
        while events := list(take_portion(self._queue, self._knowledge.usage.verifier)):
            self._take_all(events)
            if time.monotonic() >= deadline:
                return

    def _take_all(self, events: Sequence[KafkaEvent]) -> None:
        now = datetime.now(UTC)
        for event in events:
            if (of_topic := self._knowledge.take(event)) is not None:
                (self._orders if of_topic.topic is TopicKind.ORDERS else self._usage).take(of_topic)
            elif isinstance(event, BrokerList):
                self.membership.update(event.ids, now, self.view.joined(now))
                self._usage.replay.know(event.cluster_id, self.membership.active)
        for topic in (self._orders, self._usage):
            self._note_refused(topic.fold(now, Folded()))

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
        if self._knowledge.usage.misplaced.sentence is not None:
            yield UndeterminedCause.TOPIC_REFUSED
        elif not self._usage.was_read:
            yield UndeterminedCause.NOT_READ

    def _note_refused(self, folded: Iterable[FoldedRecord]) -> None:
        """Keep the refused record of each key until a later one counts."""
        for record, event, _, _ in folded:
            if not isinstance(event, RefusedEvent):
                self._refused.pop((record.topic, record.key), None)
            elif len(self._refused) < MAX_UNLISTED_BROKERS:
                self._refused[record.topic, record.key] = event
