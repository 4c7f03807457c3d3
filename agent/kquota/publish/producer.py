"""The common part of the publishers: a producer for one topic that reports the fate of its records, and the
thread that uses it.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kquota.kafka.client import RotatingClient
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure, Kind, Operation, classify
from kquota.kafka.threads import going_on, repeat
from kquota.kafka.topics import MAX_RECORD_BYTES
from kquota.publish.delivery import DeliveryTally, Headers, PublicationState

# Purged records are reported at once; this time is for a busy machine.
_RETIRE_SECONDS = 1.0

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


class TopicProducer:
    """A librdkafka producer for one topic, built again when its credentials are rotated.

    `on_failure` gets every failure of the connection and those that are reported; it never ends the caller.
    Raises ConfigurationError for properties that librdkafka refuses.
    """

    def __init__(
        self,
        properties: ClientProperties,
        role: Role,
        topic: str,
        own: Mapping[str, str],
        on_failure: Callable[[KafkaFailure], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tally = DeliveryTally()
        self._topic = topic
        self._on_failure = on_failure
        self._client: RotatingClient[Producer] = RotatingClient(
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
        return self._client.generation

    @property
    def credentials_problem(self) -> KafkaFailure | None:
        """Why the credential files as they are now cannot be used, or None."""
        return self._client.problem

    def poll(self, seconds: float) -> None:
        """Take up rotated credentials, and serve reports of deliveries for up to `seconds`."""
        self._client.refresh()
        client = self._client.current()
        if client is not None:
            client.poll(seconds)
        else:
            time.sleep(seconds)

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

    def report(self, failure: KafkaFailure) -> None:
        """Notify the receiver of failures; call it without locks."""
        if self._on_failure is None:
            return
        with going_on("the receiver of publication errors"):
            self._on_failure(failure)

    def close(self) -> None:
        """End the client; it gives up the records that it still holds, without reports."""
        self._client.close()

    def _connection_failed(self, failure: KafkaFailure) -> None:
        # One broker of several that cannot be reached does not lose the connection: the records show it in
        # time.
        if failure.kind is not Kind.UNREACHABLE or self._client.errors.all_brokers_down:
            self.tally.disconnected(failure)
            self.report(failure)


def _retire(client: Producer) -> None:
    """Drop what the client still holds, and take in its reports: a record that is never reported keeps its
    callback, and with it the publisher, for as long as the process lives.
    """
    client.purge(in_queue=True, in_flight=True, blocking=False)
    client.flush(_RETIRE_SECONDS)


class Publisher(ABC):
    """A thread that hands records to a producer until it is closed, step by step."""

    def __init__(
        self,
        producer: TopicProducer,
        thread: str,
        doing: str,
        *,
        pause_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        """Begin. `doing` is the step's work in a log message, `pause_seconds` follow a step that failed."""
        self._producer = producer
        self._clock = clock
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._stopped = threading.Event()

        def run() -> None:
            repeat(self._step, doing, until=self._stopped, pause_seconds=pause_seconds)

        self._thread = threading.Thread(target=run, name=thread, daemon=True)
        self._thread.start()

    @abstractmethod
    def _step(self) -> None:
        """Do what is due; wait for it half a second at most."""

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

    def close(self) -> None:
        """Give up undelivered records and end the connection, within two seconds; flush() delivers them."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(2.0)
        self._producer.close()
