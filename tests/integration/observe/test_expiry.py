"""Bytes leave a real broker's disk when the look at its segments foretells it."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kquota.disks.observation import VolumeObservation
from kquota.disks.segment_scan import SegmentLook
from kquota.disks.server_properties import read_broker_properties
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties
from kquota.policy.volume import VolumeRole
from kquota.retention import topic_sizes_scan as module
from kquota.retention.topic_sizes import Contents
from kquota.retention.topic_sizes_scan import ContentsWatch
from kquota.settings.model import SegmentsSection
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster
from tests.integration.conftest import StartCluster
from tests.integration.waiting import eventually
from tests.unit.guard.cycles import Bench

MEBI = 1_048_576
# On a machine with other work, the first look ends some seconds after the topics have their settings.
CHECK_SECONDS, DELAY_SECONDS, RETENTION_SECONDS = 20, 5, 30
SETTINGS = {"segment.bytes": str(MEBI), "file.delete.delay.ms": str(DELAY_SECONDS * 1000)}
TOPICS = {
    "by-size": {},
    "kept": {},
    "compacted": {"cleanup.policy": "compact"},
    "by-time": {"retention.ms": str(RETENTION_SECONDS * 1000)},
}


def write(cluster: KafkaCluster, topic: str, mebibytes: int) -> None:
    producer = Producer({**cluster.client_configuration(), "batch.size": 65536})
    for number in range(mebibytes * 64):
        producer.produce(topic, b"x" * 16_000, key=str(number))
        producer.poll(0)
    assert producer.flush(30) == 0


def size_setting(cluster: KafkaCluster, topic: str, value: int) -> None:
    entry = ConfigEntry("retention.bytes", str(value), incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = admin_client(cluster.client_configuration())
    admin.incremental_alter_configs([asked])[asked].result(30)


def await_watermarks(log_dirs: tuple[str, ...]) -> None:
    """Wait until the broker has noted that it has all records in sync: a look sees no other watermarks."""

    def noted() -> dict[str, int | None]:
        with SegmentLook(log_dirs, files_per_second=0) as look:
            return {one.topic: one.high_watermark for one in look.partitions() if one.topic in TOPICS}

    eventually(lambda: noted() == dict.fromkeys(TOPICS, 640), "the watermarks are in the checkpoint")


@pytest.mark.long
@pytest.mark.accepts("G14")
def test_the_bytes_that_are_foretold_leave_within_their_time(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By time and by size, the active segment included; what is kept or compacted stays."""
    monkeypatch.setattr(module, "FIRST_SECONDS", 0.0)
    spec = ClusterSpec.of(1)
    checks = {
        "log.retention.check.interval.ms": str(CHECK_SECONDS * 1000),
        "log.initial.task.delay.ms": "500",
    }
    cluster = start_cluster(ClusterSpec(nodes=spec.nodes, properties=checks))
    (node,) = cluster.brokers
    for topic, settings in TOPICS.items():
        create_topic(admin_client(cluster.client_configuration()), topic, [[1]], {**SETTINGS, **settings})
    for topic in TOPICS:
        write(cluster, topic, 10)
    size_setting(cluster, "by-size", 3 * MEBI)
    properties = read_broker_properties(node.layout.server_properties)
    log_dirs = tuple(str(path) for path in node.layout.log_dirs)
    await_watermarks(log_dirs)
    volume = VolumeObservation("/dev/sda", "id", "/", "ext4", log_dirs, VolumeRole.DATA, 1, 1, None)
    admin = AdminConnection(ClientProperties(cluster.client_configuration(), node=1))
    settings = SegmentsSection(interval_seconds=1.0, files_per_second=100_000)
    watch = ContentsWatch(admin, settings, properties, node.layout.directory / "decision.json")

    bench = Bench()
    bench.ports.volumes = (volume,)
    report = bench.run()

    def look() -> Contents:
        watch.follow(report)
        found = eventually(watch.take_unseen, "a look has ended")
        assert isinstance(found, Contents)
        assert found.notes == ()
        return found

    def sizes(found: Contents) -> dict[str, int]:
        return {topic.name: topic.size_bytes for topic in found.volumes[0].topics}

    try:
        before, begun = look(), time.monotonic()
        foretold_bytes = before.volumes[0].expiry.leaving_within("10m")
        within = {topic.name: topic.soon_bytes for topic in before.volumes[0].topics}
        print(f"foretold: {foretold_bytes:,} bytes of {before.volumes[0].expiry.total_bytes:,}, {within}")
        assert within["kept"] == within["compacted"] == 0
        assert within["by-time"] > 9 * MEBI
        assert 5 * MEBI < within["by-size"] < 9 * MEBI
        promised_seconds = RETENTION_SECONDS + CHECK_SECONDS + DELAY_SECONDS
        time.sleep(max(promised_seconds + 2 - (time.monotonic() - begun), 0))
        look()  # one that had begun before
        after = look()
        gone_bytes = sum(sizes(before).values()) - sum(sizes(after).values())
        print(f"gone after {time.monotonic() - begun:.1f} s: {gone_bytes:,} bytes")
        assert gone_bytes == pytest.approx(foretold_bytes, rel=0.1)
        assert after.volumes[0].expiry.leaving_within("10m") < 0.01 * foretold_bytes
    finally:
        watch.close()
        admin.close()
