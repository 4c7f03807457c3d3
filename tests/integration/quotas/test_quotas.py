"""Quotas in broker properties, shares and topic thresholds, with producers of both client families."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import ElectionType

from kquota.guard.applied_state import read_applied_state
from kquota.guard.inputs import ClusterNews
from kquota.host.boot_clock import BootClock
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties
from kquota.kafka.errors import KafkaFailure
from kquota.quotas.leaders import LeaderWatch
from testbed.loopback.clients import (
    admin_client,
    create_topic,
    delete_topic,
    offsets_by_partition,
    partition_health,
)
from testbed.loopback.plug_in import broker_files
from tests.integration.fence.fenced_cluster import FencedCluster
from tests.integration.quotas.nameless import Nameless
from tests.integration.quotas.producers import RECORD_BYTES, Java, Librdkafka, Paced, rates
from tests.integration.waiting import at_rest, eventually
from tests.unit.cli.command import kquota
from tests.unit.guard.cycles import Bench

LIMIT = 400_000
TOTAL = 800_000

MakePaced = type[Librdkafka] | type[Java]
# Java's producers are also those of the plug-in's own tests on real brokers.
both_families = pytest.mark.parametrize(
    "make", [Librdkafka, pytest.param(Java, marks=pytest.mark.long)], ids=["librdkafka", "java"]
)


def group(quoted: FencedCluster, node_id: int, name: str) -> dict[str, Any]:
    """That broker's report about a quota group."""
    groups = quoted.applied(node_id).get("clients", {}).get("groups", [])
    return next((entry for entry in groups if entry["name"] == name), {})


@both_families
@pytest.mark.accepts("B4", "B6", "B7", "B8", "B10", "B14", "C4")
def test_static_quotas_hold_on_each_broker_and_a_group_shares_its_own(
    quoted: FencedCluster, topic_name: str, make: MakePaced
) -> None:
    cluster = quoted.cluster
    admin = admin_client(cluster.client_configuration())
    create_topic(admin, topic_name, [[1], [2]])
    # Names of their own for each family: a broker remembers a quota window after its client has gone.
    of = make.__name__.lower()
    with ExitStack() as stack:
        producers: list[Paced] = [
            stack.enter_context(make(cluster, client_id, topic_name, partitions, 1.6 * LIMIT))
            for client_id, partitions in (
                (f"both-{of}", (0, 1)),
                (f"one-{of}", (0,)),
                ("free", (1,)),
                (f"shared-1-{of}", (0,)),
                (f"shared-2-{of}", (0,)),
            )
        ]
        both, one, free, *_ = producers
        eventually(lambda: one.throttle_max_ms and both.throttle_max_ms, "responses have delays")
        of_both, of_one, of_free, of_first, of_second = rates(producers, 10)
        of_group = of_first + of_second
        print(f"both {of_both:.0f}, one {of_one:.0f}, free {of_free:.0f}, group {of_group:.0f} B/s")
        assert 1.4 < of_both / of_one < 2.9, "each broker gives the client its quota"
        assert of_one / of_free < 0.85, "the default holds the one and the override not the other"
        assert 0.5 < of_group / of_one < 1.6, "two clients of a group have what one client has"
        assert one.throttle_max_ms >= one.throttle_average_ms > 0
        assert free.throttle_max_ms == free.throttle_average_ms == 0, "a client that is not delayed sees 0"
    assert [producer.failed for producer in producers] == [0] * 5
    landed = sum(offsets_by_partition(admin, topic_name).values()) * RECORD_BYTES
    assert landed == sum(producer.delivered_bytes for producer in producers), "all of it is in the log, once"


@pytest.mark.long
@pytest.mark.accepts("B5")
def test_clients_without_a_client_id_share_one_quota(quoted: FencedCluster, topic_name: str) -> None:
    cluster = quoted.cluster
    create_topic(admin_client(cluster.client_configuration()), topic_name, [[1]])
    with ExitStack() as stack:
        first: Paced = stack.enter_context(Nameless(cluster, "", topic_name, 1.6 * LIMIT))
        second: Paced = stack.enter_context(Nameless(cluster, None, topic_name, 1.6 * LIMIT))
        named: Paced = stack.enter_context(Librdkafka(cluster, "named", topic_name, (0,), 1.6 * LIMIT))
        eventually(lambda: first.throttle_max_ms and second.throttle_max_ms, "both are held")
        of_first, of_second, of_named = rates((first, second, named), 10)
        print(f"without an id {of_first:.0f} and {of_second:.0f}, with one {of_named:.0f} B/s")
        assert 0.5 < (of_first + of_second) / of_named < 1.6
        reported = quoted.applied(1)["clients"]["top"]
        limits = {entry["client_id"]: entry["produce_limit_byte_rate"] for entry in reported}
        assert limits.get("") == LIMIT, reported
    assert first.failed + second.failed + named.failed == 0


@both_families
@pytest.mark.long
@pytest.mark.accepts("C5")
def test_each_broker_gives_its_share_of_a_total(
    quoted: FencedCluster, topic_name: str, make: MakePaced
) -> None:
    cluster = quoted.cluster
    admin = admin_client(cluster.client_configuration())
    topic = f"orders-{make.__name__.lower()}"
    create_topic(admin, topic, [[1, 2], [1, 2], [1, 2], [2, 1]])
    eventually(_shared(quoted, 3 / 4, 1 / 4), "three of four partitions are led by broker 1")
    with (
        make(cluster, "orders-app", topic, (0,), 1.5 * TOTAL) as large,
        make(cluster, "orders-app", topic, (3,), 1.5 * TOTAL) as small,
    ):
        eventually(lambda: large.throttle_max_ms and small.throttle_max_ms, "both brokers hold it")
        of_large, of_small = rates((large, small), 10)
        print(f"three of four partitions {of_large:.0f}, one of four {of_small:.0f} B/s")
        assert 1.7 < of_large / of_small < 5
    assert large.failed + small.failed == 0
    delete_topic(admin, topic)


