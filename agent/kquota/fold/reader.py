"""Reading the usage topic: all of it from the beginning, then whatever comes, without a consumer group."""

import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from kquota.fold.progress import ReadingProgress
from kquota.fold.questions import TopicQuestions
from kquota.fold.records import (
    CaughtUp,
    PartitionsChanged,
    ReaderEvent,
    ReadingFailed,
    ReadingRecovered,
    TopicRecord,
    TopicRestarted,
)
from kquota.kafka.admin import AdminConnection, TopicFacts
from kquota.kafka.client import RotatingClient
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure, Kind, Operation, classify
from kquota.kafka.threads import going_on, repeat

# A record ends the wait. The rest of the reading needs no more turns than this.
_POLL_SECONDS = 0.5
_POLL_SECONDS_AT_THE_START = 0.02  # answers about the topic arrive in parallel with the records
_RECORDS_A_STEP = 1000
_RETRY_SECONDS = 1.0
_PROBE_TIMEOUT_SECONDS = 0.3
_LARGEST_RESPONSE_BYTES = 256 * 1_048_576

_READER_PROPERTIES = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    # An offset that is not there means another topic or a log that was cut: never silently another position.
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    # The broker answers as soon as there is a record, so waiting long costs no latency and spares the
    # processor.
    "fetch.wait.max.ms": "500",
    "fetch.error.backoff.ms": "200",
    # The topic is small by its settings; these bound what an ill-set one can take: some records ahead per
    # partition.
    "queued.max.messages.kbytes": "4096",
    # A broker is asked again a tenth of a second after its last answer, or at once when that was empty: a
    # single record comes at once, and of a thousand agents' records many come with one answer. See
    # docs/adr/0103-records-of-large-clusters-come-in-batches.md.
    "queued.min.messages": "1",
    "fetch.queue.backoff.ms": "100",
    "fetch.message.max.bytes": "1048576",
    "fetch.max.bytes": "4194304",
    # A broker sends the first record of a fetch whatever its size. Refusing the response would mean meeting
    # it again for ever, so it is taken in, handed over and forgotten.
    "receive.message.max.bytes": str(_LARGEST_RESPONSE_BYTES),
}


class _Source(StrEnum):
    """The place of a failure. A success at one place proves nothing about another."""

    CONNECTION = "connection"
    FETCH = "fetch"
    DESCRIBE = "describe"


