"""The load programs tell the truth about what landed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kquota.demo.clients import admin_client, create_topic, offsets_by_partition
from kquota.demo.cluster import KafkaCluster
from kquota.demo.load_process import LoadProcess


@pytest.mark.long
def test_what_the_producer_counts_is_in_the_log_and_reaches_the_consumer(
    one_broker: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    admin = admin_client(one_broker.client_configuration())
    create_topic(admin, topic_name, [[1], [1]])
    common = {
        "topic": topic_name,
        "configuration": one_broker.client_configuration(),
        "environment": one_broker.environment(),
    }

    with LoadProcess("consume", log_path=tmp_path / "consumer.log", **common) as consumer:
        with LoadProcess(
            "produce", log_path=tmp_path / "producer.log", options=["--record-bytes", "1000"], **common
        ) as producer:
            while (latest := producer.latest) is None or latest.bytes < 5_000_000:
                time.sleep(0.05)
            assert producer.rate_bytes_per_second() > 0
        produced = producer.stop()
        assert produced.failed_records == 0
        assert produced.bytes == produced.records * 1000
        assert sum(offsets_by_partition(admin, topic_name).values()) == produced.records
        deadline = time.monotonic() + 60
        while (read := consumer.latest) is None or read.records < produced.records:
            assert time.monotonic() < deadline, read
            time.sleep(0.05)
    assert consumer.stop().bytes == produced.bytes


@pytest.mark.long
def test_a_rate_is_kept(one_broker: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    create_topic(admin_client(one_broker.client_configuration()), topic_name, [[1]])

    with LoadProcess(
        "produce",
        topic=topic_name,
        configuration=one_broker.client_configuration(),
        log_path=tmp_path / "producer.log",
        environment=one_broker.environment(),
        options=["--record-bytes", "1000", "--rate-bytes", "200000", "--seconds", "5"],
    ) as producer:
        assert producer.process.popen.wait(timeout=60) == 0

    assert 0.7 * 1_000_000 < producer.stop().bytes < 1.3 * 1_000_000
