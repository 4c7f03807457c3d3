"""The fence with librdkafka's producers, and with replication."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from testbed.loopback.clients import admin_client, create_topic, offsets_by_partition, partition_health
from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.fence.fenced_cluster import FencedCluster
from tests.integration.waiting import at_rest, eventually

PRODUCERS: Mapping[str, Mapping[str, str]] = {
    "idempotent": {"enable.idempotence": "true"},
    "acks-all": {"acks": "all"},
    "acks-one": {"acks": "1"},
    # Refused means disconnected to it, and librdkafka waits for up to ten seconds before it connects again.
    "acks-none": {"acks": "0", "reconnect.backoff.max.ms": "1000"},
}
"""Every way to produce; its topic is called so."""
_REFUSAL = "Unexpected error handling request"
"""In Kafka's log for each refused request, unless the fence's mark is filtered."""
_DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED


class Trickle:
    """A librdkafka producer that sends 50 records of 1 kB a second until the end of the block."""

    def __init__(self, cluster: KafkaCluster, topic: str, settings: Mapping[str, str]) -> None:
        self.delivered = 0
        self.failed: list[str] = []
        self._topic = topic
        configuration = {**cluster.client_configuration(), "log_level": 0, "linger.ms": 5, **settings}
        self._producer = Producer(configuration)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"trickle-{topic}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(5)

    def _run(self) -> None:
        while not self._ended.wait(0.02):
            self._producer.produce(self._topic, bytes(1000), on_delivery=self._on_delivery)
            self._producer.poll(0)

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.delivered += 1
        elif not self._ended.is_set():
            self.failed.append(str(error))


@pytest.mark.accepts("C3", "F28")
def test_a_pause_keeps_every_byte_of_librdkafka_out_and_ends_promptly(
    fenced: FencedCluster, record_property: Callable[[str, object], None]
) -> None:
    cluster = fenced.cluster
    admin = admin_client(cluster.client_configuration())
    fenced.decide("OPEN")
    for topic in PRODUCERS:
        create_topic(admin, topic, [[1, 2]])
    trickles = {topic: Trickle(cluster, topic, settings) for topic, settings in PRODUCERS.items()}

    def end(topic: str) -> int:
        return offsets_by_partition(admin, topic)[0]

    with trickles["idempotent"], trickles["acks-all"], trickles["acks-one"], trickles["acks-none"]:
        for topic in PRODUCERS:
            eventually(_beyond(end, topic, 50), f"{topic} flows")
        fenced.decide("PAUSE")
        paused_at = time.monotonic()
        held = at_rest(
            lambda: {topic: end(topic) for topic in PRODUCERS}, "what was authorized before is appended"
        )
        time.sleep(10)
        assert {topic: end(topic) for topic in PRODUCERS} == held
        assert fenced.applied(1)["fence"]["refusals"] > 0
        assert not any(_REFUSAL in node.log.read_text("utf-8") for node in cluster.brokers)
        pause_seconds = time.monotonic() - paused_at
        fenced.decide("OPEN")
        released_at = time.monotonic()
        for topic in PRODUCERS:
            eventually(_beyond(end, topic, held[topic]), f"{topic} flows again")
            seconds = time.monotonic() - released_at
            print(f"{topic} flows again {seconds:.2f} s after a pause of {pause_seconds:.1f} s")
            assert seconds < pause_seconds / 3, topic
            record_property("recovery_seconds", seconds)
        assert {topic: trickle.failed for topic, trickle in trickles.items()} == {
            topic: [] for topic in PRODUCERS
        }


def _beyond(end: Callable[[str], int], topic: str, offset: int) -> Callable[[], bool]:
    return lambda: end(topic) > offset


@pytest.mark.long
@pytest.mark.accepts("C3")
def test_a_follower_catches_up_in_a_pause(fenced: FencedCluster, topic_name: str) -> None:
    cluster = fenced.cluster
    admin = admin_client(cluster.client_configuration())
    fenced.decide("OPEN")
    create_topic(admin, topic_name, [[1, 2]], {"min.insync.replicas": "1"})
    cluster.nodes[2].stop()
    with Trickle(cluster, topic_name, PRODUCERS["acks-all"]) as trickle:
        eventually(lambda: trickle.delivered > 100, "records that only node 1 has")
        fenced.decide("PAUSE")
        held = at_rest(
            lambda: offsets_by_partition(admin, topic_name), "what was authorized before is appended"
        )
        assert partition_health(admin, topic_name)[0].under_replicated
        cluster.restart(2)
        fenced.wait_until_applied(2, "PAUSE")
        eventually(lambda: not partition_health(admin, topic_name)[0].under_replicated, "node 2 is in sync")
        assert offsets_by_partition(admin, topic_name) == held
        assert not trickle.failed
    fenced.decide("OPEN")


@pytest.mark.long
@pytest.mark.parametrize("nodes", [(1, 2), (1, 2, 3)], ids=["brokers", "brokers-and-controllers"])
def test_a_controller_keeps_acls_and_who_is_denied_is_told_so_in_a_pause(
    nodes: Sequence[int], kafka_runtime: KafkaRuntime, callback_jar: Path, topic_name: str
) -> None:
    fenced = FencedCluster(kafka_runtime, callback_jar, fenced=nodes)
    with fenced.cluster:
        acls_are_kept(fenced, topic_name)


def acls_are_kept(fenced: FencedCluster, topic_name: str) -> None:
    cluster = fenced.cluster
    admin = admin_client(cluster.client_configuration())
    fenced.decide("OPEN")
    create_topic(admin, topic_name, [[1, 2]])
    denial = ("*", AclOperation.WRITE, AclPermissionType.DENY)
    named = (ResourceType.TOPIC, topic_name, ResourcePatternType.LITERAL, "User:ANONYMOUS")
    for created in admin.create_acls([AclBinding(*named, *denial)]).values():
        created.result(30)
    eventually(lambda: _error_of_one_record(cluster, topic_name) == _DENIED, "denied in OPEN")
    fenced.decide("PAUSE")
    assert _error_of_one_record(cluster, topic_name) == _DENIED
    for deleted in admin.delete_acls([AclBindingFilter(*named, *denial)]).values():
        assert len(deleted.result(30)) == 1
    fenced.decide("OPEN")
    eventually(lambda: _error_of_one_record(cluster, topic_name) is None, "allowed again")


def _error_of_one_record(cluster: KafkaCluster, topic: str) -> int | None:
    """The error code a record's delivery ends with, or None where it lands."""
    codes: list[int | None] = []
    producer = Producer({**cluster.client_configuration(), "log_level": 0})

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        codes.append(None if error is None else error.code())

    producer.produce(topic, b"x", on_delivery=on_delivery)
    producer.flush(30)
    assert len(codes) == 1, "neither landed nor failed"
    return codes[0]
