"""The Admin client: requests whose failures are values, and what a topic, a broker or the cluster is like."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names are not marked as exported
    AdminClient,
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
        self._future = future
        self.result = result

    def done(self) -> bool:
        """Whether result() would return at once."""
        return self._future is None or self._future.done()


class AdminConnection:
    """One Admin client for all of the agent's questions to the cluster. Safe to use from several threads.

    Raises ConfigurationError for properties that librdkafka refuses; everything later is a value.
    """

    def __init__(
        self,
        properties: ClientProperties,
        *,
        request_timeout_seconds: float = 5.0,
        on_failure: Callable[[KafkaFailure], None] | None = None,
    ) -> None:
        self._timeout_seconds = request_timeout_seconds
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
        return self._ask(
            lambda client: _at_once(client.list_topics(_ASKED_ALONG, timeout=timeout_seconds)),
            _cluster_facts,
            Operation.DESCRIBE,
        )

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
        return self._ask(
            lambda client: _at_once(client.list_topics(timeout=self._timeout_seconds)),
            _leaders,
            Operation.DESCRIBE,
        )

    def topic_settings(self, name: str) -> Pending[Mapping[str, str]]:
        """Ask for a topic's settings in force, by name; needs the permission describe-configs."""
        return self._settings(ConfigResource(ResourceType.TOPIC, name), name)

    def broker_settings(self, broker_id: int) -> Pending[Mapping[str, str]]:
        """Ask broker `broker_id` itself for its settings in force; needs describe-configs on the cluster.

        Settings that the broker holds secret are left out.
        """
        return self._settings(ConfigResource(ResourceType.BROKER, str(broker_id)), None)

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
        self._client.refresh()
        client = self._client.current()
        closed = KafkaFailure(Kind.OTHER, "The connection to the cluster is closed.", operation, topic)
        if client is None:
            problem = self._client.problem or closed
            return Pending(lambda: problem)

        def failed(cause: KafkaError) -> KafkaFailure:
            _poll(client)
            return self._client.failure(cause, operation, topic)

        def result() -> Any:
            try:
                answer = future.result(self._timeout_seconds + 1.0)
            except FutureTimeoutError:
                return failed(KafkaError(KafkaError._TIMED_OUT, "no answer"))
            except KafkaException as error:
                cause = error.args[0]
                return None if accept is not None and cause.code() == accept else failed(cause)
            self._client.errors.contact()
            return read(answer)

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
