"""The reader on a scripted client: its output when the log below it is cut."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from kquota.formats.records import TopicRecord
from kquota.kafka import reader as reading
from kquota.kafka.admin import Pending, TopicFacts
from kquota.kafka.config import ClientProperties
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.topic_records import CaughtUp, ReaderEvent, TopicRestarted
from tests.integration.waiting import eventually

NOWHERE = ClientProperties({"bootstrap.servers": "127.0.0.1:1"}, node=1)


class Fetched:
    """The result of a poll: a record, or an error of the partition."""

    def __init__(self, offset: int, code: int | None = None) -> None:
        self._offset = offset
        self._error = None if code is None else KafkaError(code)

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def key(self) -> bytes:
        return b"1"

    def value(self) -> bytes:
        return b"%d" % self._offset

    def headers(self) -> None:
        return None


class Log:
    """A topic of one partition, its admin and its consumer; ``end`` moves with writes and cuts."""

    generation = 1
    problem = None

    def __init__(self) -> None:
        self.end = 3
        self.topic_id = "an id"
        self.left_over: list[Fetched] = []
        self.assignments = 0
        self._position = 0
        self.errors = self

    def pause_seconds(self, interval_seconds: float) -> float:
        return interval_seconds

    def describe_topic(self, name: str) -> Pending[TopicFacts]:
        return _done(TopicFacts(name, self.topic_id, frozenset({0}), 1, frozenset()))

    def end_offset(self, _topic: str, _partition: int) -> Pending[int]:
        return _done(self.end)

    def current(self) -> Log:
        return self

    def list_topics(self, _topic: str, *, timeout: float) -> None:
        """Its leaders are known."""

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        assert [one.partition for one in partitions] == [0]

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self._position = max(0, partitions[0].offset)
        self.assignments += 1

    def poll(self, _seconds: float) -> Fetched:
        time.sleep(0.01)
        if self.left_over and self.assignments > 1:
            return self.left_over.pop()
        if self._position > self.end:
            return Fetched(self._position, KafkaError.OFFSET_OUT_OF_RANGE)
        if self._position == self.end:
            return Fetched(self.end, KafkaError._PARTITION_EOF)
        self._position += 1
        return Fetched(self._position - 1)

    def consume(self, _count: int, _seconds: float) -> list[Fetched]:
        return []

    def explain(self, failure: Any) -> Any:
        return failure

    def client_certificate(self) -> None:
        return None

    def refresh(self) -> None:
        """Nothing is rotated."""

    contact = close = refresh

    def renew(self) -> None:
        self.generation += 1


def _done(value: Any) -> Pending[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return Pending(future.result, future)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def seen() -> list[TopicRecord | ReaderEvent]:
    return []


@pytest.fixture(autouse=True)
def reader(
    log: Log, seen: list[TopicRecord | ReaderEvent], monkeypatch: pytest.MonkeyPatch
) -> Iterator[reading.TopicReader]:
    monkeypatch.setattr(reading, "RotatingClient", lambda *_, **__: log)
    reader = reading.TopicReader(NOWHERE, log, ReadTopic("t", seen.append, topic_interval_seconds=0.1))  # type: ignore[arg-type]
    reader.start()
    yield reader
    reader.close()


def told(seen: list[TopicRecord | ReaderEvent]) -> list[object]:
    """The offsets and the events about where the reading stands, in their order."""
    interesting = [event for event in seen if isinstance(event, TopicRecord | CaughtUp | TopicRestarted)]
    return [event.offset if isinstance(event, TopicRecord) else type(event) for event in interesting]


def test_a_log_that_was_cut_is_read_again_and_caught_up_with_again(
    log: Log, seen: list[TopicRecord | ReaderEvent]
) -> None:
    eventually(lambda: told(seen) == [0, 1, 2, CaughtUp], "all is read")
    log.end = 2
    eventually(lambda: told(seen)[4:] == [TopicRestarted, 0, 1, CaughtUp], "it is read again")
    (restarted,) = [event for event in seen if isinstance(event, TopicRestarted)]
    assert restarted.same_topic


def test_a_topic_that_was_created_again_is_caught_up_with_too(
    log: Log, seen: list[TopicRecord | ReaderEvent]
) -> None:
    eventually(lambda: told(seen) == [0, 1, 2, CaughtUp], "all is read")
    log.topic_id = "another id"
    eventually(lambda: told(seen)[4:] == [TopicRestarted, 0, 1, 2, CaughtUp], "it is read again")
    (restarted,) = [event for event in seen if isinstance(event, TopicRestarted)]
    assert not restarted.same_topic
    assert log.generation == 2, "by a client that knows no leader epochs of the former topic"


@pytest.mark.accepts("G12")
def test_the_same_topic_is_read_again_once_if_that_is_asked_for(
    log: Log, reader: reading.TopicReader, seen: list[TopicRecord | ReaderEvent]
) -> None:
    eventually(lambda: told(seen) == [0, 1, 2, CaughtUp], "all is read")
    reader.read_again("t", "a reason")
    eventually(lambda: told(seen)[4:] == [TopicRestarted, 0, 1, 2, CaughtUp], "it is read again")
    (restarted,) = [event for event in seen if isinstance(event, TopicRestarted)]
    assert (restarted.same_topic, restarted.reason) == (True, "a reason")
    assert log.generation == 1, "by the same client"


def test_an_error_left_from_the_former_topic_does_not_restart_the_new_one(
    log: Log, seen: list[TopicRecord | ReaderEvent]
) -> None:
    eventually(lambda: told(seen) == [0, 1, 2, CaughtUp], "all is read")
    log.left_over = [Fetched(3, KafkaError.OFFSET_OUT_OF_RANGE)]
    log.topic_id = "another id"
    eventually(lambda: told(seen)[4:] == [TopicRestarted, 0, 1, 2, CaughtUp], "the new topic is read")
    eventually(lambda: log.assignments == 3, "the reader assigns again, in case the partition has stopped")
    log.end = 4
    eventually(lambda: told(seen)[9:] == [3], "the reader goes on where it was")


def test_records_that_come_all_the_time_are_taken_out_a_bounded_number_of_times_a_second(
    log: Log, seen: list[TopicRecord | ReaderEvent]
) -> None:
    eventually(lambda: CaughtUp in told(seen), "all is read")
    log.end = 10_000  # a record whenever one is asked for
    before, seconds, begun = len(seen), 2.0, time.monotonic()
    time.sleep(seconds)
    turns, slept_seconds = len(seen) - before, time.monotonic() - begun
    saved = reading.TURNS_A_SECOND
    assert turns <= (slept_seconds + 0.5) * reading.TURNS_A_SECOND + saved
    least = before + seconds * reading.TURNS_A_SECOND / 2
    eventually(lambda: len(seen) >= least, "they go on being taken out", 10)