class TopicReader:
    """Hands every record of `topic` to `sink` at once, in offset order by partition, from a thread of its
    own.

    Also hands over ReaderEvents, in order with the records: TopicRestarted comes before the first record of
    a new topic. Nothing ends the thread but close(). Raises ConfigurationError for properties that
    librdkafka refuses.

    Reading begins when `may_begin` is true. `admin` is asked every `topic_interval_seconds` for the topic's
    id and partitions: a topic that was deleted and created again is known by its id, even when its offsets
    have grown past the old ones. With `brokers_times_only`, records have no timestamp where their writer has
    set it.
    """

    def __init__(
        self,
        properties: ClientProperties,
        topic: str,
        admin: AdminConnection,
        sink: Callable[[TopicRecord | ReaderEvent], None],
        *,
        topic_interval_seconds: float = 2.0,
        brokers_times_only: bool = False,
        may_begin: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = topic
        self._questions = TopicQuestions(admin, topic, topic_interval_seconds, clock)
        self._sink = sink
        self._brokers_times_only = brokers_times_only
        self._may_begin = may_begin
        self._clock = clock
        self._client: RotatingClient[Consumer] = RotatingClient(
            Consumer,
            properties,
            Role.READER,
            # librdkafka demands a group's name; the group is neither joined nor committed to.
            {**_READER_PROPERTIES, "group.id": properties.client_id(Role.READER)},
            retire=Consumer.close,
            on_failure=self._connection_failed,
            clock=clock,
        )
        self._stop = threading.Event()
        self._progress = ReadingProgress()
        self._generation = 0
        self._topic_id: str | None = None
        self._former_ids: set[str] = set()
        self._out_of_order: str | None = None
        self._again: str | None = None
        self._assigned_in_vain = False
        self._caught_up = False
        self._records = 0
        self._lasting: set[_Source] = set()
        self._probe_due = clock()
        self._thread = threading.Thread(target=self._run, name="kquota-reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading, within two seconds."""
        self._stop.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(2.0)

    def read_again(self, reason: str) -> None:
        """Read the topic again from its beginning, soon; from any thread."""
        self._again = reason

    def _run(self) -> None:
        repeat(self._step, f"reading topic {self._topic}", until=self._stop, pause_seconds=_RETRY_SECONDS)
        self._client.close()

    def _step(self) -> None:
        if self._may_begin is not None:
            if not self._may_begin():
                self._stop.wait(_POLL_SECONDS_AT_THE_START)
                return
            self._may_begin = None
        self._client.refresh()
        self._follow_topic()
        consumer = self._client.current()
        if consumer is None:
            if self._client.problem is not None:
                self._failed(_Source.CONNECTION, self._client.problem)
            self._stop.wait(_POLL_SECONDS)
            return
        if self._client.generation != self._generation:
            self._generation = self._client.generation
            self._assign(consumer)
        self._follow_ends()
        self._probe(consumer)
        # The first one is waited for alone: a batch would be held back until it is full or its time is over.
        message = consumer.poll(_POLL_SECONDS if self._caught_up else _POLL_SECONDS_AT_THE_START)
        if message is None:
            return
        for one in (message, *consumer.consume(_RECORDS_A_STEP, 0)):
            self._take(one)

    def _take(self, message: Message) -> None:
        error = message.error()
        partition, offset = message.partition(), message.offset()
        if error is not None:
            self._take_error(error, partition, offset)
            return
        if partition is None or offset is None:
            return
        if partition not in self._progress.partitions:
            return
        self._progress.read(partition, offset)
        self._records += 1
        kind, timestamp_ms = message.timestamp()
        is_brokers = kind == TIMESTAMP_LOG_APPEND_TIME
        has_time = is_brokers if self._brokers_times_only else kind != TIMESTAMP_NOT_AVAILABLE
        at_ms = timestamp_ms if has_time else None
        self._hand_over(
            TopicRecord(partition, offset, at_ms, message.key(), message.value(), _headers(message))
        )
        self._read_something()

    def _take_error(self, error: KafkaError, partition: int | None, offset: int | None) -> None:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            if partition is not None and offset is not None:
                self._progress.reached_end(partition, offset)
            self._read_something()
            return
        if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
            # librdkafka looks for the coordinator of the group that we do not use.
            return
        if code in (
            KafkaError._AUTO_OFFSET_RESET,
            KafkaError.OFFSET_OUT_OF_RANGE,
            KafkaError._LOG_TRUNCATION,
        ):
            if partition in self._progress.positions:
                # Its meaning is known after the next check of the topic.
                self._out_of_order = error.str()
            else:
                # Nothing read since the assignment can be wrong: librdkafka still held this error from the
                # assignment before, or the partition's beginning has moved.
                self._assigned_in_vain = True
            self._questions.look_soon()
        failure = self._failure(error)
        if failure.kind is Kind.TOPIC_MISSING:
            self._questions.look_soon()
        self._failed(_Source.FETCH, failure)

    def _follow_topic(self) -> None:
        if self._again is not None:
            self._out_of_order, self._again = self._again, None
            self._questions.look_soon()
        found = self._questions.facts()
        if isinstance(found, KafkaFailure):
            self._failed(_Source.DESCRIBE, found)
        elif found is not None:
            self._succeeded(_Source.DESCRIBE)
            self._follow(found)

    def _follow(self, facts: TopicFacts) -> None:
        """Adapt the assignment to the present topic."""
        if facts.topic_id in self._former_ids:
            # A broker that has not yet heard of the new topic.
            return
        restarted: TopicRestarted | None = None
        if self._topic_id is not None and facts.topic_id != self._topic_id:
            restarted = TopicRestarted(facts.topic_id, "the topic was deleted and created again")
            self._former_ids.add(self._topic_id)
        elif self._out_of_order is not None:
            restarted = TopicRestarted(facts.topic_id, self._out_of_order, same_topic=True)
        self._topic_id = facts.topic_id
        self._out_of_order = None
        if restarted is not None:
            self._caught_up = False
            self._progress.restart()
            self._questions.forget_ends()
        new = self._progress.begin(facts.partitions)
        if restarted is not None:
            self._hand_over(restarted)
        if new:
            self._hand_over(PartitionsChanged(len(facts.partitions)))
        if new or self._assigned_in_vain:
            self._assigned_in_vain = False
            consumer = self._client.current()
            if consumer is not None:
                self._generation = self._client.generation
                self._assign(consumer)

    def _assign(self, consumer: Consumer) -> None:
        """Read every partition from where it has been read to, or from its beginning."""
        positions = self._progress.positions
        partitions = sorted(self._progress.partitions)
        if not partitions:
            return
        try:
            consumer.assign(
                [TopicPartition(self._topic, p, positions.get(p, OFFSET_BEGINNING)) for p in partitions]
            )
        except KafkaException as error:
            self._generation = 0
            self._failed(_Source.FETCH, self._failure(error.args[0]))

    def _follow_ends(self) -> None:
        ends = self._questions.ends(self._progress.ends_unknown())
        for partition, end in ends.items():
            self._progress.end_is(partition, end)
        self._report_caught_up()

    def _report_caught_up(self) -> None:
        if self._caught_up or not self._progress.partitions or self._progress.behind:
            return
        self._caught_up = True
        self._hand_over(CaughtUp(self._records))

    def _probe(self, consumer: Consumer) -> None:
        """While the connection is down and nothing arrives, ask a leader something small, to see when it is
        back.
        """
        if _Source.CONNECTION not in self._lasting or self._clock() < self._probe_due:
            return
        self._probe_due = self._clock() + _RETRY_SECONDS
        for partition in sorted(self._progress.partitions)[:1]:
            asked = TopicPartition(self._topic, partition)
            try:
                consumer.get_watermark_offsets(asked, timeout=_PROBE_TIMEOUT_SECONDS, cached=False)
            except KafkaException:
                return
            self._client.errors.contact()
            self._succeeded(_Source.CONNECTION)

    def _failure(self, error: KafkaError) -> KafkaFailure:
        certificate = self._client.client_certificate()
        failure = classify(error, operation=Operation.READ, topic=self._topic, certificate=certificate)
        return self._client.errors.explain(failure)

    def _connection_failed(self, failure: KafkaFailure) -> None:
        # One broker of several that cannot be reached does not keep agents from reading the others'
        # partitions.
        if failure.kind is not Kind.UNREACHABLE or self._client.errors.all_brokers_down:
            self._failed(_Source.CONNECTION, failure)

    def _failed(self, source: _Source, failure: KafkaFailure) -> None:
        self._lasting.add(source)
        self._hand_over(ReadingFailed(failure))

    def _read_something(self) -> None:
        self._client.errors.contact()
        self._succeeded(_Source.FETCH, _Source.CONNECTION)
        self._report_caught_up()

    def _succeeded(self, *sources: _Source) -> None:
        if self._lasting and not (self._lasting - set(sources)):
            self._hand_over(ReadingRecovered())
        self._lasting -= set(sources)

    def _hand_over(self, what: TopicRecord | ReaderEvent) -> None:
        if self._stop.is_set():
            return
        with going_on("the receiver of the records"):
            self._sink(what)


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return tuple((name, value) for name, value in headers)
