"""The cluster is away, hangs, and comes back: reports and actions of publishers and readers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kquota.formats.records import TopicRecord
from kquota.kafka.admin import AdminConnection
from kquota.kafka.brokers import BrokerList, BrokerListFailed, BrokerWatch
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.history_producer import HistoryPublisher
from kquota.kafka.operator_producer import publish_operator_record
from kquota.kafka.producer import ProducerThread
from kquota.kafka.publisher import UsagePublisher
from kquota.kafka.reader import TopicReader
from kquota.kafka.topic_check import TopicCheck
from kquota.kafka.topic_records import ReadingRecovered
from kquota.kafka.topics import Verdict, history_topic, usage_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.kafka.conftest import PATIENCE_SECONDS, Seen, properties_of, read_all
from tests.integration.waiting import eventually

Close = Callable[[Any], Any]


@pytest.fixture(scope="module")
def lonely(kafka_runtime: KafkaRuntime) -> Iterator[KafkaCluster]:
    """A single broker, to be stopped and suspended."""
    with KafkaCluster(ClusterSpec.of(1), kafka_runtime) as cluster:
        yield cluster


@pytest.fixture
def lonely_admin(lonely: KafkaCluster, closing: Close) -> AdminConnection:
    connection = AdminConnection(properties_of(lonely), request_timeout_seconds=5)
    closing(connection)
    return connection


@pytest.mark.accepts("A14")
def test_a_stopped_broker_shows_in_status_and_counters_and_is_found_again(
    lonely: KafkaCluster, lonely_admin: AdminConnection, topic_name: str, closing: Close
) -> None:
    check = TopicCheck(lonely_admin, usage_topic(topic_name), settle_seconds=0)
    eventually(lambda: check.look().usable, "the topic is there")
    properties = properties_of(lonely)
    failures: list[KafkaFailure] = []
    publisher = UsagePublisher(
        closing(ProducerThread(properties, lifetime_seconds=4, on_failure=failures.append)), topic_name
    )
    brokers = Seen()
    closing(BrokerWatch(lonely_admin, brokers, brokers_interval_seconds=0.2)).start()
    seen = Seen()
    closing(TopicReader(properties, lonely_admin, ReadTopic(topic_name, seen))).start()
    assert publisher.state().errors == dict.fromkeys(Kind, 0), "counters are there before the first error"

    def delivered() -> bool:
        # On a busy machine one may be given up before the first connection stands.
        publisher.publish(b"1", b"before")
        publisher.flush(PATIENCE_SECONDS)
        return publisher.state().connected

    eventually(delivered, "it works at first")
    eventually(lambda: set(seen.values) == {b"before"} and seen.caught_up, "the reader has read it")
    before = publisher.state().errors

    lonely.nodes[1].stop()
    eventually(lambda: not publisher.state().connected, "the publisher has lost the connection")
    eventually(lambda: seen.trouble, "the reader has lost the connection")
    eventually(lambda: brokers.of(BrokerListFailed), "the list of brokers cannot be had")
    for number in (1, 2):
        publisher.publish(b"1", b"during %d" % number)
        assert publisher.flush(PATIENCE_SECONDS)
    state = publisher.state()
    given_up = {kind: count - before[kind] for kind, count in state.errors.items()}
    assert given_up == {**dict.fromkeys(Kind, 0), Kind.UNREACHABLE: 2}
    assert state.last_failure is not None
    assert state.last_failure.broker == lonely.internal_bootstrap_servers
    assert "cannot be reached" in state.last_failure.sentence
    assert {failure.kind for failure in failures} == {Kind.UNREACHABLE}
    assert seen.trouble is not None
    assert check.look().status is Verdict.UNKNOWN

    lonely.restart(1)
    came_back = time.monotonic()

    def publish_again() -> bool:
        publisher.publish(b"1", b"after")
        return publisher.flush(PATIENCE_SECONDS) and b"after" in seen.values

    eventually(publish_again, "the next snapshot arrives")
    assert set(seen.values) == {b"before", b"after"}, "no older one does"
    eventually(lambda: publisher.state().connected and seen.trouble is None, "all are connected again")
    eventually(
        lambda: brokers.of(BrokerList)[-1].at_monotonic > came_back, "the list of brokers can be had again"
    )
    eventually(lambda: seen.of(ReadingRecovered), "the topic, too, which is asked about every two seconds")
    eventually(lambda: check.look().usable, "so does its check")


def test_while_a_broker_hangs_the_newest_snapshot_takes_the_place_of_older_ones(
    lonely: KafkaCluster, lonely_admin: AdminConnection, topic_name: str, closing: Close
) -> None:
    check = TopicCheck(lonely_admin, usage_topic(topic_name), settle_seconds=0)
    eventually(lambda: check.look().usable, "the topic is there")
    properties = properties_of(lonely)
    publisher = UsagePublisher(
        closing(ProducerThread(properties, lifetime_seconds=PATIENCE_SECONDS)), topic_name
    )
    publisher.publish(b"1", b"0")
    publisher.publish(b"2", b"other")
    assert publisher.flush(PATIENCE_SECONDS)
    lonely.nodes[1].suspend()
    try:
        took_seconds = []
        for number in range(1, 51):
            begun = time.monotonic()
            publisher.publish(b"1", b"%d" % number)
            took_seconds.append(time.monotonic() - begun)
            time.sleep(0.01)
        assert statistics.median(took_seconds) < 0.1, "publish never waits for the cluster"
    finally:
        lonely.nodes[1].resume()
    assert publisher.flush(PATIENCE_SECONDS)
    _, seen = read_all(properties, topic_name, lonely_admin, closing)
    values = [record.value for record in seen.of(TopicRecord) if record.key == b"1"]
    # The first may have been on its way when the broker hung; of those behind it only the last is left.
    assert values in ([b"0", b"50"], [b"0", b"1", b"50"])
    assert publisher.state().replaced >= 48
    assert sum(publisher.state().errors.values()) == 0


def test_history_waits_for_the_cluster_and_gives_up_the_oldest_records_only(
    lonely: KafkaCluster, lonely_admin: AdminConnection, topic_name: str, closing: Close
) -> None:
    check = TopicCheck(lonely_admin, history_topic(topic_name), settle_seconds=0)
    eventually(lambda: check.look().usable, "the topic is there")
    properties = properties_of(lonely)
    publisher = HistoryPublisher(closing(ProducerThread(properties)), topic_name, max_buffered_bytes=10_000)
    for number in range(3):
        publisher.publish(b"1", b"early %d" % number)
    assert publisher.flush(PATIENCE_SECONDS)
    lonely.nodes[1].stop()
    eventually(lambda: not publisher.state().connected, "the publisher has lost the connection")
    for number in range(400):
        publisher.publish(b"1", b"%03d" % number + b"." * 96)
    assert publisher.buffered() <= 400
    lonely.restart(1)
    assert publisher.flush(60)
    _, seen = read_all(properties, topic_name, lonely_admin, closing)
    late = [int((value or b"")[:3]) for value in seen.values if value and not value.startswith(b"early")]
    dropped = publisher.state().dropped
    assert late[-1] == 399
    assert late == sorted(late)
    assert len(late) == len(set(late)) == 400 - dropped
    assert dropped >= 400 - 300
    assert len(seen.values) == 3 + len(late)


def test_an_operator_is_told_at_once_what_is_wrong(
    lonely: KafkaCluster, topic_name: str, closing: Close
) -> None:
    properties = properties_of(lonely)
    missing = publish_operator_record(properties, topic_name, b"hold", b"{}", (), 30)
    assert isinstance(missing, KafkaFailure)
    assert missing.kind is Kind.TOPIC_MISSING
    assert topic_name in missing.sentence
    elsewhere = properties_of(lonely, **{"bootstrap.servers": "127.0.0.1:1"})
    unreachable = publish_operator_record(elsewhere, topic_name, b"hold", b"{}", (), 2)
    assert isinstance(unreachable, KafkaFailure)
    assert unreachable.kind is Kind.UNREACHABLE
    large = publish_operator_record(properties, topic_name, b"hold", b"x" * 2_000_000, (), 2)
    assert isinstance(large, KafkaFailure)
    assert large.kind is Kind.TOO_LARGE
