"""A topic that a test looks at again and again, read by one client: each new one costs three handshakes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

from confluent_kafka import Consumer, Message, TopicPartition

_SECONDS = 60.0


class FollowedTopic:
    """The content of a topic, as far as it has been asked for; a context manager."""

    def __init__(self, configuration: Mapping[str, Any], topic: str, partitions: int = 1) -> None:
        self._partitions = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
        self._found: list[list[Message]] = [[] for _ in self._partitions]
        own = {"log_level": 0, "group.id": "test", "enable.auto.commit": False}
        self._consumer = Consumer({**configuration, **own})
        self._consumer.assign(self._partitions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._consumer.close()

    def records(self) -> list[Message]:
        """All records since the beginning, to the end as of now, one partition after the other.

        Raises:
            KafkaException: no broker reports the end.
        """
        deadline = time.monotonic() + _SECONDS
        for partition, found in zip(self._partitions, self._found, strict=True):
            _, end = self._consumer.get_watermark_offsets(partition, timeout=_SECONDS, cached=False)
            while _next(found) < end and time.monotonic() < deadline:
                for message in self._consumer.consume(500, 0.2):
                    if not message.error():
                        self._found[message.partition() or 0].append(message)
        return [message for found in self._found for message in found]


def _next(found: list[Message]) -> int:
    """The offset after the last record that was found; 0 for none, as of an empty partition."""
    return (found[-1].offset() or 0) + 1 if found else 0
