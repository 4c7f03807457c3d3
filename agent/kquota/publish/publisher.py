"""Publishing usage snapshots: the newest of each key, never a queue of old ones."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kquota.kafka.client import RotatingClient
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure, Kind, Operation, classify
from kquota.publish.delivery import DeliveryTally, Headers, PublicationState
from kquota.publish.topics import MAX_RECORD_BYTES

_LOG = logging.getLogger(__name__)

# A broker is not lost by one connection error; records tell after message.timeout.ms at the latest.
_POLL_SECONDS = 0.5
_CLOSE_SECONDS = 1.0

PRODUCER_PROPERTIES = {
    "acks": "all",
    "partitioner": "murmur2",
    "message.max.bytes": str(MAX_RECORD_BYTES + 65_536),
    # One request at a time keeps a retried snapshot from landing behind a newer one, without the producer
    # ids and the further round trips of idempotence: a snapshot that lands twice does no harm.
    "max.in.flight.requests.per.connection": "1",
    "enable.idempotence": "false",
}
"""What every producer of kquota is set to."""


@dataclass(slots=True)
class _Snapshot:
    key: bytes
    value: bytes
    headers: Headers
    generation: int = 0


class UsagePublisher:
    """Publishes snapshots without ever blocking; of each key at most one is under way and at most one waits.

    A snapshot lives for `interval_seconds`: then the next one is due, and an old one is not worth sending.
    One that has not left yet gives way to a newer one at once. Raises ConfigurationError for properties
    that librdkafka refuses.

    `on_failure` is called in the publisher's thread for every record that was not delivered and for every
    failure of the connection.
    """

    def __init__(
        self,
        properties: ClientProperties,
        topic: str,
        *,
        interval_seconds: float = 5.0,
        on_failure: Callable[[KafkaFailure], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = topic
        self._clock = clock
        self._on_failure = on_failure
        self._tally = DeliveryTally()
        timeout_ms = max(1000, int(interval_seconds * 1000))
        self._client: RotatingClient[Producer] = RotatingClient(
            Producer,
            properties,
            Role.USAGE,
            {
                **PRODUCER_PROPERTIES,
                "linger.ms": "0",
                "message.timeout.ms": str(timeout_ms),
                "request.timeout.ms": str(timeout_ms),
                "compression.type": "none",
            },
            retire=_retire,
            on_failure=self._connection_failed,
            clock=clock,
        )
        self._lock = threading.Lock()
        self._under_way: dict[bytes, _Snapshot] = {}
        self._waiting: dict[bytes, _Snapshot] = {}
        self._stopped = False
        self._idle = threading.Condition(self._lock)
        self._thread = threading.Thread(target=self._run, name="kquota-publish", daemon=True)
        self._thread.start()

    def publish(self, key: bytes, value: bytes, headers: Headers = ()) -> None:
        """Send a snapshot, in place of any of the same key that has not left yet. Returns at once."""
        snapshot = _Snapshot(key, value, headers)
        with self._lock:
            if self._stopped:
                return
            if key in self._under_way:
                if self._waiting.get(key) is not None:
                    self._tally.replaced()
                self._waiting[key] = snapshot
                purge = True
            else:
                purge = False
                self._send(snapshot)
        if purge:
            # What is queued but not sent comes back as a delivery error at once, and the waiting one
            # follows it.
            client = self._client.current()
            if client is not None:
                client.purge(in_queue=True, in_flight=False, blocking=False)

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until every snapshot has been delivered or given up; False when the time was not enough."""
        deadline = self._clock() + timeout_seconds
        with self._idle:
            while self._under_way or self._waiting:
                left = deadline - self._clock()
                if left <= 0:
                    return False
                self._idle.wait(left)
        return True

    def state(self) -> PublicationState:
        """Connection status, counters and the last error."""
        return self._tally.state()

    def close(self) -> None:
        """Give up what is under way and end the connection, within two seconds. Call flush() first to
        deliver it.
        """
        with self._lock:
            self._stopped = True
        if threading.current_thread() is not self._thread:
            self._thread.join(_POLL_SECONDS + _CLOSE_SECONDS)
        self._client.close()

    def _send(self, snapshot: _Snapshot) -> None:
        """Hand a snapshot to librdkafka; the caller holds the lock."""
        client = self._client.current()
        if client is None:
            problem = self._client.problem
            if problem is not None:
                self._tally.failed(problem, self._clock())
            return
        snapshot.generation = self._client.generation
        self._under_way[snapshot.key] = snapshot
        try:
            client.produce(
                self._topic,
                key=snapshot.key,
                value=snapshot.value,
                headers=list(snapshot.headers),
                on_delivery=partial(self._finished, snapshot),
            )
        except (KafkaException, BufferError) as error:
            del self._under_way[snapshot.key]
            cause = error.args[0] if isinstance(error, KafkaException) else KafkaError(KafkaError._QUEUE_FULL)
            self._tally.failed(self._failure(cause), self._clock())

    def _finished(self, snapshot: _Snapshot, error: KafkaError | None, _message: Message) -> None:
        failure: KafkaFailure | None = None
        with self._idle:
            now = self._clock()
            if error is None:
                self._client.errors.contact()
                self._tally.delivered(now)
            elif error.code() in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT):
                self._tally.replaced()
            else:
                failure = self._failure(error)
                self._tally.failed(failure, now)
            if self._under_way.get(snapshot.key) is snapshot:
                del self._under_way[snapshot.key]
                following = self._waiting.pop(snapshot.key, None)
                if following is not None and not self._stopped:
                    self._send(following)
            self._idle.notify_all()
        self._report(failure)

    def _failure(self, error: KafkaError) -> KafkaFailure:
        certificate = self._client.client_certificate()
        failure = classify(error, operation=Operation.WRITE, topic=self._topic, certificate=certificate)
        return self._client.errors.explain(failure)

    def _connection_failed(self, failure: KafkaFailure) -> None:
        if failure.kind is not Kind.UNREACHABLE or self._client.errors.all_brokers_down:
            self._tally.disconnected(failure, self._clock())
        self._report(failure)

    def _report(self, failure: KafkaFailure | None) -> None:
        if failure is None or self._on_failure is None or self._stopped:
            return
        try:
            self._on_failure(failure)
        except Exception:
            _LOG.exception("the receiver of publication errors failed")

    def _run(self) -> None:
        generation = self._client.generation
        while not self._stopped:
            self._client.refresh()
            if self._client.generation != generation:
                generation = self._client.generation
                self._send_again()
            client = self._client.current()
            if client is None:
                time.sleep(_POLL_SECONDS)
                continue
            client.poll(_POLL_SECONDS)

    def _send_again(self) -> None:
        """What was under way in a client that has been replaced goes to the new one; its report never
        comes.
        """
        with self._lock:
            for key, snapshot in list(self._under_way.items()):
                if snapshot.generation != self._client.generation:
                    del self._under_way[key]
                    self._send(self._waiting.pop(key, snapshot))


def _retire(client: Producer) -> None:
    """End a producer; what it still holds is given up without reports."""
    client.purge(in_queue=True, in_flight=True, blocking=False)
