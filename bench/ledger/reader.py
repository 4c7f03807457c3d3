"""Reads a topic of the ledger from its beginning to its end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from bench.ledger.audit import Found
from bench.ledger.record import to_entry
from testbed.loopback.clients import admin_client, offsets_by_partition

_READ_SECONDS = 120.0
_TRANSACTIONS_SECONDS = 120.0
_AT_ONCE = 1_000


class Unread(Exception):
    """A topic could not be read to its end; the message says how far."""


def read_all(configuration: Mapping[str, str], topic: str, partitions: int) -> Iterator[Found]:
    """Every committed record, by partition in the order of offsets.

    Raises:
        Unread: the end is not reached in time.
        RetryError: a transaction does not end.
    """
    admin = admin_client(configuration)
    consumer = Consumer(
        {
            **configuration,
            "group.id": "ledger",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    try:
        _open_offsets(admin, topic)
        for number in range(partitions):
            partition = TopicPartition(topic, number, 0)
            consumer.assign([partition])
            yield from _read(consumer, partition)
    finally:
        consumer.close()


@retry(
    retry=retry_if_result(lambda open_offsets: open_offsets > 0),
    wait=wait_fixed(0.5),
    stop=stop_after_delay(_TRANSACTIONS_SECONDS),
)
def _open_offsets(admin: AdminClient, topic: str) -> int:
    """The offsets that a consumer of committed records does not see yet; waits until there are none."""
    uncommitted, committed = (
        sum(offsets_by_partition(admin, topic, isolation=level).values())
        for level in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
    )
    return uncommitted - committed


def _read(consumer: Consumer, partition: TopicPartition) -> Iterator[Found]:
    deadline = time.monotonic() + _READ_SECONDS
    place = 0
    while time.monotonic() < deadline:
        for message in consumer.consume(_AT_ONCE, timeout=1.0):
            if (error := message.error()) is None:
                place = message.offset() or 0
                yield Found(partition.partition, place, to_entry(message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                return
            elif not error.retriable():
                raise KafkaException(error)
    raise Unread(f"{partition.topic}-{partition.partition}: only to offset {place} in {_READ_SECONDS:g} s")
