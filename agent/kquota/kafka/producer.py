"""The common part of the publishers: one producer that reports the fate of their records, and the thread that
serves it.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kquota.kafka.client import RotatingClient
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.delivery import DeliveryTally, Headers, PublicationState
from kquota.kafka.errors import KafkaFailure, Kind, Operation, classify
from kquota.kafka.threads import going_on, repeat
from kquota.kafka.topics import MAX_RECORD_BYTES

# Purged records are reported at once; this time is for a busy machine.
_RETIRE_SECONDS = 1.0
_POLL_SECONDS = 0.5

PRODUCER_PROPERTIES = {
    "acks": "all",
    "partitioner": "murmur2",
    # Room for the key, the headers and the batch around a record of the largest size.
    "message.max.bytes": str(MAX_RECORD_BYTES + 65_536),
    # One request at a time keeps a retried snapshot from landing behind a newer one, without the producer
    # ids and the further round trips of idempotence: a snapshot that lands twice does no harm.
    "max.in.flight.requests.per.connection": "1",
    "enable.idempotence": "false",
}
"""The settings of every producer of kquota."""

PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""The fate of records that were called back before they were sent."""


class RecordProducer:
    """A librdkafka producer for records of several topics, built again when its credentials are rotated.

    Raises ConfigurationError for properties that librdkafka refuses.
    """

    def __init__(
        self,
        properties: ClientProperties,
        role: Role,
        own: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listeners: list[Callable[[KafkaFailure], None]] = []
        self.client: RotatingClient[Producer] = RotatingClient(
            Producer,
            properties,
            role,
            {**PRODUCER_PROPERTIES, **own},
            retire=_retire,
            on_failure=self._connection_failed,
            clock=clock,
        )

    @property
    def generation(self) -> int:
        """Changes with every new client; records under way in an earlier one are never reported."""
        return self.client.generation

    @property
    def credentials_problem(self) -> KafkaFailure | None:
        """Why the credential files as they are now cannot be used, or None."""
        return self.client.problem

    def on_connection_failure(self, listener: Callable[[KafkaFailure], None]) -> None:
        """Notify this listener, too, of every failure of the connection."""
        self._listeners.append(listener)

    def poll(self, seconds: float) -> None:
        """Take up rotated credentials, and serve reports of deliveries for up to `seconds`."""
        self.client.refresh()
        client = self.client.current()
        if client is not None:
            client.poll(seconds)
        else:
            time.sleep(seconds)

    def close(self) -> None:
        """End the client; it gives up the records that it still holds, without reports."""
        self.client.close()

    def _connection_failed(self, failure: KafkaFailure) -> None:
        # One broker of several that cannot be reached does not lose the connection: the records show it in
        # time.
        if failure.kind is not Kind.UNREACHABLE or self.client.errors.all_brokers_down:
            for listener in self._listeners:
                listener(failure)


class TopicProducer:
    """The records of one topic, and the fate of each."""

    def __init__(self, producer: RecordProducer, topic: str) -> None:
        self.tally = DeliveryTally()
        self._topic = topic
        self._client = producer.client
        producer.on_connection_failure(self.tally.disconnected)

    @property
    def generation(self) -> int:
        """Changes with every new client; records under way in an earlier one are never reported."""
        return self._client.generation

    def produce(
        self, key: bytes, value: bytes | None, headers: Headers, on_delivery: Callable[..., Any]
    ) -> KafkaFailure | None:
        """Hand a record to librdkafka; the failure when it does not even take it."""
        client = self._client.current()
        if client is None:
            return self._client.problem or KafkaFailure(
                Kind.OTHER, "The connection to the cluster is closed.", Operation.WRITE, self._topic
            )

        def delivered(error: KafkaError | None, message: Message) -> None:
            if self._client.current() is client:
                on_delivery(error, message)

        try:
            client.produce(self._topic, key=key, value=value, headers=list(headers), on_delivery=delivered)
        except KafkaException as error:
            return self._refusal(error.args[0])
        except BufferError:
            return self._refusal(KafkaError(KafkaError._QUEUE_FULL))
        return None

    def place(self, timeout_seconds: float) -> tuple[str | None, int] | KafkaFailure:
        """Return the cluster's id and how many partitions the topic has; waits for the answer."""
        client = self._client.current()
        if client is None:
            return self._refusal(KafkaError(KafkaError._STATE))
        try:
            found = client.list_topics(self._topic, timeout=timeout_seconds)
        except KafkaException as error:
            return self.failure(error.args[0])
        topic = found.topics[self._topic]
        return (found.cluster_id, len(topic.partitions)) if topic.error is None else self.failure(topic.error)

    def purge_unsent(self) -> None:
        """Call back records that have not left; they are reported as purged."""
        client = self._client.current()
        if client is not None:
            client.purge(in_queue=True, in_flight=False, blocking=False)

    def delivered(self) -> None:
        """A record was delivered."""
        self._client.errors.contact()
        self.tally.delivered()

    def failed(self, failure: KafkaFailure) -> None:
        """A record was not delivered."""
        self.tally.failed(failure)

    def failure(self, error: KafkaError) -> KafkaFailure:
        """`error` in plain words, with the broken connection behind it where there is one."""
        return self._client.failure(error, Operation.WRITE, self._topic)

    def _refusal(self, error: KafkaError) -> KafkaFailure:
        """Why librdkafka does not take a record.

        No broker was asked, so our certificate is not involved, and no caller has to wait until it is read.
        """
        failure = classify(error, operation=Operation.WRITE, topic=self._topic)
        return self._client.errors.explain(failure)


def _retire(client: Producer) -> None:
    """Drop what the client still holds, and take in its reports: a record that is never reported keeps its
    callback, and with it the publisher, for as long as the process lives.
    """
    client.purge(in_queue=True, in_flight=True, blocking=False)
    client.flush(_RETIRE_SECONDS)


class Publisher(ABC):
    """Hands records of one topic to a producer, without ever blocking."""

    def __init__(self, producer_thread: ProducerThread, topic: str, clock: Callable[[], float]) -> None:
        self._producer_thread = producer_thread
        self._producer = TopicProducer(producer_thread.producer, topic)
        self._clock = clock
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        producer_thread.serve(self)

    @abstractmethod
    def turn(self) -> float:
        """Hand over what is due; return in how many seconds at most the next turn is."""

    @abstractmethod
    def _pending(self) -> bool:
        """Whether there are records whose fate is open; the caller holds the lock."""

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until the fate of every record is known; False when the time was not enough."""
        deadline = self._clock() + timeout_seconds
        with self._changed:
            while self._pending():
                left = deadline - self._clock()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.1))
        return True

    def state(self) -> PublicationState:
        """Connection status, counters and the last error."""
        return self._producer.tally.state()


class ProducerThread:
    """The producer of all that an agent publishes, and the thread that serves its publishers.

    A record that is not delivered within `lifetime_seconds` is given up, or handed over again by its
    publisher. `on_failure` gets each failure once: those of the connection and those that are reported; it
    never ends the caller. Raises ConfigurationError for properties that librdkafka refuses.
    """

    def __init__(
        self,
        properties: ClientProperties,
        *,
        lifetime_seconds: float = 5.0,
        on_failure: Callable[[KafkaFailure], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lifetime_seconds = lifetime_seconds
        timeout_ms = str(max(1000, int(lifetime_seconds * 1000)))
        own = {
            "linger.ms": "0",
            # Every agent reads every record: a byte saved here is saved a thousand times in a large cluster.
            # lz4 is part of every librdkafka and of every Kafka client that reads it.
            "compression.type": "lz4",
            "message.timeout.ms": timeout_ms,
            "request.timeout.ms": timeout_ms,
        }
        self._on_failure = on_failure
        self._publishers: tuple[Publisher, ...] = ()
        self.stopped = threading.Event()
        self.producer = RecordProducer(properties, Role.PRODUCER, own, clock)
        self.producer.on_connection_failure(self.report)

        def run() -> None:
            repeat(self._step, "publishing", until=self.stopped, pause_seconds=_POLL_SECONDS)

        self._thread = threading.Thread(target=run, name="kquota-publish", daemon=True)
        self._thread.start()

    def serve(self, publisher: Publisher) -> None:
        """Give this publisher its turns, too."""
        self._publishers += (publisher,)

    def report(self, failure: KafkaFailure) -> None:
        """Notify the receiver of failures; call it without locks."""
        if self._on_failure is None:
            return
        with going_on("the receiver of publication errors"):
            self._on_failure(failure)

    def close(self) -> None:
        """Give up undelivered records and end the connection, within two seconds; flush() delivers them."""
        self.stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(2.0)
        self.producer.close()

    def _step(self) -> None:
        self.producer.poll(min((one.turn() for one in self._publishers), default=_POLL_SECONDS))
