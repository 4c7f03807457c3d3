"""The Kafka clients of the agent: they work in threads of their own, and put events in one queue."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import REGULAR, TopicKind, TopicRecord
from kquota.guard.event_queue import EventQueue, readable
from kquota.guard.inputs import ClusterNews
from kquota.guard.kafka_state import (
    CertificateSeen,
    KafkaEvent,
    KafkaState,
    ReaderState,
    hand_over,
    orders_to_read,
    take_portion,
)
from kquota.guard.pace import REST_FROM_NEWS_SECONDS
from kquota.kafka.admin import AdminConnection
from kquota.kafka.brokers import BrokerWatch
from kquota.kafka.config import ClientProperties
from kquota.kafka.delivery import Headers
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.history_producer import HistoryPublisher
from kquota.kafka.producer import ProducerThread
from kquota.kafka.publisher import UsagePublisher
from kquota.kafka.reader import TopicReader
from kquota.kafka.topic_check import TopicCheck, TopicWatch
from kquota.kafka.topic_records import (
    ReaderEvent,
    TopicEvent,
    TopicRestarted,
)
from kquota.kafka.topics import topics_as_configured
from kquota.settings.model import Settings
from kquota.trust.signing import RecordSigner


class KafkaSide:
    """All Kafka clients of the agent, started and closed together."""

    def __init__(
        self,
        settings: Settings,
        broker_id: int,
        cluster_id: str | None,
        *,
        partitions: int | None = None,
        verifier: RecordVerifier | None = None,
        orders_verifier: RecordVerifier | None = None,
        record_signer: RecordSigner | None = None,
    ) -> None:
        """Build the clients. Cluster and ``partitions`` of the usage topic are those last known.

        With verifiers, one for each topic, and a signer, records are judged by their signatures, and ours are
        signed.

        Raises:
            ConfigurationError: librdkafka refuses a property; the text names it.
            OSError: no client can be started.
        """
        properties = ClientProperties(settings.librdkafka(), broker_id)
        topics = settings.topics
        self.client_id_prefix = f"kquota-{broker_id}-"
        self.queue: EventQueue[KafkaEvent] = EventQueue()
        self.knowledge = KafkaState(
            ReaderState(topics.usage.name, TopicKind.USAGE, verifier, partitions),
            ReaderState(topics.orders.name, TopicKind.ORDERS, orders_verifier),
            cluster_id,
        )
        self._gathered: list[TopicEvent] = []
        self._record_signer = record_signer
        with ExitStack() as opened:  # a refusal half-way leaves no client behind
            self.producer_thread = ProducerThread(
                properties, lifetime_seconds=settings.interval_seconds, on_failure=self.queue.put
            )
            opened.callback(self.producer_thread.close)
            through = self.producer_thread.producer.client
            self.admin = AdminConnection(properties, on_failure=self.queue.put, asking_through=through)
            opened.callback(self.admin.close)
            self.reader = TopicReader(
                properties,
                self.admin,
                ReadTopic(topics.usage.name, self.put_report),
                orders_to_read(topics.orders.name, partial(hand_over, self.queue, is_urgent=True)),
                may_begin=None if verifier is None else self._knows_cluster,
            )
            opened.pop_all()
        self.usage = UsagePublisher(self.producer_thread, topics.usage.name)
        self.history = HistoryPublisher(self.producer_thread, topics.history.name)
        self._brokers = BrokerWatch(
            self.admin,
            self.queue.put,
            own_broker_id=broker_id,
            brokers_interval_seconds=settings.brokers_interval_seconds,
        )
        self._topics = TopicWatch(
            [
                TopicCheck(self.admin, contract, create=topics.create)
                for contract in topics_as_configured(topics)
            ],
            self.queue.put,
            also=self._look_at_certificate,
            pause_seconds=self.admin.pause_seconds,
        )
        self._certificate: CertificateSeen | None = None

    def start(self) -> None:
        """Begin to read, to ask and to look."""
        self.reader.start()
        self._brokers.start()
        self._topics.start()

    def publish(self, key: bytes, value: bytes, headers: Headers = ()) -> None:
        """Publish a usage record, signed where it has to be. Returns at once."""
        cluster_id, partitions = self.knowledge.cluster_id, self.knowledge.usage.partitions
        if self._record_signer is None:
            self.usage.publish(key, value, headers)
        elif cluster_id is not None and partitions is not None:  # else readers could not verify it
            signature = self._record_signer.headers(key, value, cluster_id, partitions)
            self.usage.publish(key, value, (*headers, *signature))

    def news(self, now_seconds: float) -> ClusterNews:
        """Return the clients' answers that a cycle needs."""
        reports_lost = sum(self.usage.state().errors.values())
        return replace(self.knowledge.news(now_seconds), reports_lost=reports_lost)

    def read_again(self, topic: TopicKind, reason: str) -> None:
        """Read a topic again from its beginning."""
        orders, usage = self.knowledge.orders.topic, self.knowledge.usage.topic
        self.reader.read_again(orders if topic is TopicKind.ORDERS else usage, reason)

    def put_report(self, event: TopicRecord | ReaderEvent) -> None:
        """Take in an event of the usage topic, from any thread."""
        is_urgent = isinstance(event, TopicRecord) and REGULAR not in event.headers
        hand_over(self.queue, event, is_urgent=is_urgent)

    def gather(
        self, timeout_seconds: float, *, rest_seconds: float = 0.0, alarm: int | None = None
    ) -> list[TopicEvent]:
        """Wait for events, at most this long; return those of the usage and orders topics, in order.

        Events of the first ``rest_seconds`` are gathered, not answered one by one; news of other brokers end
        a longer rest. Nothing is waited for while the descriptor ``alarm`` is readable.
        """
        deadline = time.monotonic() + max(rest_seconds, timeout_seconds)
        short_seconds = min(rest_seconds, REST_FROM_NEWS_SECONDS)
        if not readable(short_seconds, alarm) and not (
            rest_seconds > short_seconds and readable(rest_seconds - short_seconds, alarm, self.queue.urgent)
        ):
            self.queue.wait(deadline - time.monotonic(), alarm)
        self.queue.begin_to_empty()
        for event in take_portion(self.queue, self.knowledge.usage.verifier):
            if isinstance(event, TopicRestarted) and not event.same_topic:
                self.producer_thread.producer.client.renew()
            if (of_topic := self.knowledge.take(event)) is not None:
                self._gathered.append(of_topic)
        gathered, self._gathered = self._gathered, []
        return gathered

    def _knows_cluster(self) -> bool:
        """Whether the cluster itself has reported its id: no signature can be verified before."""
        return self.knowledge.active_brokers is not None

    def _look_at_certificate(self) -> None:
        """Report a new certificate. Reading one starts a process, so the thread of the topics does it."""
        seen = CertificateSeen(self.admin.client_certificate())
        if seen != self._certificate:
            self._certificate = seen
            self.queue.put(seen)

    def close(self) -> None:
        """End every client, within some seconds."""
        self.queue.close()
        for part in (self._topics, self._brokers, self.reader, self.admin, self.producer_thread):
            part.close()
