"""Records the sample of a real history, once: three brokers with agents on loopback, and a disk that fills.

    python -m tests.spark.backtest.record callback/target/kquota-callback-0.1.0.jar

A producer writes 6 MB/s to a topic whose replicas fill the volumes of broker 3. THROTTLE is left alone for
a minute; then another program takes the volume over its hard limit. An operator deletes the records, twice.
Needs root, for file systems of its own; takes ten minutes.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from kquota.policy.decision import Scope
from testbed.demo.application import RunningApplication
from testbed.demo.loopback_stage import BROKER_IDS, cluster_spec, start_agent
from testbed.demo.plan import Application, Plan
from testbed.loopback import clients
from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.plug_in import broker_files
from testbed.loopback.runtime import ensure_kafka_runtime

SAMPLE = Path(__file__).with_name("recorded-history.jsonl.gz")
INTERVAL_SECONDS = 2.5
_TOPIC = "__kquota_history"


def main(jar: Path) -> None:
    """Record, and write the sample."""
    filling = Application(producer_bytes_per_second=6e6)
    plan = Plan(scope=Scope.CLUSTER, applications=(filling, Application(topic="payments")))
    with ExitStack() as stack:
        cluster = stack.enter_context(
            KafkaCluster(cluster_spec(plan, jar), ensure_kafka_runtime(report=print), report=print)
        )
        for broker_id in BROKER_IDS:
            agent = start_agent(
                cluster, broker_id, plan.limits, scope="cluster", history_interval_seconds=INTERVAL_SECONDS
            )
            stack.callback(agent.terminate, 10.0)
        _until("OPEN", lambda: _state(cluster) == "OPEN")
        time.sleep(20)
        admin = clients.admin_client(cluster.administrator_configuration())
        application = stack.enter_context(RunningApplication(filling, cluster, admin))
        for is_last in (False, True):
            _until("THROTTLE", lambda: _state(cluster) == "THROTTLE")
            time.sleep(60)
            if not is_last:
                small = cluster.nodes[3].volumes[0]
                capacity = small.capacity_bytes()
                ballast = small.fill(leave_bytes=capacity // 5 - capacity // 50)
                _until("PAUSE", lambda: _state(cluster) == "PAUSE")
                time.sleep(45)
                ballast.unlink()
            application.delete_records()
            _until("OPEN", lambda: _state(cluster) == "OPEN")
        time.sleep(45)
        _dump(cluster, SAMPLE)


def _state(cluster: KafkaCluster) -> str | None:
    """Return the state that all brokers' agents have decided; None if they differ."""
    states = set()
    for broker in cluster.brokers:
        try:
            states.add(json.loads(broker_files(broker.layout).decision.read_text("utf-8"))["state"])
        except FileNotFoundError:
            return None
    return states.pop() if len(states) == 1 else None


def _until(what: str, is_so: Callable[[], bool]) -> None:
    print(f"waiting for {what}", flush=True)
    end = time.monotonic() + 300
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.2)


def _dump(cluster: KafkaCluster, path: Path) -> None:
    """Write the values of all records of the history, a line each, in the order of the topic."""
    consumer = Consumer(
        {**cluster.administrator_configuration(), "group.id": "record", "enable.partition.eof": True}
    )
    partitions = consumer.list_topics(_TOPIC, timeout=30).topics[_TOPIC].partitions
    consumer.assign([TopicPartition(_TOPIC, number, OFFSET_BEGINNING) for number in partitions])
    lines, left = [], len(partitions)
    while left:
        message = consumer.poll(30)
        assert message is not None, "the history can't be read to its end"
        if message.error():
            left -= 1
        elif (value := message.value()) is not None:
            lines.append(json.dumps(json.loads(value), separators=(",", ":")))
    consumer.close()
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    print(f"{path}: {len(lines)} records")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
