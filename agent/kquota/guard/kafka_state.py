"""The answers of the Kafka clients so far, taken from their events.

Only the thread that runs the cycles takes events out of the queue, so nothing here needs a lock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import Empty

from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.signature_headers import SignatureHeaders, read_signature_headers
from kquota.guard.event_queue import EventQueue
from kquota.guard.inputs import ClusterNews
from kquota.journal.active_problems import ActiveProblem
from kquota.journal.journal import MessageId
from kquota.kafka.brokers import BrokerList, BrokerListFailed, OwnBroker, OwnBrokerFailed
from kquota.kafka.credentials import ClientCertificate
from kquota.kafka.errors import KafkaFailure, Kind, Operation
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.misplaced import MisplacedRecords
from kquota.kafka.topic_records import (
    CaughtUp,
    PartitionsChanged,
    ReaderEvent,
    ReadingFailed,
    ReadingRecovered,
    TopicEvent,
    TopicRestarted,
    size_bytes,
)
from kquota.kafka.topics import TopicVerdict, Verdict
from kquota.policy.events import Refusal

# Records of a long backlog are folded in portions, so that decisions and the watchdog go on between.
MAX_EVENTS_A_CYCLE = 5000
MAX_BYTES_A_CYCLE = 8 * 1_048_576
# To verify one costs as much as a signature: these take a fifth of a second. There are fewer agents.
MAX_NEW_CERTIFICATES_A_CYCLE = 2000
_ASKED_WITHIN_SECONDS = 25.0
# An agent looks for a new orders topic of the same name this often; orders themselves come at once.
ORDERS_LOOK_SECONDS = 10.0
_NOT_READABLE = (Kind.TOPIC_MISSING, Kind.ACL_DENIED)


@dataclass(frozen=True, slots=True)
class CertificateSeen:
    """The client certificate that is on disk now; None where there is none, or none that can be read."""

    certificate: ClientCertificate | None


KafkaEvent = (
    TopicRecord
    | ReaderEvent
    | BrokerList
    | BrokerListFailed
    | OwnBroker
    | OwnBrokerFailed
    | TopicVerdict
    | KafkaFailure
    | CertificateSeen
)


def hand_over(queue: EventQueue[KafkaEvent], event: KafkaEvent, *, is_urgent: bool = False) -> None:
    """Put an event in a queue, a record once there is room for it."""
    queue.put(event, size_bytes(event) if isinstance(event, TopicRecord) else 0, is_urgent=is_urgent)


def take_portion(queue: EventQueue[KafkaEvent], verifier: RecordVerifier | None) -> Iterator[KafkaEvent]:
    """Take out the events of one cycle, in their order, so that it ends in time whatever writers write.

    The rest are taken out in later cycles. Nothing overtakes: when the topic has been read to its end, all
    that was before has been taken out.
    """
    portion_bytes, new_certificates = 0, set[bytes]()
    for _ in range(MAX_EVENTS_A_CYCLE):
        try:
            event = queue.get_nowait()
        except Empty:
            return
        if isinstance(event, TopicRecord):
            portion_bytes += size_bytes(event)
            headers = None if verifier is None else read_signature_headers(event.headers)
            if (
                isinstance(headers, SignatureHeaders)
                and verifier
                and not verifier.authorities.knows(headers.certificate)
            ):
                new_certificates.add(headers.certificate)
        yield event
        if portion_bytes >= MAX_BYTES_A_CYCLE or len(new_certificates) >= MAX_NEW_CERTIFICATES_A_CYCLE:
            break
    queue.leave_the_rest()


def orders_to_read(topic: str, sink: Callable[[KafkaEvent], None]) -> ReadTopic:
    """Return how to read the orders topic. The end of an order is judged by the broker's time."""
    return ReadTopic(topic, sink, ORDERS_LOOK_SECONDS, TopicKind.ORDERS)


def counts(verifier: RecordVerifier, record: TopicRecord) -> bool:
    """Whether a record in a wrong partition can be one from before partitions were added.

    Anybody can write one there, with no signature or a wrong one. The owner of an agent's key can sign one,
    and must not have the topic refused for all: of an agent's records the counter shows the newest anyway,
    in whatever partitions they are.
    """
    verdict = verifier.judge(record, datetime.now(UTC))
    return not isinstance(verdict, Refusal) and (verdict is None or not verdict.is_agents)