@contextmanager
def _passing_on(quoted: FencedCluster, node_id: int) -> Iterator[LeaderWatch]:
    """That broker's agent, as far as it passes leaders on."""
    cluster = quoted.cluster
    files = broker_files(cluster.nodes[node_id].layout)
    admin = AdminConnection(ClientProperties(cluster.client_configuration("kquota-agent"), node_id))
    watch, clock, stop = LeaderWatch(admin, files.decision, node_id, BootClock()), BootClock(), Event()

    report = Bench().run()

    def follow() -> None:
        while not stop.wait(0.2):
            applied = read_applied_state(files.applied, clock.now(), broker_id=node_id)
            facts = admin.describe_cluster().result()
            if not isinstance(facts, KafkaFailure):
                news = ClusterNews(facts.cluster_id, facts.broker_ids)
                for trouble in watch.follow(replace(report, applied=applied, news=news)):
                    print(trouble.sentence)

    thread = Thread(target=follow)
    thread.start()
    try:
        yield watch
    finally:
        stop.set()
        thread.join()
        watch.close()
        admin.close()


def _limits(quoted: FencedCluster) -> list[float | None]:
    return [group(quoted, node_id, "orders").get("produce_limit_byte_rate") for node_id in (1, 2)]


def _leaders(quoted: FencedCluster) -> str:
    """Whose leaders broker 1 divides by."""
    return str(quoted.applied(1)["leaders"]["source"])


def _shared(quoted: FencedCluster, ones: float, twos: float) -> Callable[[], bool]:
    return lambda: _limits(quoted) == [TOTAL * ones, TOTAL * twos]


@pytest.mark.accepts("C5")
def test_a_share_follows_leaders_and_topics_without_a_change_of_configuration(quoted: FencedCluster) -> None:
    cluster = quoted.cluster
    admin = admin_client(cluster.client_configuration())
    create_topic(admin, "orders-a", [[1, 2], [1, 2], [1, 2], [2, 1]])
    eventually(_shared(quoted, 3 / 4, 1 / 4), "three of four partitions are led by broker 1")
    create_topic(admin, "orders-b", [[2, 1]] * 4)
    eventually(_shared(quoted, 3 / 8, 5 / 8), "four more partitions are led by broker 2")
    delete_topic(admin, "orders-b")
    eventually(_shared(quoted, 3 / 4, 1 / 4), "they are gone")

    with _passing_on(quoted, 1):
        eventually(lambda: _leaders(quoted) == "agent", "the agent has passed them on")
        assert _shared(quoted, 3 / 4, 1 / 4)(), "it counts as the broker does"
        cluster.nodes[2].kill()
        eventually(lambda: _limits(quoted)[0] == TOTAL, "broker 1 leads all")
        eventually(lambda: _leaders(quoted) == "agent", "by its agent, if not by itself")
        assert _limits(quoted)[0] == TOTAL
    cluster.restart(2)
    quoted.wait_until_applied(2, "OPEN")
    eventually(lambda: not any(p.under_replicated for p in partition_health(admin, "orders-a")), "in sync")
    admin.elect_leaders(ElectionType.PREFERRED, None).result(60)
    eventually(_shared(quoted, 3 / 4, 1 / 4), "broker 2 leads again what it prefers to lead")
    delete_topic(admin, "orders-a")


@both_families
@pytest.mark.accepts("D1", "D2", "D4", "D7", "D9")
def test_a_topic_over_its_threshold_is_refused_in_silence_until_there_is_room(
    quoted: FencedCluster, topic_name: str, make: MakePaced
) -> None:
    cluster = quoted.cluster
    admin = admin_client(cluster.client_configuration())
    create_topic(admin, topic_name, [[1]])
    file = str(cluster.nodes[1].layout.directory / "kquota" / "topics.json")

    def told(pattern: str) -> Callable[[], bool]:
        # All of its log: each refusal is a line of Kafka's, and the lines before them are soon far up.
        log = cluster.nodes[1].layout.log
        return lambda: re.search(pattern, log.read_text("utf-8", "replace")) is not None

    def end() -> int:
        return offsets_by_partition(admin, topic_name)[0]

    with make(cluster, "free", topic_name, (0,), 800_000) as producer:
        eventually(lambda: producer.delivered_bytes > 2_000_000, "it flows")
        assert kquota("topics", "total", "10K", "--file", file).code == 0
        assert kquota("topics", "set", topic_name, "11K", "--file", file).code != 0
        assert kquota("topics", "set", topic_name, "9K", "--file", file).code == 0
        eventually(told(f"topic {topic_name} takes nothing in"), "the broker refuses the topic")
        held = at_rest(end, "what was authorized before is appended")
        time.sleep(3)
        assert end() == held
        why = rf"[1-9]\d* produce requests to topic {topic_name} were refused: .* above its threshold of 9000"
        eventually(told(why), "each refusal is logged, with topic and reason")
        assert kquota("topics", "total", "1G", "--file", file).code == 0
        eventually(lambda: end() > held, "there is room, and no broker was restarted")
    assert not producer.failed
    assert any(entry["client_id"] == "free" for entry in quoted.applied(1)["clients"]["refused"])
    assert kquota("topics", "off", "--file", file).code == 0
