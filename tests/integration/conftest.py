"""Real Kafka for the tests: a shared cluster where a test leaves no trace, one of its own where it does."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import kquota
from testbed.loopback.cluster import ClusterSpec, KafkaCluster
from testbed.loopback.runtime import DEFAULT_KAFKA_VERSION, MAVEN, KafkaRuntime, ensure_kafka_runtime

ROOT = Path(__file__).resolve().parents[2]

StartCluster = Callable[..., KafkaCluster]


@pytest.fixture(scope="session")
def kafka_runtime() -> KafkaRuntime:
    """The Kafka under test; LOOPBACK_KAFKA_VERSION chooses another one (4.1.2 is the oldest supported)."""
    return ensure_kafka_runtime(os.environ.get("LOOPBACK_KAFKA_VERSION", DEFAULT_KAFKA_VERSION), report=print)


@pytest.fixture(scope="session")
def callback_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The broker plug-in, built when it is missing or older than its sources; a copy, because running brokers
    load classes late and a rebuild would break them."""
    callback = ROOT / "callback"
    jar = callback / "target" / f"kquota-callback-{kquota.__version__}.jar"
    sources = [
        callback / "pom.xml",
        *(path for path in (callback / "src" / "main").rglob("*") if path.is_file()),
    ]
    if not jar.exists() or jar.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        command = [str(MAVEN), "-q", "-B", "-ntp", "-f", str(callback / "pom.xml"), "package", "-DskipTests"]
        built = subprocess.run(command, check=False, capture_output=True, text=True)
        assert built.returncode == 0, f"{' '.join(command)}:\n{built.stdout[-4000:]}{built.stderr[-2000:]}"
        os.utime(jar)  # Maven leaves an unchanged jar as old as it was
    return Path(shutil.copy(jar, tmp_path_factory.mktemp("callback")))


@pytest.fixture(scope="session")
def one_broker(kafka_runtime: KafkaRuntime) -> Iterator[KafkaCluster]:
    """A shared broker with mutual TLS on INTERNAL. Use topics of your own (`topic_name`), do not stop it."""
    with KafkaCluster(ClusterSpec.of(1), kafka_runtime) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def three_brokers(kafka_runtime: KafkaRuntime) -> Iterator[KafkaCluster]:
    """Three shared brokers with mutual TLS on INTERNAL. Use topics of your own, leave all three running."""
    with KafkaCluster(ClusterSpec.of(3), kafka_runtime) as cluster:
        yield cluster


@pytest.fixture
def start_cluster(kafka_runtime: KafkaRuntime) -> Iterator[StartCluster]:
    """`start_cluster(spec)` starts a cluster of the test's own, gone at its end."""
    with ExitStack() as stack:
        started: list[KafkaCluster] = []

        def start(spec: ClusterSpec, runtime: KafkaRuntime = kafka_runtime) -> KafkaCluster:
            cluster = stack.enter_context(KafkaCluster(spec, runtime))
            started.append(cluster)
            return cluster

        start.clusters = started  # type: ignore[attr-defined]
        yield start


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name no other test uses."""
    return f"{request.node.originalname[:40]}-{uuid.uuid4().hex[:8]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    """With a failure, show the end of the log of every node the test used: the files go with the cluster."""
    report = yield
    if report.when == "call" and report.failed:
        for value in getattr(item, "funcargs", {}).values():
            for cluster in [value] if isinstance(value, KafkaCluster) else getattr(value, "clusters", []):
                for node in cluster.nodes.values():
                    report.sections.append((f"node {node.node_id}: {node.layout.log}", node.log_tail()))
    return report
