"""One record of an operator, published and confirmed while they wait: a hold, a quarantine, a decommission
…
"""

import time
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kquota.kafka.client import RotatingClient
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure, Kind, Operation, classify
from kquota.publish.delivery import Headers
from kquota.publish.publisher import PRODUCER_PROPERTIES


@dataclass(frozen=True, slots=True)
class Published:
    """Where the record is."""

    topic: str
    partition: int
    offset: int


def publish_operator_record(
    properties: ClientProperties,
    topic: str,
    key: bytes,
    value: bytes | None,
    headers: Headers,
    timeout_seconds: float = 10.0,
) -> Published | KafkaFailure:
    """Publish one record and wait for all in-sync replicas; `value` None is a tombstone.

    `headers` say who, when and why. Raises ConfigurationError for properties that librdkafka refuses.
    """
    client: RotatingClient[Producer] = RotatingClient(
        Producer,
        properties,
        Role.ADMIN,
        {
            **PRODUCER_PROPERTIES,
            "linger.ms": "0",
            "message.timeout.ms": str(max(1000, int(timeout_seconds * 1000))),
        },
    )
    producer = client.current()
    if producer is None:
        return client.problem or KafkaFailure(Kind.OTHER, "The producer could not be built.")
    outcome: list[Published | KafkaError] = []

    def finished(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            outcome.append(error)
        else:
            outcome.append(Published(topic, message.partition() or 0, message.offset() or 0))

    try:
        producer.produce(topic, key=key, value=value, headers=list(headers), on_delivery=finished)
    except KafkaException as error:
        outcome.append(error.args[0])
    deadline = time.monotonic() + timeout_seconds + 1.0
    while not outcome and time.monotonic() < deadline:
        producer.poll(0.2)
    result = outcome[0] if outcome else KafkaError(KafkaError._TIMED_OUT, "no answer")
    if isinstance(result, Published):
        return result
    producer.poll(0)
    failure = classify(
        result, operation=Operation.WRITE, topic=topic, certificate=client.client_certificate()
    )
    return client.errors.explain(failure)
