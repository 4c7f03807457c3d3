"""One secured cluster for all tests of the Kafka side: two brokers, mutual TLS, the stock authorizer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kquota.formats.records import TopicRecord
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.reader import TopicReader
from kquota.kafka.topic_records import CaughtUp, ReadingFailed, ReadingRecovered
from testbed.loopback.certificates import principal_of
from testbed.loopback.clients import admin_client
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.waiting import eventually

AGENT = "kquota-agent-1"
PATIENCE_SECONDS = 60.0
"""For what takes a moment, and longer only on a busy machine."""
T = TypeVar("T")


@pytest.fixture(scope="session")
def secured(kafka_runtime: KafkaRuntime) -> Iterator[KafkaCluster]:
    """Broker 1 is the controller too; broker 2 may be stopped, if it is started again."""
    spec = ClusterSpec(
        nodes=(NodeSpec(node_id=1), NodeSpec(node_id=2, roles=("broker",))),
        authorizer=True,
        super_users=(principal_of(AGENT),),
        properties={
            # As in a careless cluster: a write to a missing topic creates it.
            "auto.create.topics.enable": "true",
            "log.cleaner.backoff.ms": "200",
            "message.max.bytes": "40000000",
        },
    )
    with KafkaCluster(spec, kafka_runtime) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def super_admin(secured: KafkaCluster) -> AdminClient:
    return admin_client(secured.client_configuration(AGENT))


def properties_of(cluster: KafkaCluster, name: str = AGENT, **more: str) -> ClientProperties:
    return ClientProperties({**cluster.client_configuration(name), **more}, node=1)


@pytest.fixture
def properties(secured: KafkaCluster) -> ClientProperties:
    return properties_of(secured)


@pytest.fixture
def closing() -> Iterator[Callable[[T], T]]:
    """`closing(x)` returns x and closes it at the end of the test, the newest first."""
    opened: list[Any] = []

    def close_later(what: T) -> T:
        opened.append(what)
        return what

    yield close_later
    for what in reversed(opened):
        what.close()


@pytest.fixture
def admin(properties: ClientProperties, closing: Callable[[T], T]) -> AdminConnection:
    return closing(AdminConnection(properties))


class Seen:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[Any] = []

    def __call__(self, what: Any) -> None:
        with self._lock:
            self._all.append(what)

    def of(self, kind: type[T]) -> list[T]:
        with self._lock:
            return [what for what in self._all if isinstance(what, kind)]

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.of(TopicRecord)]

    @property
    def latest(self) -> dict[bytes | None, bytes | None]:
        return {record.key: record.value for record in self.of(TopicRecord)}

    @property
    def caught_up(self) -> bool:
        return self.of(CaughtUp) != []

    @property
    def trouble(self) -> KafkaFailure | None:
        """The obstacles that keep the reader from reading, by its own reports."""
        told = [what for what in self.of(object) if isinstance(what, ReadingFailed | ReadingRecovered)]
        return told[-1].failure if told and isinstance(told[-1], ReadingFailed) else None


def read_all(
    properties: ClientProperties, topic: str, admin: AdminConnection, close: Callable[[Any], Any]
) -> tuple[TopicReader, Seen]:
    """A new reader that has caught up."""
    seen = Seen()
    reader = close(TopicReader(properties, admin, ReadTopic(topic, seen, topic_interval_seconds=0.5)))
    reader.start()
    eventually(lambda: seen.caught_up, f"a reader of {topic} has caught up")
    return reader, seen


def allow(admin: AdminClient, name: str, operation: AclOperation, topic: str) -> AclBinding:
    """Let the identity `name` do `operation` on `topic`; return the entry."""
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        principal_of(name),
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin.create_acls([binding])[binding].result(PATIENCE_SECONDS)
    return binding
