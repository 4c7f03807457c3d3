"""One record of an operator (hold, quarantine, decommission …), published and confirmed while they wait."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, Message

from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.delivery import Headers
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.producer import RecordProducer, TopicProducer


@dataclass(frozen=True, slots=True)
class Published:
    """Where the record is, and what the brokers made of it.

    ``appended_ms`` is None where the topic has the writer's time; ``cluster_id`` where nothing was signed.
    """

    topic: str
    partition: int
    offset: int
    appended_ms: int | None = None
    headers: Headers = ()
    cluster_id: str | None = None


def publish_operator_record(
    properties: ClientProperties,
    topic: str,
    key: bytes,
    value: bytes | None,
    headers: Headers,
    timeout_seconds: float = 10.0,
    sign: Callable[[str | None, int], Headers] | None = None,
) -> Published | KafkaFailure:
    """Publish one record and wait for all in-sync replicas; `value` None is a tombstone.

    `headers` hold the author, the time and the reason; `sign` returns further ones for the cluster's id and
    the number of partitions, and may raise to publish nothing. Raises ConfigurationError for properties that
    librdkafka refuses.
    """
    own = {"linger.ms": "0", "message.timeout.ms": str(max(1000, int(timeout_seconds * 1000)))}
    client = RecordProducer(properties, Role.ADMIN, own)
    producer = TopicProducer(client, topic)
    outcome: list[Published | KafkaError] = []
    cluster_id: str | None = None

    def finished(error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is None and partition is not None and offset is not None:
            kind, time_ms = message.timestamp()
            appended_ms = time_ms if kind == TIMESTAMP_LOG_APPEND_TIME else None
            outcome.append(Published(topic, partition, offset, appended_ms, headers, cluster_id))
        else:
            outcome.append(error or KafkaError(KafkaError._FAIL))

    if sign is not None:
        place = producer.place(timeout_seconds)
        if isinstance(place, KafkaFailure):
            return place
        cluster_id = place[0]
        headers = [*headers, *sign(*place)]
    failure = producer.produce(key, value, headers, finished)
    if failure is not None:
        return failure
    deadline = time.monotonic() + timeout_seconds + 1.0
    while not outcome and time.monotonic() < deadline:
        client.poll(0.2)
    result = outcome[0] if outcome else KafkaError(KafkaError._TIMED_OUT, "no answer")
    return result if isinstance(result, Published) else producer.failure(result)
