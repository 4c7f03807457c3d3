"""A scripted consumer and admin, for the reader's tests."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kquota.kafka.admin import Pending, TopicFacts
from kquota.kafka.errors import KafkaFailure


class Message:
    """A record, or an error, as the client library hands it over."""

    def __init__(
        self,
        offset: int | None,
        code: int | None = None,
        *,
        topic: str | None = "t",
        partition: int | None = 0,
        timestamp: tuple[int, int] = (1, 1234),
        headers: list[tuple[str, bytes | None]] | Exception | None = None,
    ) -> None:
        self._offset, self._partition, self._timestamp = offset, partition, timestamp
        self._headers, self._topic = headers, topic
        self._error = None if code is None else KafkaError(code)

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str | None:
        return self._topic

    def partition(self) -> int | None:
        return self._partition

    def offset(self) -> int | None:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return self._timestamp

    def key(self) -> bytes:
        return b"key"

    def value(self) -> bytes:
        return b"%d" % (self._offset or 0)

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        if isinstance(self._headers, Exception):
            raise self._headers
        return self._headers


class Script:
    """The reader's surroundings: its client, its consumer, the state of its connection, and the admin."""

    def __init__(self) -> None:
        self.made_with: tuple[Any, ...] = ()
        self.on_failure: Callable[[KafkaFailure], None] = print
        self.connected = True
        self.problem: KafkaFailure | None = None
        self.generation = 1
        self.all_brokers_down = False
        self.contacts = 0
        self.explained = 0
        self.closed = False
        self.assigned: deque[list[tuple[str, int, int]]] = deque(maxlen=100)
        self.taken_away: deque[list[tuple[str, int]]] = deque(maxlen=100)
        self.refuse_assignments = 0
        self.leaders_asked: list[str] = []
        self.knows_leaders = True
        self.polls: deque[float] = deque(maxlen=100)
        self.probes: list[tuple[str, int]] = []
        self.answers_probes = False
        self.facts: TopicFacts | KafkaFailure = facts("an id", {0})
        self.described = 0
        self.ends: dict[int, int] = {}
        self._messages: queue.Queue[list[Message]] = queue.Queue()
        self._rest: list[Message] = []
        self.errors = self

    # The client that rotates its consumer.

    def make(self, *args: Any, on_failure: Callable[[KafkaFailure], None], **more: Any) -> Script:
        self.made_with, self.on_failure = (*args, more), on_failure
        return self

    def current(self) -> Script | None:
        return self if self.connected else None

    def refresh(self) -> None:
        """Nothing is rotated."""

    def renew(self) -> None:
        self.generation += 1

    def client_certificate(self) -> None:
        return None

    def contact(self) -> None:
        self.contacts += 1

    def explain(self, failure: KafkaFailure) -> KafkaFailure:
        self.explained += 1
        return failure

    def close(self) -> None:
        self.closed = True

    # The consumer.

    def say(self, *messages: Message) -> None:
        """Let these arrive together."""
        self._messages.put(list(messages))

    def poll(self, seconds: float) -> Message | None:
        self.polls.append(seconds)
        try:
            first, *self._rest = self._messages.get(timeout=min(seconds, 0.02))
        except queue.Empty:
            return None
        return first

    def consume(self, _count: int, _seconds: float) -> list[Message]:
        rest, self._rest = self._rest, []
        return rest

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self.taken_away.append([(p.topic, p.partition) for p in partitions])

    def list_topics(self, topic: str, *, timeout: float) -> None:
        assert timeout > 0
        self.leaders_asked.append(topic)
        if not self.knows_leaders:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        assert {p.topic for p in partitions} == {self.leaders_asked[-1]}
        if self.refuse_assignments:
            self.refuse_assignments -= 1
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.assigned.append([(p.topic, p.partition, p.offset) for p in partitions])

    def get_watermark_offsets(
        self, asked: TopicPartition, *, timeout: float, cached: bool
    ) -> tuple[int, int]:
        assert not cached
        assert timeout > 0
        self.probes.append((asked.topic, asked.partition))
        if not self.answers_probes:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return 0, 0

    # The admin.

    def pause_seconds(self, interval_seconds: float) -> float:
        return interval_seconds

    def describe_topic(self, _name: str) -> Pending[TopicFacts]:
        self.described += 1
        return _done(self.facts)

    def end_offset(self, _topic: str, partition: int) -> Pending[int]:
        return _done(self.ends.get(partition, 10**6))


def facts(topic_id: str, partitions: set[int]) -> TopicFacts:
    return TopicFacts("t", topic_id, frozenset(partitions), 1, frozenset())


def _done(value: Any) -> Pending[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return Pending(future.result, future)
