"""How fast the pipeline ingests, exactly: ``kquota-pipeline ingest`` of a history on a real Kafka over TLS.

Every hundredth record comes twice, every thousandth is malformed. The tables are counted afterwards, with how
many different rows there are: lost or repeated rows are no speed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from confluent_kafka import Producer

from bench.pipeline.figures import Ingest
from kquota.policy.timestamps import format_utc
from kquota_pipeline import delta
from kquota_pipeline.jars import ensure_jars
from kquota_pipeline.session import start_session
from kquota_pipeline.tables import QUARANTINE, USAGE, Tables
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster
from testbed.loopback.runtime import ensure_kafka_runtime

_START = datetime(2024, 10, 1, tzinfo=UTC)
_BROKERS, _VOLUMES, _PARTITIONS = 100, 8, 4
_TWICE_EVERY, _MALFORMED_EVERY = 100, 1000
_LOOK_SECONDS = 0.5
_VOLUME = (
    '{"VolumeName":"/dev/sd%d","Capacity":4000000000000,"Consumed":%d,'
    '"VolumeId":"0c5dbf0e-60c0-4d3a-91f5-a7b2f0b4d5%02d","LogDirs":["/data/%d/kafka"],"Status":"ok"}'
)
_RECORD = (
    '{"SchemaVersion":1,"Kind":"usage","ClusterId":"4L6g3nShT-eMCtK--X86sw","BrokerId":%d,'
    '"InstanceId":"7d1f6a52-2a3e-4a63-9d7a-6b4b4c2d1e0f","Sequence":%d,"At":"%s","Body":{"SchemaVersion":1,'
    '"SnapshotAt":"%s","HardLimit":{"type":"MinFreePercentage","level":5},'
    '"SoftLimit":{"type":"MinFreePercentage","level":15},"Volumes":[%s],'
    '"Applied":{"State":"OPEN","Factor":1.0,"Sequence":41,"Mechanism":"governor"}}}'
)


def measure_ingest(records: int, cores: int) -> Ingest:
    """Return the cost of an ingest of this many different records, and whether it was exact."""
    load = os.getloadavg()[0]
    ensure_jars()
    with (
        TemporaryDirectory(prefix="kquota-bench-") as name,
        KafkaCluster(ClusterSpec.of(1), ensure_kafka_runtime()) as cluster,
    ):
        folder = Path(name)
        topic = f"history-{uuid.uuid4().hex[:8]}"
        create_topic(admin_client(cluster.client_configuration()), topic, [[1]] * _PARTITIONS)
        sent, malformed, size = _send(cluster, topic, records)
        command = [sys.executable, "-m", "kquota_pipeline", "ingest", f"--tables=file:{folder}/tables"]
        command += [f"--checkpoint=file:{folder}/checkpoint", f"--topic={topic}"]
        command += [f"--bootstrap-servers={cluster.internal_bootstrap_servers}"]
        command += [f"--kafka-properties={_client_properties(cluster, folder)}"]
        command += [f"--spark=spark.master=local[{cores}]"]
        started = time.monotonic()
        said, cpu_seconds = _run(command, folder / "log")
        wall = time.monotonic() - started
        rows, different, quarantined = _count(Tables(f"file:{folder}/tables"))
    summary = re.search(r"([\d,]+) records in \d+ batches and (\d+) s \(.*\), ([\d.]+) s for the raw", said)
    assert summary is not None, said[-2000:]
    exact = (rows, different, quarantined) == (sent * _VOLUMES, records * _VOLUMES, malformed)
    seconds, raw_seconds = float(summary[2]), float(summary[3])
    return Ingest(sent + malformed, size, rows, exact, seconds, raw_seconds, wall, cpu_seconds, load)


def _send(cluster: KafkaCluster, topic: str, records: int) -> tuple[int, int, int]:
    """Fill the topic, 100 brokers with a sample per 30 s; return whole and malformed records, and bytes."""
    producer = Producer(
        {
            **cluster.client_configuration("bench"),
            "linger.ms": 100,
            "compression.type": "lz4",
            "batch.size": 1_000_000,
        }
    )
    sent = malformed = size = 0

    def produce(value: bytes, partition: int) -> None:
        nonlocal size
        while True:
            try:
                producer.produce(topic, value=value, key=b"1", partition=partition)
                break
            except BufferError:
                producer.poll(0.05)
        size += len(value)

    for number in range(records):
        broker, sequence = number % _BROKERS, number // _BROKERS
        at = format_utc(_START + timedelta(seconds=30 * sequence))
        consumed = 1_000_000_000_000 + number * 7919
        listed = ",".join(_VOLUME % (n, consumed + n, n, n) for n in range(_VOLUMES))
        value = (_RECORD % (broker, sequence, at, at, listed)).encode()
        for _ in range(2 if number % _TWICE_EVERY == 0 else 1):
            produce(value, broker % _PARTITIONS)
            sent += 1
        if number % _MALFORMED_EVERY == 0:
            produce(value[:-1], broker % _PARTITIONS)
            malformed += 1
            producer.poll(0)
    if producer.flush(300):
        raise RuntimeError("the history could not be sent within 300 s")
    return sent, malformed, size


def _run(command: list[str], log: Path) -> tuple[str, float]:
    """Run a command; return its output, which goes to the log, and the CPU seconds of its processes."""
    used: dict[int, float] = {}
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                for one in (watched, *watched.children(recursive=True)):
                    times = one.cpu_times()
                    used[one.pid] = times.user + times.system
            time.sleep(_LOOK_SECONDS)
    said = log.read_text("utf-8", "replace")
    if process.returncode:
        raise RuntimeError(f"the ingest failed:\n{said[-4000:]}")
    return said, sum(used.values())


def _count(tables: Tables) -> tuple[int, int, int]:
    """Return rows of usage, how many of them are different, and quarantined records."""
    spark = start_session("bench", {"spark.master": f"local[{len(os.sched_getaffinity(0))}]"})
    try:
        usage = delta.read(spark, tables, USAGE)
        different = usage.select("broker_id", "sequence", "volume_name").distinct().count()
        return usage.count(), different, delta.read(spark, tables, QUARANTINE).count()
    finally:
        spark.stop()


def _client_properties(cluster: KafkaCluster, folder: Path) -> Path:
    pem = cluster.client_configuration("bench")
    path = folder / "client.properties"
    path.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\nssl.keystore.type=PEM\n"
        f"ssl.truststore.location={pem['ssl.ca.location']}\n"
        f"ssl.keystore.location={Path(pem['ssl.ca.location']).parent / 'bench.keystore.pem'}\n",
        "utf-8",
    )
    return path
