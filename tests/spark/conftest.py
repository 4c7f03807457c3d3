"""One Spark session for all tests of the pipeline: starting one costs more than most of what it runs."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kquota_pipeline.session import start_session
from kquota_pipeline.tables import Tables
from testbed.loopback.cluster import ClusterSpec, KafkaCluster
from testbed.loopback.runtime import ensure_kafka_runtime
from tests.spark.ingest.history import History

# pyspark.testing imports pandas on Spark, which warns without it.
os.environ.setdefault("PYARROW_IGNORE_TIMEZONE", "1")
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# They run for too short a time to earn back what the thorough compiler costs. With the quick one alone, a JVM
# keeps room for much less code than Spark has: it would throw code out, and compile it again, all the time.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
)

SMALL = {
    "spark.master": os.environ.get("KQUOTA_TEST_MASTER", "local[2]"),
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.warehouse.dir": "/nonexistent",
}


def pytest_configure(config: pytest.Config) -> None:
    """Pyspark leaves the sockets of its gateway to the garbage collector."""
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session("kquota-pipeline tests", SMALL)
    yield session
    session.stop()


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Where a test may make tables of its own."""
    return Tables(f"file:{tmp_path}/tables")


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaCluster]:
    """A broker with mutual TLS on its internal listener."""
    with KafkaCluster(ClusterSpec.of(1), ensure_kafka_runtime(report=print)) as cluster:
        yield cluster


@pytest.fixture
def history(kafka: KafkaCluster) -> Callable[..., History]:
    """`history(partitions=…, volumes=…)` makes a history topic of the test's own."""
    return lambda **options: History(kafka, f"history-{uuid.uuid4().hex[:8]}", **options)
