"""A look at the whole cluster from the command line: it needs no agent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Any, Self

from kquota.cli import exit_codes
from kquota.cli.output import fail
from kquota.core.decision import UndeterminedCause
from kquota.core.membership import Membership
from kquota.core.policy import PolicySettings, Situation, decide
from kquota.core.reading import Reading
from kquota.core.records import read_event
from kquota.core.status import status_document
from kquota.core.view import ClusterView
from kquota.daemon.kafka_side import KafkaEvent, KafkaKnowledge
from kquota.fold.reader import TopicReader
from kquota.fold.records import CaughtUp, TopicRecord, TopicRestarted
from kquota.kafka.admin import AdminConnection
from kquota.kafka.brokers import BrokerList, BrokerWatch
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.settings import Settings

CLIENT_NAME = "cli"


def look_at_cluster(settings: Settings) -> ClusterLook:
    """Return a look at the cluster, or end with the problems of the configuration."""
    try:
        return ClusterLook(settings)
    except ConfigurationError as error:
        fail(str(error), exit_codes.CONFIGURATION)
    except OSError as error:
        fail(str(error))


class ClusterLook:
    """Reads the agents' inputs, and decides as they would, but for no broker of its own."""

    def __init__(self, settings: Settings) -> None:
        """Connect.

        Raises:
            ConfigurationError: librdkafka refuses a property.
            OSError: no client can be started.
        """
        properties = ClientProperties(settings.librdkafka(), CLIENT_NAME)
        self._events: SimpleQueue[KafkaEvent] = SimpleQueue()
        self._admin = AdminConnection(properties)
        self._reader = TopicReader(properties, settings.topics.usage.name, self._admin, self.put)
        self._brokers = BrokerWatch(self._admin, self.put)
        self._policy = PolicySettings(settings.fallback_action, timedelta(seconds=settings.staleness_seconds))
        self._release_margin = settings.release_margin_ratio
        self._reading = Reading(timedelta(seconds=settings.future_tolerance_seconds))
        self.membership = Membership(timedelta(seconds=settings.join_grace_seconds))
        self._knowledge = KafkaKnowledge(settings.topics.usage.name)
        self._read_once = False

    def __enter__(self) -> Self:
        self._reader.start()
        self._brokers.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all clients."""
        self._brokers.close()
        self._reader.close()
        self._admin.close()

    @property
    def view(self) -> ClusterView:
        """The topic's state: as of the last complete reading, while it is read again."""
        return self._reading.view

    @property
    def complete(self) -> bool:
        """Whether the topic was read to its end, and the brokers are known."""
        return self._read_once and self.membership.active is not None

    @property
    def problems(self) -> Sequence[str]:
        """The obstacles that keep the look from being complete: a sentence of each subject."""
        last = {trouble.subject: trouble.sentence for trouble in self._knowledge.standing()}
        return tuple(dict.fromkeys(last.values()))

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until the look is complete; return whether it is."""
        deadline = time.monotonic() + timeout_seconds
        while not self.complete and time.monotonic() < deadline:
            self.take(0.2)
        return self.complete

    def put(self, event: KafkaEvent) -> None:
        """Hand over an event, from any thread; `take` takes it in."""
        self._events.put(event)

    def take(self, timeout_seconds: float) -> None:
        """Take in arrived events; wait for the first of them, at most this long."""
        try:
            self._take(self._events.get(timeout=timeout_seconds))
            while True:
                self._take(self._events.get_nowait())
        except Empty:
            return

    def document(self) -> dict[str, Any]:
        """Return the status document as of now."""
        now = datetime.now(UTC)
        situation = Situation(
            active_brokers=self.membership.active,
            joining_brokers=self.membership.joining(now, self.view.joined(now)),
            cluster_causes=tuple(self._causes()),
        )
        decision = decide(self.view, situation, self._policy, now)
        document = status_document(
            self.view,
            situation,
            decision,
            now,
            release_margin=self._release_margin,
            cluster_id=self._knowledge.cluster_id,
        )
        document["problems"] = list(self.problems)
        return document

    def _causes(self) -> Iterator[UndeterminedCause]:
        if self._knowledge.misplaced.sentence is not None:
            yield UndeterminedCause.TOPIC_REFUSED
        elif not self._read_once:
            yield UndeterminedCause.NOT_READ

    def _take(self, event: KafkaEvent) -> None:
        self._knowledge.take(event)
        now = datetime.now(UTC)
        match event:
            case TopicRecord():
                self._reading.fold(read_event(event.key, event.value, event.timestamp_ms), now)
            case TopicRestarted():
                self._reading.begin_again(same_topic=event.same_topic)
            case CaughtUp():
                self._reading.reached_end(now)
                self._read_once = True
            case BrokerList():
                self.membership.update(event.ids, now, self.view.joined(now))
                self._reading.know(event.cluster_id, self.membership.active)
            case _:
                pass
