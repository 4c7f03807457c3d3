"""The load programs report the truth about landed data."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psutil
import pytest

from testbed.demo.load_process import LoadProcess
from testbed.loopback.clients import admin_client, create_topic, offsets_by_partition
from testbed.loopback.cluster import KafkaCluster


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


@pytest.mark.long
def test_a_producer_that_is_held_leaves_its_processors_alone_unless_it_is_idempotent(
    one_broker: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    # That is librdkafka's. Once this fails, the demonstration may be idempotent, and README.md and
    # docs/clients.md can drop the caveat.
    configuration = {**one_broker.client_configuration(), "client.id": topic_name}
    create_topic(admin_client(configuration), topic_name, [[1], [1]])
    limit_to(one_broker, client_id=topic_name, bytes_per_second=300_000)
    clients = {
        "idempotent": ("true", 5),
        "idempotent, one request in flight": ("true", 1),
        "not idempotent": ("false", 5),
    }
    busy_cores = {
        name: busy_cores_of_a_held_producer(
            configuration,
            topic_name,
            environment=one_broker.environment(),
            log_path=tmp_path / f"{name}.log",
            options=["-X", f"enable.idempotence={idempotent}", "-X", f"max.in.flight={requests}"],
        )
        for name, (idempotent, requests) in clients.items()
    }
    print(f"cores that a held producer keeps busy: {busy_cores}")
    spun = busy_cores.pop("idempotent")
    assert all(spun > 5 * cores for cores in busy_cores.values())


def limit_to(cluster: KafkaCluster, *, client_id: str, bytes_per_second: int) -> None:
    command = [cluster.runtime.java, "-cp", cluster.runtime.class_path(), cluster.runtime.config_command]
    command += ["--bootstrap-server", cluster.bootstrap_servers, "--alter", "--entity-type", "clients"]
    command += ["--entity-name", client_id, "--add-config", f"producer_byte_rate={bytes_per_second}"]
    subprocess.run(command, check=True, capture_output=True)


def busy_cores_of_a_held_producer(
    configuration: dict[str, str],
    topic: str,
    *,
    environment: dict[str, str],
    log_path: Path,
    options: list[str],
) -> float:
    with LoadProcess(
        "produce",
        topic=topic,
        configuration=configuration,
        log_path=log_path,
        environment=environment,
        options=["--record-bytes", "10000", *options],
    ) as producer:
        while (latest := producer.latest) is None or latest.bytes < 2_000_000:  # from here on it waits
            time.sleep(0.05)
        process = psutil.Process(producer.process.popen.pid)
        before, begun = process.cpu_times(), time.monotonic()
        time.sleep(8)
        after, took_seconds = process.cpu_times(), time.monotonic() - begun
    return (after.user + after.system - before.user - before.system) / took_seconds
