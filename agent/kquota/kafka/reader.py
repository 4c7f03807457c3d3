"""Reading our topics: all of them from the beginning, then whatever comes, without a consumer group."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from kquota.kafka.admin import AdminConnection
from kquota.kafka.client import RotatingClient
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure, Kind, Operation, classify
from kquota.kafka.followed_topic import FollowedTopic, ReadTopic, Source
from kquota.kafka.threads import repeat

_LOG = logging.getLogger(__name__)

# A record ends the wait. The rest of the reading needs no more turns than this.
_POLL_SECONDS = 0.5
_POLL_SECONDS_AT_THE_START = 0.02  # answers about the topic arrive in parallel with the records
# Of a command, which ends soon: its end waits for a poll, and the end of an empty partition for a fetch.
_PASSING_POLL_SECONDS = 0.05
_PASSING_PROPERTIES = {"fetch.wait.max.ms": "20"}
_RECORDS_A_STEP = 1000
# Where records come all the time, as in a large cluster, they are taken out so often: a turn wakes threads.
TURNS_A_SECOND = 20.0
_RETRY_SECONDS = 1.0
_PROBE_TIMEOUT_SECONDS = 0.3
_LEADERS_TIMEOUT_SECONDS = 1.0
# A broker takes no request above 100 MiB, unless its socket.request.max.bytes is raised. Four such records
# may be in memory: received, taken in, waiting for a cycle, and in the cycle. The unit has 1 GiB.
_LARGEST_RESPONSE_BYTES = 128 * 1_048_576

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
    # A broker answers one fetch after the other. A partition that has records waiting here is left out of the
    # next one until they are taken out, and would then wait for that one's end: so their number is no
    # reason. See docs/adr/0011-kafka-clients-of-agents.md.
    "queued.min.messages": "10000",
    # The topics are small by their settings; these bound what an ill-set one can take: some records ahead
    # per partition.
    "queued.max.messages.kbytes": "4096",
    "fetch.queue.backoff.ms": "100",
    "fetch.message.max.bytes": "1048576",
    "fetch.max.bytes": "4194304",
    # A broker sends the first record of a fetch whatever its size. Refusing the response would mean meeting
    # it again for ever, so it is taken in, handed over and forgotten.
    "receive.message.max.bytes": str(_LARGEST_RESPONSE_BYTES),
}


class TopicReader:
    """Hands every record of its topics to their sinks at once, with one consumer, from a thread of its own.

    Also hands over ReaderEvents, in order with the records of the same topic: TopicRestarted comes before the
    first record of a new topic. A topic that cannot be read does not hold up the others. Nothing ends the
    thread but close(). Raises ConfigurationError for properties that librdkafka refuses.

    Reading begins when `may_begin` is true. One that is only `passing` is quicker to begin and to end, and
    dearer while it lasts.
    """

    def __init__(
        self,
        properties: ClientProperties,
        admin: AdminConnection,
        *topics: ReadTopic,
        may_begin: Callable[[], bool] | None = None,
        passing: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = threading.Event()
        self._topics = {topic.name: FollowedTopic(topic, admin, self._stop, clock) for topic in topics}
        self._may_begin = may_begin
        self._poll_seconds = _PASSING_POLL_SECONDS if passing else _POLL_SECONDS
        self._clock = clock
        self._client: RotatingClient[Consumer] = RotatingClient(
            Consumer,
            properties,
            Role.READER,
            # librdkafka demands a group's name; the group is neither joined nor committed to.
            {
                **_READER_PROPERTIES,
                **(_PASSING_PROPERTIES if passing else {}),
                "group.id": properties.client_id(Role.READER),
            },
            retire=Consumer.close,
            on_failure=self._connection_failed,
            clock=clock,
        )
        self._generation = 0
        self._assigned: dict[str, list[TopicPartition]] = {}
        self._probe_due = clock()
        self._turns, self._turn_at = TURNS_A_SECOND, clock()
        self._thread = threading.Thread(target=self._run, name="kquota-reader", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading, within two seconds."""
        self._stop.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(2.0)

    def read_again(self, topic: str, reason: str) -> None:
        """Read a topic again from its beginning, soon; from any thread."""
        self._topics[topic].read_again(reason)

    def _run(self) -> None:
        what = f"reading topic {' and '.join(self._topics)}"
        repeat(self._step, what, until=self._stop, pause_seconds=_RETRY_SECONDS)
        self._client.close()

    def _step(self) -> None:
        if self._may_begin is not None:
            if not self._may_begin():
                self._stop.wait(_POLL_SECONDS_AT_THE_START)
                return
            self._may_begin = None
        topics = self._topics.values()
        created_again = [topic.follow() for topic in topics]
        if any(created_again):
            self._client.renew()
        self._client.refresh()
        consumer = self._client.current()
        if consumer is None:
            if (problem := self._client.problem) is not None:
                for topic in topics:
                    topic.failed(Source.CONNECTION, problem)
            self._stop.wait(_POLL_SECONDS)
            return
        for topic in topics:
            topic.fetch_again()
        self._assign(consumer)
        for topic in topics:
            topic.follow_ends()
        self._probe(consumer)
        # The first one is waited for alone: a batch would be held back until it is full or its time is over.
        begins = any(topic.begins for topic in topics)
        message = consumer.poll(_POLL_SECONDS_AT_THE_START if begins else self._poll_seconds)
        if message is None:
            return
        for one in (message, *consumer.consume(_RECORDS_A_STEP, 0)):
            self._take_alone(one)
        if not begins:
            self._rest()

    def _rest(self) -> None:
        """Wait before the next turn, once those of a second are used up."""
        now = self._clock()
        self._turns = min(TURNS_A_SECOND, self._turns + (now - self._turn_at) * TURNS_A_SECOND) - 1.0
        self._turn_at = now
        if self._turns < 0.0:
            self._stop.wait(-self._turns / TURNS_A_SECOND)

    def _assign(self, consumer: Consumer) -> None:
        """Give the consumer the partitions of each topic that has others, or that it does not have yet.

        The reading of the other topics goes on meanwhile.
        """
        if self._client.generation != self._generation:
            self._generation = self._client.generation
            self._assigned.clear()
        for name, topic in self._topics.items():
            if not topic.assignment_due and name in self._assigned:
                continue
            partitions = topic.assignment()
            if not partitions:
                continue
            # Where it does not know a leader yet, librdkafka looks again only after half a second.
            with suppress(KafkaException):
                consumer.list_topics(name, timeout=_LEADERS_TIMEOUT_SECONDS)
            try:
                if (former := self._assigned.pop(name, None)) is not None:
                    consumer.incremental_unassign(former)
                consumer.incremental_assign(partitions)
            except KafkaException as error:
                topic.failed(Source.FETCH, self._failure(error.args[0], name))
                continue
            self._assigned[name] = partitions
            topic.assignment_due = False

    def _take_alone(self, message: Message) -> None:
        """Take in a message so that a failure costs no other one."""
        try:
            self._take(message)
        except Exception:
            _LOG.exception("reading a message failed unexpectedly: its topic is read again")
            for name, topic in self._topics.items():
                if name == message.topic():
                    topic.lost()

    def _take(self, message: Message) -> None:
        error = message.error()
        topic = self._topics.get(message.topic() or "")
        if error is None:
            if topic is not None and topic.take(message):
                self._read_something()
        elif error.code() == KafkaError._PARTITION_EOF:
            if topic is not None:
                topic.reached_end(message.partition(), message.offset())
                self._read_something()
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
            # That one is about the coordinator of the group that we do not use.
            for concerned in self._topics.values() if topic is None else (topic,):
                concerned.take_error(error, self._failure(error, concerned.name), message.partition())

    def _read_something(self) -> None:
        """Note that a broker has answered, which shows all topics that the connection stands."""
        self._client.errors.contact()
        for topic in self._topics.values():
            topic.succeeded(Source.CONNECTION)

    def _probe(self, consumer: Consumer) -> None:
        """While the connection is down and nothing arrives, ask a leader something small, to see when it is
        back.
        """
        lost = [topic for topic in self._topics.values() if topic.lasts(Source.CONNECTION)]
        if not lost or self._clock() < self._probe_due:
            return
        self._probe_due = self._clock() + _RETRY_SECONDS
        asked = next((one for topic in lost if (one := topic.first_partition) is not None), None)
        if asked is None:
            return
        try:
            consumer.get_watermark_offsets(asked, timeout=_PROBE_TIMEOUT_SECONDS, cached=False)
        except KafkaException:
            return
        self._read_something()

    def _failure(self, error: KafkaError, topic: str) -> KafkaFailure:
        certificate = self._client.client_certificate()
        failure = classify(error, operation=Operation.READ, topic=topic, certificate=certificate)
        return self._client.errors.explain(failure)

    def _connection_failed(self, failure: KafkaFailure) -> None:
        # One broker of several that cannot be reached does not keep agents from reading the others'
        # partitions.
        if failure.kind is not Kind.UNREACHABLE or self._client.errors.all_brokers_down:
            for topic in self._topics.values():
                topic.failed(Source.CONNECTION, failure)