@dataclass(slots=True)
class ReaderState:
    """The answers so far of the reader of one of our topics."""

    topic: str
    kind: TopicKind = TopicKind.USAGE
    verifier: RecordVerifier | None = None
    partitions: int | None = None
    is_readable: bool = True
    misplaced: MisplacedRecords = field(init=False)

    def __post_init__(self) -> None:
        verifier = self.verifier
        judged = None if verifier is None else lambda one: counts(verifier, one)
        self.misplaced = MisplacedRecords(self.topic, judged, self.kind)

    def take(self, event: TopicRecord | ReaderEvent) -> None:
        """Take in one event."""
        match event:
            case TopicRecord():
                self.misplaced.take(event)
            case ReadingFailed():
                self.is_readable = event.failure.kind not in _NOT_READABLE
            case CaughtUp() | ReadingRecovered():
                self.is_readable = True
            case TopicRestarted():
                self.misplaced.forget()
            case PartitionsChanged():
                self.partitions = event.partitions
                self.misplaced.partitions_are(event.partitions)


@dataclass(slots=True)
class KafkaState:
    """The Kafka clients' answers so far.

    ``problems`` are the present ones, by subject, until they end; ``errors`` counts failures by kind,
    ``denied`` those for lack of a permission. ``certificate`` is None until it was read.
    """

    usage: ReaderState
    orders: ReaderState
    cluster_id: str | None = None
    active_brokers: frozenset[int] | None = None
    restarts: list[str] = field(default_factory=list)
    topics: dict[str, TopicVerdict] = field(default_factory=dict)
    own_broker_answered_at_seconds: float | None = None
    problems: dict[str, dict[ActiveProblem, None]] = field(default_factory=dict)
    errors: Counter[Kind] = field(default_factory=Counter)
    denied: Counter[Operation] = field(default_factory=Counter)
    read_failures: int = 0
    certificate: CertificateSeen | None = None

    @property
    def readers(self) -> tuple[ReaderState, ReaderState]:
        """The readers of both topics."""
        return self.usage, self.orders

    def take(self, event: KafkaEvent) -> TopicEvent | None:
        """Take in one event; return it if it shows what the usage or orders topic contains."""
        if isinstance(event, TopicRecord | ReaderEvent):
            self._take_of_reader(event)
            return event if isinstance(event, TopicEvent) else None
        match event:
            case BrokerList():
                self.active_brokers, self.cluster_id = event.ids, event.cluster_id or self.cluster_id
                for reader in self.readers:
                    if (verifier := reader.verifier) is not None:
                        verifier.cluster_id = self.cluster_id
                self._well("brokers")
            case BrokerListFailed():
                self._failed("brokers", event.failure)
            case OwnBroker():
                self.own_broker_answered_at_seconds = event.at_monotonic
                self._well("own broker")
            case OwnBrokerFailed():
                if event.failure.kind is Kind.ACL_DENIED:  # it answered, and has seen who we are
                    self.own_broker_answered_at_seconds = event.at_monotonic
                self._failed("own broker", event.failure)
            case TopicVerdict():
                self._take_verdict(event)
            case KafkaFailure():
                self._count(event)
                if event.is_want_of_resources:  # and it does not try again: it stands until these clients go
                    self._add(ActiveProblem.of("resources", event))
            case CertificateSeen():
                self.certificate = event
        return None

    def news(self, now_seconds: float) -> ClusterNews:
        """Return what a cycle needs of it."""
        verdict = self.topics.get(self.usage.topic)
        refused = verdict.sentence if verdict and verdict.status is Verdict.REFUSED else None
        answered = self.own_broker_answered_at_seconds
        return ClusterNews(
            cluster_id=self.cluster_id,
            active_brokers=self.active_brokers,
            topic_refused=refused or self.usage.misplaced.sentence,
            asked_own_broker=answered is not None and now_seconds - answered <= _ASKED_WITHIN_SECONDS,
            orders_readable=self.orders.is_readable,
        )

    def standing(self) -> Iterator[ActiveProblem]:
        """Yield all that is wrong."""
        for problems in self.problems.values():
            yield from problems
        for reader in self.readers:
            if (sentence := reader.misplaced.sentence) is not None:
                subject = f"partitions of {reader.topic}"
                yield ActiveProblem(MessageId.TOPIC_REFUSED, subject, "misplaced", sentence)

    def drain_errors(self) -> Counter[Kind]:
        """Return the failures since the last call, by kind."""
        errors, self.errors = self.errors, Counter()
        return errors

    def drain_denied(self) -> Counter[Operation]:
        """Return the denied requests since the last call, by the permission they lack."""
        denied, self.denied = self.denied, Counter()
        return denied

    def drain_read_failures(self) -> int:
        """Return how often the topic could not be read since the last call."""
        failures, self.read_failures = self.read_failures, 0
        return failures

    def drain_restarts(self) -> list[str]:
        """Return why the topic was read again from its beginning, for each time since the last call."""
        restarts, self.restarts = self.restarts, []
        return restarts

    def _take_of_reader(self, event: TopicRecord | ReaderEvent) -> None:
        is_usage = event.topic is TopicKind.USAGE
        reader, subject = (self.usage, "reader") if is_usage else (self.orders, "orders reader")
        reader.take(event)
        match event:
            case ReadingFailed(failure):
                self.read_failures += 1
                self._not_read(subject, reader.topic, failure)
            case ReadingRecovered():
                self._read(subject, reader.topic)
            case TopicRestarted(reason=reason):
                self.restarts.append(f"the {event.topic} topic is read again from its beginning: {reason}")

    def _take_verdict(self, verdict: TopicVerdict) -> None:
        if verdict.status is not Verdict.UNKNOWN or verdict.topic not in self.topics:
            self.topics[verdict.topic] = verdict
        subject, kind = f"topic {verdict.topic}", " ".join((verdict.status, *verdict.problems))
        compacted = [reader.topic for reader in self.readers]
        refused = verdict.status is Verdict.REFUSED and verdict.topic in compacted
        if verdict.status is not Verdict.UNKNOWN:
            self._well(subject)  # this verdict takes the place of the one before
        elif verdict.topic_id is not None:
            self._exists(verdict.topic)
        if not verdict.usable or verdict.problems:
            message_id = MessageId.TOPIC_REFUSED if refused else MessageId.KAFKA_TROUBLE
            self._add(ActiveProblem(message_id, subject, kind, verdict.sentence))
        if verdict.failure is not None:
            self._count(verdict.failure)

    def _count(self, failure: KafkaFailure) -> None:
        self.errors[failure.kind] += 1
        if failure.kind is Kind.ACL_DENIED and failure.operation is not None:
            self.denied[failure.operation] += 1

    def _failed(self, subject: str, failure: KafkaFailure) -> None:
        self._count(failure)
        self._add(ActiveProblem.of(subject, failure))

    def _not_read(self, subject: str, topic: str, failure: KafkaFailure) -> None:
        """Note why a topic can't be read.

        That it is missing is one problem with the verdict of who checks it: what was just created is missing
        here for a moment, and what was deleted soon there, too.
        """
        if failure.kind is not Kind.TOPIC_MISSING:
            self._failed(subject, failure)
            return
        self._count(failure)
        verdict = self.topics.get(topic)
        if f"topic {topic}" not in self.problems and (verdict is None or not verdict.usable):
            self._add(
                ActiveProblem(MessageId.KAFKA_TROUBLE, f"topic {topic}", Verdict.ABSENT, failure.sentence)
            )

    def _read(self, subject: str, topic: str) -> None:
        self._well(subject)
        self._exists(topic)

    def _exists(self, topic: str) -> None:
        """End what says that a topic is missing: without its settings there is no verdict that ends it."""
        subject = f"topic {topic}"
        others = {
            problem: None for problem in self.problems.pop(subject, {}) if problem.kind != Verdict.ABSENT
        }
        if others:
            self.problems[subject] = others

    def _add(self, problem: ActiveProblem) -> None:
        self.problems.setdefault(problem.subject, {}).setdefault(problem)

    def _well(self, subject: str) -> None:
        self.problems.pop(subject, None)
