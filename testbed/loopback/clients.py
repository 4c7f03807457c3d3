"""Requests of the demo and the tests to a cluster, by its public protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    NewTopic,
    OffsetSpec,
    PartitionMetadata,
)
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

_REQUEST_TIMEOUT_SECONDS = 30.0
_LEADERSHIP_IN_MOTION = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._NOENT,  # librdkafka's answer while none of the partitions has a leader yet
}


def _leadership_in_motion(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _LEADERSHIP_IN_MOTION


_until_led = retry(
    retry=retry_if_exception(_leadership_in_motion),
    wait=wait_fixed(0.1),
    stop=stop_after_delay(_REQUEST_TIMEOUT_SECONDS),
    reraise=True,
)


def visible_brokers(address: str, timeout_seconds: float = 5.0) -> set[int]:
    """The ids of the brokers that the broker at `address` lists as alive; empty when it does not answer."""
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    try:
        return set(client.list_topics(timeout=timeout_seconds).brokers)
    except KafkaException:
        return set()


def admin_client(configuration: Mapping[str, str]) -> AdminClient:
    """An Admin client; librdkafka properties in, e.g. `KafkaCluster.client_configuration()`."""
    # A broker that goes away is what tests and demo are about: not worth a line on stderr each time.
    return AdminClient({"log_level": 0, **configuration})


def create_topic(
    admin: AdminClient,
    name: str,
    replicas: Sequence[Sequence[int]],
    settings: Mapping[str, str] | None = None,
) -> None:
    """Create a topic with these replicas per partition, preferred leader first; wait for all leaders.

    Raises:
        KafkaException: the cluster refused.
        TimeoutError: no leaders after thirty seconds.
    """
    topic = NewTopic(
        name,
        num_partitions=len(replicas),
        replica_assignment=[list(brokers) for brokers in replicas],
        config=dict(settings or {}),
    )
    _await(admin.create_topics([topic], operation_timeout=_REQUEST_TIMEOUT_SECONDS)[name])
    offsets_by_partition(admin, name)  # asks each leader: they are ready when they answer


def delete_topic(admin: AdminClient, name: str) -> None:
    """Delete a topic."""
    _await(admin.delete_topics([name], operation_timeout=_REQUEST_TIMEOUT_SECONDS)[name])


def partitions_of(admin: AdminClient, topic: str) -> list[int]:
    """Its partition numbers.

    Raises:
        KafkaException: the broker that answers knows no such topic, or not yet who leads it.
    """
    return sorted(_described_partitions(admin, topic, _REQUEST_TIMEOUT_SECONDS))


@_until_led
def offsets_by_partition(
    admin: AdminClient,
    topic: str,
    at: OffsetSpec | None = None,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[int, int]:
    """The offset of each partition at `at` (default: the end, that is how many records have ever landed).

    Partitions whose leader is just changing are asked again for thirty seconds.
    """
    wanted = at if at is not None else OffsetSpec.latest()  # type: ignore[no-untyped-call]
    requests = {TopicPartition(topic, number): wanted for number in partitions_of(admin, topic)}
    answers = admin.list_offsets(
        requests, isolation_level=isolation, request_timeout=_REQUEST_TIMEOUT_SECONDS
    )
    return {partition.partition: _await(future).offset for partition, future in answers.items()}


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """The brokers that have a partition, and those that should."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.in_sync) < len(self.replicas)


def partition_health(admin: AdminClient, topic: str, timeout_seconds: float = 5.0) -> list[PartitionHealth]:
    """The partitions of the topic as the cluster describes them.

    Raises:
        KafkaException: no broker answers, or the one that does knows no such topic.
    """
    return [
        PartitionHealth(
            topic=topic,
            partition=entry.id,
            leader=entry.leader if entry.leader >= 0 else None,
            replicas=tuple(entry.replicas),
            in_sync=tuple(entry.isrs),
        )
        for entry in _described_partitions(admin, topic, timeout_seconds).values()
    ]


def delete_records_before(admin: AdminClient, topic: str, offsets: Mapping[int, int]) -> None:
    """Delete what lies before these offsets, as an operator does to free space."""
    requests = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
    answers = admin.delete_records(requests, operation_timeout=_REQUEST_TIMEOUT_SECONDS)
    for future in answers.values():
        _await(future)


def _described_partitions(
    admin: AdminClient, topic: str, timeout_seconds: float
) -> dict[int, PartitionMetadata]:
    described = admin.list_topics(topic, timeout=timeout_seconds).topics[topic]
    if described.error is not None:
        raise KafkaException(described.error)
    return described.partitions


def _await(future: Future[Any]) -> Any:
    return future.result(timeout=_REQUEST_TIMEOUT_SECONDS)
