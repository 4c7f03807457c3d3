"""A topic that a test looks at again and again, read by one client: each new one costs three handshakes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

from confluent_kafka import Consumer, Message, TopicPartition

_SECONDS = 60.0


class FollowedTopic:
    """The content of a topic of one partition, as far as it has been asked for; a context manager."""

    def __init__(self, configuration: Mapping[str, Any], topic: str) -> None:
        self._partition = TopicPartition(topic, 0)
        self._found: list[Message] = []
        own = {"log_level": 0, "group.id": "test", "enable.auto.commit": False}
        self._consumer = Consumer({**configuration, **own})
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._consumer.close()

    def records(self) -> list[Message]:
        """All records that have come since the beginning, to the end as of now.

        Raises:
            KafkaException: no broker reports the end.
        """
        _, end = self._consumer.get_watermark_offsets(self._partition, timeout=_SECONDS, cached=False)
        deadline = time.monotonic() + _SECONDS
        while self._next() < end and time.monotonic() < deadline:
            self._found += [message for message in self._consumer.consume(500, 0.2) if not message.error()]
        return list(self._found)

    def _next(self) -> int:
        """The offset after the last record that was found; 0 for none, as of an empty topic."""
        return (self._found[-1].offset() or 0) + 1 if self._found else 0
