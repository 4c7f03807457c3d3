"""Kafka's classes as a JVM maps them into memory: a node that finds them so starts sooner, for less work.

An archive belongs to one set of jars and one JVM. It is no more than a help: without it, or with one that
does not fit, classes are loaded from the jars. `python -m testbed.loopback.class_archive` makes it, after
fetching the jars if they are missing, too.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable

from confluent_kafka import Producer

from testbed.loopback.clients import admin_client, create_topic, delete_records_before
from testbed.loopback.cluster import ClusterSpec, KafkaCluster
from testbed.loopback.runtime import KafkaRuntime, ensure_kafka_runtime

_TOPIC = "recorded"
_DUMP_SECONDS = 180.0


def ensure_class_archive(
    runtime: KafkaRuntime, *, report: Callable[[str], None] = lambda _line: None
) -> bool:
    """Have a node record the classes that it loads, if that was not done yet; whether there is an archive.

    Concurrent callers wait for each other.

    Raises:
        NodeFailed: the node did not start.
    """
    if not runtime.archive.exists():
        with runtime.archive.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not runtime.archive.exists():
                report(f"recording the classes of Kafka {runtime.version} in {runtime.archive} (once)")
                _record(runtime)
    return runtime.archive.exists()


def _record(runtime: KafkaRuntime) -> None:
    incoming = runtime.archive.with_suffix(".incoming")
    incoming.unlink(missing_ok=True)
    spec = ClusterSpec.of(1, jvm_options=(f"-XX:ArchiveClassesAtExit={incoming}",))
    with KafkaCluster(spec, runtime) as cluster:
        # The usual requests of most tests, so that the classes for them are among those recorded.
        admin = admin_client(cluster.client_configuration("kquota-agent-1"))
        create_topic(admin, _TOPIC, [[1]])
        producer = Producer(cluster.client_configuration())
        producer.produce(_TOPIC, b"x")
        producer.flush(60)
        delete_records_before(admin, _TOPIC, {0: 1})
        cluster.nodes[1].stop(timeout_seconds=_DUMP_SECONDS)
    if incoming.exists():  # complete: it is written before the process ends
        incoming.rename(runtime.archive)


if __name__ == "__main__":
    ensure_class_archive(ensure_kafka_runtime(report=print), report=print)
