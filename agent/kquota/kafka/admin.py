"""The Admin client: requests whose failures are values, and what a topic, a broker or the cluster is like."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names are not marked as exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from kquota.kafka.client import RotatingClient, end_admin_client
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.credentials import ClientCertificate
from kquota.kafka.errors import KafkaFailure, Kind, Operation

T = TypeVar("T")
C = TypeVar("C", AdminClient, Producer)

BROKERS_WITHOUT_REST = 250
"""In a cluster with more brokers, the Admin client is ended between questions."""

REST_SECONDS = 20.0
"""How often questions are asked there. A broker has to see the agent more often than each half a minute."""

_IDLE_SECONDS = 1.5
_SHORT_SECONDS = 1.0  # a question that is asked more often is about a failure, and does not wait

# A metadata request without a topic would make the brokers list all they have.
_ASKED_ALONG = "__kquota_volume_usage"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The unfenced brokers that have the listener we came in by."""

    broker_ids: frozenset[int]
    cluster_id: str | None


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as the brokers describe it. `replication_factor` is the smallest of its partitions;
    `leaderless` are the partitions without a leader at the moment."""

    name: str
    topic_id: str
    partitions: frozenset[int]
    replication_factor: int
    leaderless: frozenset[int]


class Pending(Generic[T]):
    """A request in flight. Its outcome is a value: the answer, or a KafkaFailure; it never raises.

    `result` waits for it, no longer than the connection's request timeout and a second.
    """

    def __init__(self, result: Callable[[], T | KafkaFailure], future: Future[Any] | None = None) -> None:
        self.future = future
        self.result = result

    def done(self) -> bool:
        """Whether result() would return at once."""
        return self.future is None or self.future.done()


class AdminConnection:
    """One Admin client for all of the agent's questions to the cluster. Safe to use from several threads.

    With `asking_through`, a client that is there anyway, that one asks for the list of brokers in a cluster
    of more than `BROKERS_WITHOUT_REST` brokers, and the Admin client is only there while questions are open:
    it would keep a thread for each broker. `pause_seconds` makes the questions come at the same time.

    Raises ConfigurationError for properties that librdkafka refuses; everything later is a value.
    """

    def __init__(
        self,
        properties: ClientProperties,
        *,
        request_timeout_seconds: float = 5.0,
        on_failure: Callable[[KafkaFailure], None] | None = None,
        asking_through: RotatingClient[Producer] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout_seconds = request_timeout_seconds
        self._through = asking_through
        self._clock = clock
        self._may_rest = False
        self._asked_at = clock()
        self._asking_now = 0
        self._open: list[Future[Any]] = []
        self._asking = threading.Lock()
        self._client = RotatingClient(
            AdminClient, properties, Role.ADMIN, retire=end_admin_client, on_failure=on_failure
        )

    def client_certificate(self) -> ClientCertificate | None:
        """Our own certificate as it is on disk now (when it expires …)."""
        return self._client.client_certificate()

    def describe_cluster(self) -> Pending[ClusterFacts]:
        """Ask any broker which ones are active. Blocks until it has answered, two seconds at most.

        This is the metadata request itself and not librdkafka's DescribeCluster: that one, like most requests
        of an Admin client, waits for the broker last named as the controller, which may be the very one that
        is down. This one also renews the name, so that the others find their way again.
        """
        # A broker that hangs is asked by chance; the next question goes to another one.
        timeout_seconds = min(self._timeout_seconds, 2.0)

        def start(client: AdminClient | Producer) -> Future[Any]:
            return _at_once(client.list_topics(_ASKED_ALONG, timeout=timeout_seconds))

        if self._through is not None and self._may_rest:
            answer = self._answer(self._through, start, _cluster_facts, Operation.DESCRIBE)
        else:
            answer = self._ask(start, _cluster_facts, Operation.DESCRIBE)
        found = answer.result()
        if not isinstance(found, KafkaFailure):
            is_large = len(found.broker_ids) > BROKERS_WITHOUT_REST
            self._may_rest = self._through is not None and is_large
        return answer

    def pause_seconds(self, interval_seconds: float) -> float:
        """Return how long to wait with a question that is asked every `interval_seconds`."""
        if not self._may_rest or interval_seconds <= _SHORT_SECONDS:
            return interval_seconds
        return max(interval_seconds, REST_SECONDS - self._clock() % REST_SECONDS)

    def describe_topic(self, name: str) -> Pending[TopicFacts]:
        """Ask for a topic's id, partitions and replicas; a missing topic is a failure of kind
        topic-missing.
        """
        return self._ask(
            lambda client: client.describe_topics(
                TopicCollection([name]), request_timeout=self._timeout_seconds
            )[name],
            _topic_facts,
            Operation.DESCRIBE,
            name,
        )

    def leaders(self) -> Pending[Mapping[str, Sequence[int | None]]]:
        """Ask any broker for the leaders of all partitions, by topic; None where there is none.

        Topics that our principal may not describe are left out. Blocks until it has answered.
        """
        return self.metadata(_leaders)

    def metadata(self, read: Callable[[Any], T]) -> Pending[T]:
        """Ask any broker for all topics with their partitions, and read what is wanted of the answer.

        Topics that our principal may not describe are left out. Blocks until it has answered.
        """
        return self._ask(
            lambda client: _at_once(client.list_topics(timeout=self._timeout_seconds)),
            read,
            Operation.DESCRIBE,
        )

    def topic_settings(self, name: str) -> Pending[Mapping[str, str]]:
        """Ask for a topic's settings in force, by name; needs the permission describe-configs."""
        return self._settings(ConfigResource(ResourceType.TOPIC, name), name)

    def settings_of_topics(self, names: Sequence[str]) -> Pending[Mapping[str, Mapping[str, str]]]:
        """Ask for the settings in force of many topics; blocks until the answer is there.

        Topics that are missing, or whose settings our principal may not see, are left out; that there is no
        other is a failure.
        """

        def start(client: AdminClient) -> Future[Any]:
            asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
            answers = client.describe_configs(asked, request_timeout=self._timeout_seconds)
            found, refused = {}, None
            for resource, answer in answers.items():
                try:
                    found[resource.name] = _plain_settings(answer.result(self._timeout_seconds + 1.0))
                except KafkaException as error:
                    refused = refused or error
            if refused is not None and not found:
                raise refused
            return _at_once(found)

        return self._ask(start, lambda found: found, Operation.DESCRIBE_CONFIGS)

    def broker_settings(self, broker_id: int) -> Pending[Mapping[str, str]]:
        """Ask broker `broker_id` itself for its settings in force; needs describe-configs on the cluster.

        Settings that the broker holds secret are left out.
        """
        return self._settings(ConfigResource(ResourceType.BROKER, str(broker_id)), None)

    def set_broker_setting(self, broker_id: int, name: str, value: str | None) -> Pending[None]:
        """Ask for a dynamic setting of a broker, None to end it; needs alter-configs on the cluster."""
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(name, value or "", incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, str(broker_id), incremental_configs=[entry])
        return self._ask(
            lambda client: client.incremental_alter_configs(
                [resource], request_timeout=self._timeout_seconds
            )[resource],
            lambda _nothing: None,
            Operation.ALTER_CONFIGS,
        )

    def create_topic(
        self, name: str, *, partitions: int, replication_factor: int, settings: Mapping[str, str]
    ) -> Pending[None]:
        """Ask for a topic to be created. That it exists already is success: many agents ask at once."""
        topic = NewTopic(name, partitions, replication_factor, config=dict(settings))
        return self._ask(
            lambda client: client.create_topics(
                [topic], operation_timeout=self._timeout_seconds, request_timeout=self._timeout_seconds
            )[name],
            lambda _nothing: None,
            Operation.CREATE,
            name,
            accept=KafkaError.TOPIC_ALREADY_EXISTS,
        )

    def end_offset(self, topic: str, partition: int) -> Pending[int]:
        """Ask for the offset that the next record of a partition will get."""
        asked = TopicPartition(topic, partition)
        return self._ask(
            lambda client: client.list_offsets(
                {asked: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
                request_timeout=self._timeout_seconds,
            )[asked],
            lambda found: int(found.offset),
            Operation.DESCRIBE,
            topic,
        )

    def serve(self) -> None:
        """Deliver the client's errors and log lines; called by the code that asks regularly."""
        if self._may_rest:
            with self._asking:
                self._open = [future for future in self._open if not future.done()]
                is_asked = self._asking_now or self._open
                if not is_asked and self._clock() - self._asked_at >= _IDLE_SECONDS:
                    self._client.rest()
        self._client.refresh()
        client = self._client.current()
        if client is not None:
            _poll(client)

    def close(self) -> None:
        """End the client; requests under way fail."""
        self._client.close()

    def _settings(self, resource: ConfigResource, topic: str | None) -> Pending[Mapping[str, str]]:
        return self._ask(
            lambda client: client.describe_configs([resource], request_timeout=self._timeout_seconds)[
                resource
            ],
            _plain_settings,
            Operation.DESCRIBE_CONFIGS,
            topic,
        )

    def _ask(
        self,
        start: Callable[[AdminClient], Future[Any]],
        read: Callable[[Any], Any],
        operation: Operation,
        topic: str | None = None,
        accept: int | None = None,
    ) -> Pending[Any]:
        def start_and_note(client: AdminClient) -> Future[Any]:
            future = start(client)
            with self._asking:
                self._open = [*(one for one in self._open if not one.done()), future]
            return future

        with self._asking:
            self._asking_now += 1
            self._client.wake()
        try:  # a question may wait for its answer, and must not hold up the others
            return self._answer(self._client, start_and_note, read, operation, topic, accept)
        finally:
            with self._asking:
                self._asking_now -= 1
                self._asked_at = self._clock()

    def _answer(
        self,
        through: RotatingClient[C],
        start: Callable[[C], Future[Any]],
        read: Callable[[Any], Any],
        operation: Operation,
        topic: str | None = None,
        accept: int | None = None,
    ) -> Pending[Any]:
        through.refresh()
        client = through.current()
        closed = KafkaFailure(Kind.OTHER, "The connection to the cluster is closed.", operation, topic)
        if client is None:
            problem = through.problem or closed
            return Pending(lambda: problem)

        def failed(cause: KafkaError) -> KafkaFailure:
            if isinstance(client, AdminClient):
                _poll(client)
            return through.failure(cause, operation, topic)

        def result() -> Any:
            try:
                answer = future.result(self._timeout_seconds + 1.0)
            except FutureTimeoutError:
                return failed(KafkaError(KafkaError._TIMED_OUT, "no answer"))
            except KafkaException as error:
                cause = error.args[0]
                return None if accept is not None and cause.code() == accept else failed(cause)
            through.errors.contact()
            return read(answer)

        future: Future[Any]
        try:
            future = start(client)
        except KafkaException as error:
            failure = failed(error.args[0])
            return Pending(lambda: failure)
        except RuntimeError:  # another thread has ended this client meanwhile
            return Pending(lambda: closed)
        return Pending(result, future)


def _poll(client: AdminClient) -> None:
    with suppress(RuntimeError):  # another thread has ended this client meanwhile
        client.poll(0)


def _at_once(answer: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(answer)
    return future


def _cluster_facts(answer: Any) -> ClusterFacts:
    return ClusterFacts(broker_ids=frozenset(answer.brokers), cluster_id=answer.cluster_id)


def _leaders(answer: Any) -> Mapping[str, Sequence[int | None]]:
    return {
        name: [None if one.leader < 0 else one.leader for one in topic.partitions.values()]
        for name, topic in answer.topics.items()
        if topic.error is None
    }


def _topic_facts(answer: Any) -> TopicFacts:
    partitions: Sequence[Any] = answer.partitions
    return TopicFacts(
        name=answer.name,
        topic_id=str(answer.topic_id),
        partitions=frozenset(partition.id for partition in partitions),
        replication_factor=min((len(partition.replicas) for partition in partitions), default=0),
        leaderless=frozenset(
            partition.id for partition in partitions if partition.leader is None or partition.leader.id < 0
        ),
    )


def _plain_settings(answer: Any) -> Mapping[str, str]:
    return {name: entry.value for name, entry in answer.items() if entry.value is not None}
