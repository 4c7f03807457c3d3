"""One topic that is read: how far, since when, and what its receiver has to know."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    Message,
    TopicPartition,
)

from kquota.formats.records import TopicKind, TopicRecord
from kquota.kafka.admin import AdminConnection, TopicFacts
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.progress import ReadingProgress
from kquota.kafka.questions import TopicQuestions
from kquota.kafka.threads import going_on
from kquota.kafka.topic_records import (
    CaughtUp,
    PartitionsChanged,
    ReaderEvent,
    ReadingFailed,
    ReadingRecovered,
    TopicRestarted,
)

FETCH_AGAIN_SECONDS = 5.0
_NOT_THERE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION)


class Source(StrEnum):
    """The place of a failure. A success at one place proves nothing about another."""

    CONNECTION = "connection"
    FETCH = "fetch"
    DESCRIBE = "describe"


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """A topic to read, and who gets its records and events.

    The Admin client is asked every `topic_interval_seconds` for the topic's id and partitions. A record of
    the orders topic has no timestamp where its writer has set it.
    """

    name: str
    sink: Callable[[TopicRecord | ReaderEvent], None]
    topic_interval_seconds: float = 2.0
    kind: TopicKind = TopicKind.USAGE


class FollowedTopic:
    """Hands each record of a topic to its sink, in offset order by partition, with the ReaderEvents between
    them.

    A topic that was deleted and created again is known by its id, even when its offsets have grown past the
    old ones. `assignment_due` is whether the consumer has to get `assignment()` now.
    """

    def __init__(
        self,
        topic: ReadTopic,
        admin: AdminConnection,
        stopped: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = topic.name
        self.assignment_due = False
        self._caught_up = False
        self._topic = topic
        self._stopped = stopped
        self._questions = TopicQuestions(admin, topic.name, topic.topic_interval_seconds, clock)
        self._progress = ReadingProgress()
        self._topic_id: str | None = None
        self._former_ids: set[str] = set()
        self._out_of_order: str | None = None
        self._again: str | None = None
        self._is_whole = True
        self._fetches_again_at: float | None = None
        self._clock = clock
        self._assigned_in_vain = False
        self._records = 0
        self._lasting: set[Source] = set()

    @property
    def first_partition(self) -> TopicPartition | None:
        """A partition to ask a leader about; None while none is known."""
        partitions = self._progress.partitions
        return TopicPartition(self.name, min(partitions)) if partitions else None

    @property
    def begins(self) -> bool:
        """Whether it is being read for the first time or again, as far as it can be read."""
        return not (self._caught_up or self._lasting)

    def read_again(self, reason: str) -> None:
        """Read the topic again from its beginning, soon; from any thread."""
        self._again = reason

    def follow(self) -> bool:
        """Adapt the assignment to the present topic, where there is an answer about it.

        Returns whether the topic was deleted and created again since the last answer.
        """
        if self._again is not None:
            self._out_of_order, self._again = self._again, None
            self._questions.look_soon()
        found = self._questions.facts()
        if isinstance(found, KafkaFailure):
            self.failed(Source.DESCRIBE, found)
        elif found is not None:
            self.succeeded(Source.DESCRIBE)
            return self._follow(found)
        return False

    def fetch_again(self) -> None:
        """While fetching has failed, ask for the partitions again now and then.

        librdkafka reports the end of a partition once for each assignment. Where nothing is written, no other
        sign would show that fetches succeed again.
        """
        if not self.lasts(Source.FETCH):
            self._fetches_again_at = None
        elif self._fetches_again_at is None:
            self._fetches_again_at = self._clock() + FETCH_AGAIN_SECONDS
        elif self._clock() >= self._fetches_again_at:
            self._fetches_again_at = None
            self.assignment_due = True

    def follow_ends(self) -> None:
        """Take in where partitions end, as far as it is known."""
        ends = self._questions.ends(self._progress.ends_unknown())
        for partition, end in ends.items():
            self._progress.end_is(partition, end)
        self._report_caught_up()

    def assignment(self) -> list[TopicPartition]:
        """Return every partition, from where it has been read to, or from its beginning."""
        positions = self._progress.positions
        return [
            TopicPartition(self.name, p, positions.get(p, OFFSET_BEGINNING))
            for p in sorted(self._progress.partitions)
        ]

    def take(self, message: Message) -> bool:
        """Take in a record; return whether it was one of ours."""
        partition, offset = message.partition(), message.offset()
        if partition is None or offset is None or partition not in self._progress.partitions:
            return False
        kind, timestamp_ms = message.timestamp()
        is_brokers = kind == TIMESTAMP_LOG_APPEND_TIME
        is_order = self._topic.kind is TopicKind.ORDERS
        has_time = is_brokers if is_order else kind != TIMESTAMP_NOT_AVAILABLE
        at_ms = timestamp_ms if has_time else None
        key, value, headers = message.key(), message.value(), _headers(message)
        record = TopicRecord(key, value, at_ms, partition, headers, self._topic.kind, offset)
        self._progress.read(partition, offset)
        self._records += 1
        self._hand_over(record)
        self._read_something()
        return True

    def lost(self) -> None:
        """Take in that a message could not be read: without it, what was read is not the topic.

        The topic is read from its beginning again, and has not been read to its end before that.
        """
        self._is_whole = False
        self.read_again("a message could not be read")

    def reached_end(self, partition: int | None, offset: int | None) -> None:
        """Take in that a broker has nothing more."""
        if partition is not None and offset is not None:
            self._progress.reached_end(partition, offset)
        self._read_something()

    def take_error(self, error: KafkaError, failure: KafkaFailure, partition: int | None) -> None:
        """Take in an error of the fetching; `failure` is what it means."""
        if error.code() in _NOT_THERE:
            if partition in self._progress.positions:
                # Its meaning is known after the next check of the topic.
                self._out_of_order = error.str()
            else:
                # Nothing read since the assignment can be wrong: librdkafka still held this error from the
                # assignment before, or the partition's beginning has moved.
                self._assigned_in_vain = True
            self._questions.look_soon()
        if failure.kind is Kind.TOPIC_MISSING:
            self._questions.look_soon()
        self.failed(Source.FETCH, failure)

    def failed(self, source: Source, failure: KafkaFailure) -> None:
        """Report a failure; it lasts until a success of the same source."""
        self._lasting.add(source)
        self._hand_over(ReadingFailed(failure, self._topic.kind))

    def succeeded(self, *sources: Source) -> None:
        """Report that reading goes on, where no other failure lasts."""
        if self._lasting and not (self._lasting - set(sources)):
            self._hand_over(ReadingRecovered(self._topic.kind))
        self._lasting -= set(sources)

    def lasts(self, source: Source) -> bool:
        """Whether a failure of this source lasts."""
        return source in self._lasting

    def _follow(self, facts: TopicFacts) -> bool:
        if facts.topic_id in self._former_ids:
            # A broker that has not yet heard of the new topic.
            return False
        restarted: TopicRestarted | None = None
        if self._topic_id is not None and facts.topic_id != self._topic_id:
            again = "the topic was deleted and created again"
            restarted = TopicRestarted(facts.topic_id, again, topic=self._topic.kind)
            self._former_ids.add(self._topic_id)
        elif self._out_of_order is not None:
            again = self._out_of_order
            restarted = TopicRestarted(facts.topic_id, again, same_topic=True, topic=self._topic.kind)
        self._topic_id = facts.topic_id
        self._out_of_order = None
        if restarted is not None:
            self._caught_up, self._is_whole = False, True
            self._progress.restart()
            self._questions.forget_ends()
        new = self._progress.begin(facts.partitions)
        if restarted is not None:
            self._hand_over(restarted)
        if new:
            self._hand_over(PartitionsChanged(len(facts.partitions), self._topic.kind))
        if new or self._assigned_in_vain:
            self._assigned_in_vain = False
            self.assignment_due = True
        return restarted is not None and not restarted.same_topic

    def _report_caught_up(self) -> None:
        if self._caught_up or not (self._is_whole and self._progress.partitions) or self._progress.behind:
            return
        self._caught_up = True
        self._hand_over(CaughtUp(self._records, self._topic.kind))

    def _read_something(self) -> None:
        self.succeeded(Source.FETCH, Source.CONNECTION)
        self._report_caught_up()

    def _hand_over(self, what: TopicRecord | ReaderEvent) -> None:
        if self._stopped.is_set():
            return
        with going_on("the receiver of the records"):
            self._topic.sink(what)


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    """Return a record's headers; none where one's name is not UTF-8, which Kafka accepts and the client not.

    None of ours has such a name, so the record is an unsigned one.
    """
    try:
        headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        return tuple((name, value) for name, value in headers)
    except (UnicodeDecodeError, SystemError):
        # confluent-kafka returns a list although it failed: Python notices then, or at its next step.
        return ()
