"""Denied permissions: the missing one is distinguished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AclBindingFilter, AclOperation, AdminClient

from kquota.kafka.admin import AdminConnection
from kquota.kafka.errors import KafkaFailure, Kind, Operation
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.producer import ProducerThread
from kquota.kafka.publisher import UsagePublisher
from kquota.kafka.reader import TopicReader
from kquota.kafka.topic_check import TopicCheck
from kquota.kafka.topic_records import CaughtUp
from kquota.kafka.topics import Verdict, usage_topic
from testbed.loopback.cluster import KafkaCluster
from tests.integration.kafka.conftest import PATIENCE_SECONDS, Seen, allow, properties_of
from tests.integration.waiting import eventually

Close = Callable[[Any], Any]


@pytest.fixture
def topic(admin: AdminConnection, topic_name: str) -> str:
    assert TopicCheck(admin, usage_topic(topic_name), settle_seconds=0).look().usable
    return topic_name


def denied(failure: KafkaFailure | None, topic: str | None) -> Operation | None:
    assert failure is not None
    assert failure.kind is Kind.ACL_DENIED
    assert failure.topic == topic
    assert f"denied {failure.operation}" in failure.sentence
    return failure.operation


def assert_reading_lacks(
    operation: Operation, cluster: KafkaCluster, name: str, topic: str, close: Close
) -> None:
    seen = Seen()
    properties = properties_of(cluster, name)
    reader = close(TopicReader(properties, close(AdminConnection(properties)), ReadTopic(topic, seen)))
    reader.start()
    # A permission that was just given reaches one broker after the other.
    trouble = eventually(
        lambda: (found := seen.trouble) is not None and found.operation is operation and found,
        f"the reader says that it may not {operation}",
    )
    assert denied(trouble, topic) is operation
    assert not seen.caught_up


def writing_denied(cluster: KafkaCluster, name: str, topic: str, close: Close) -> Operation | None:
    properties = properties_of(cluster, name)
    publisher = UsagePublisher(close(ProducerThread(properties, lifetime_seconds=PATIENCE_SECONDS)), topic)
    publisher.publish(b"1", b"{}")
    assert publisher.flush(PATIENCE_SECONDS)
    state = publisher.state()
    assert state.errors[Kind.ACL_DENIED] == 1
    assert sum(state.errors.values()) == 1
    assert not state.connected
    return denied(state.last_failure, topic)


@pytest.mark.accepts("F23")
def test_read_write_and_describe_are_told_apart(
    secured: KafkaCluster, super_admin: AdminClient, topic: str, closing: Close
) -> None:
    allow(super_admin, "only-describe", AclOperation.DESCRIBE, topic)
    assert_reading_lacks(Operation.READ, secured, "only-describe", topic, closing)
    assert writing_denied(secured, "only-describe", topic, closing) is Operation.WRITE

    assert_reading_lacks(Operation.DESCRIBE, secured, "no-describe", topic, closing)
    allow(super_admin, "only-read", AclOperation.READ, topic)
    assert writing_denied(secured, "only-read", topic, closing) is Operation.WRITE
    allow(super_admin, "only-write", AclOperation.WRITE, topic)
    assert_reading_lacks(Operation.READ, secured, "only-write", topic, closing)


def test_reading_begins_when_the_permission_is_given_and_until_then_holds_up_no_other_topic(
    secured: KafkaCluster, super_admin: AdminClient, admin: AdminConnection, topic: str, closing: Close
) -> None:
    other = f"{topic}-other"
    assert TopicCheck(admin, usage_topic(other), settle_seconds=0).look().usable
    allow(super_admin, "late", AclOperation.DESCRIBE, topic)
    allow(super_admin, "late", AclOperation.READ, other)
    properties = properties_of(secured, "late")
    late, seen = Seen(), Seen()
    connection = closing(AdminConnection(properties))
    closing(TopicReader(properties, connection, ReadTopic(topic, late), ReadTopic(other, seen))).start()
    eventually(
        lambda: late.trouble and seen.caught_up, "the reader says that it may not, and reads the other"
    )
    publisher = UsagePublisher(closing(ProducerThread(properties_of(secured))), other)
    publisher.publish(b"1", b"a record")
    eventually(lambda: seen.values == [b"a record"], "it goes on reading the other one")
    assert not late.caught_up
    allow(super_admin, "late", AclOperation.READ, topic)
    eventually(lambda: late.caught_up and late.trouble is None, "it reads")
    assert seen.values == [b"a record"]


def test_a_quiet_topic_is_read_again_once_the_permission_is_back(
    secured: KafkaCluster, super_admin: AdminClient, topic: str, closing: Close
) -> None:
    """No record comes, and librdkafka reports no end of a partition that it has reported."""
    allow(super_admin, "quiet", AclOperation.DESCRIBE, topic)
    read = allow(super_admin, "quiet", AclOperation.READ, topic)
    properties, seen = properties_of(secured, "quiet"), Seen()
    closing(TopicReader(properties, closing(AdminConnection(properties)), ReadTopic(topic, seen))).start()
    eventually(lambda: seen.caught_up, "it reads")
    entry = AclBindingFilter(
        *(read.restype, read.name, read.resource_pattern_type, read.principal, read.host),
        *(read.operation, read.permission_type),
    )
    assert super_admin.delete_acls([entry])[entry].result(PATIENCE_SECONDS) == [read]
    eventually(lambda: seen.trouble, "it may not read any more")
    allow(super_admin, "quiet", AclOperation.READ, topic)
    eventually(lambda: seen.trouble is None, "it reads again")
    assert len(seen.of(CaughtUp)) == 1


@pytest.mark.accepts("F23")
def test_the_topic_check_says_which_permission_it_lacks(
    secured: KafkaCluster, super_admin: AdminClient, topic: str, closing: Close
) -> None:
    def verdict(name: str, of: str) -> tuple[Verdict, Operation | None]:
        connection = closing(AdminConnection(properties_of(secured, name)))
        found = TopicCheck(connection, usage_topic(of), settle_seconds=0).look()
        assert found.failure is not None
        assert found.failure.sentence in found.sentence
        return found.status, denied(found.failure, of)

    def becomes(name: str, of: str, expected: tuple[Verdict, Operation]) -> None:
        # A permission that was just given reaches one broker after the other.
        eventually(lambda: verdict(name, of) == expected, f"the verdict of {name} is {expected}")

    assert verdict("checks-nothing", topic) == (Verdict.UNKNOWN, Operation.DESCRIBE)
    allow(super_admin, "checks-little", AclOperation.DESCRIBE, topic)
    becomes("checks-little", topic, (Verdict.UNKNOWN, Operation.DESCRIBE_CONFIGS))
    allow(super_admin, "creates-nothing", AclOperation.DESCRIBE, f"{topic}-absent")
    becomes("creates-nothing", f"{topic}-absent", (Verdict.ABSENT, Operation.CREATE))


def test_a_denied_look_at_the_own_broker_is_no_failure_of_the_list(
    secured: KafkaCluster, closing: Close
) -> None:
    connection = closing(AdminConnection(properties_of(secured, "sees-brokers")))
    settings = connection.broker_settings(1).result()
    assert isinstance(settings, KafkaFailure)
    assert denied(settings, None) is Operation.DESCRIBE_CONFIGS
    cluster = connection.describe_cluster().result()
    assert not isinstance(cluster, KafkaFailure)
    assert cluster.broker_ids == {1, 2}
