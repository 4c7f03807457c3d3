"""The broker that is recorded, the load on it, and its agent."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bench.pipeline.recording.pace import (
    AGENT_SETTINGS,
    BROKER_PROPERTIES,
    DAY_HOURS,
    HOUR_SECONDS,
    milliseconds,
)
from bench.pipeline.recording.plan import VOLUME_BYTES, VOLUMES, Load, Places, topics_at_start
from kquota.kafka.topics import topics_as_configured
from kquota.settings.model import TopicsSection
from testbed.loopback.clients import admin_client, create_topic, delete_topic
from testbed.loopback.cluster import ClusterSpec, KafkaCluster, NodeSpec
from testbed.loopback.plug_in import agent_name, broker_files
from testbed.loopback.processes import ChildProcess
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import VolumeSpec

RECORDED, RECORDS = 1, 2
"""The broker that is recorded, and the one that has the records (and the controller)."""
_RECORD_BYTES, _KEYED_BYTES = 16_000, 4_000
_PLACE_SECONDS = 20.0
_READ_SECONDS = 60.0


def cluster_of(runtime: KafkaRuntime, report: Callable[[str], None]) -> KafkaCluster:
    """Return the cluster: one broker with all volumes, and one for kquota's topics."""
    volumes = (VolumeSpec(VOLUME_BYTES),) * len(VOLUMES)
    nodes = (
        NodeSpec(node_id=RECORDED, roles=("broker",), volumes=volumes, separate_metadata_dir=True),
        NodeSpec(node_id=RECORDS),
    )
    spec = ClusterSpec(nodes=nodes, tls=False, properties=BROKER_PROPERTIES)
    return KafkaCluster(spec, runtime, report=report)


def start_agent(cluster: KafkaCluster) -> ChildProcess:
    """Make kquota's topics on the other broker, and start the agent of the recorded one."""
    admin = admin_client(cluster.administrator_configuration())
    for contract in topics_as_configured(TopicsSection()):
        create_topic(admin, contract.name, [[RECORDS]], contract.settings)
    layout = cluster.nodes[RECORDED].layout
    files = broker_files(layout)
    document = {
        **AGENT_SETTINGS,
        "broker": {"server_properties": str(layout.server_properties)},
        "kafka": cluster.client_configuration(agent_name(RECORDED)),
        "decision_file": str(files.decision),
        "applied_file": str(files.applied),
        "state_dir": str(layout.directory / "kquota-state"),
        "metrics": {"listen": "127.0.0.1:0"},
    }
    for path in (files.decision.parent, layout.directory / "kquota-state"):
        path.mkdir()
    configuration = layout.directory / "agent.yml"
    configuration.write_text(yaml.safe_dump(document, sort_keys=False))
    command = [sys.executable, "-m", "bench.pipeline.recording.agent", "run", "--config", str(configuration)]
    return ChildProcess(command, log_path=layout.directory / "agent.log", environment=cluster.environment())


class Traffic:
    """Makes topics, writes to them what the plan has for them, and changes them."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.places = Places()
        self._log_dirs = cluster.nodes[RECORDED].layout.log_dirs
        self._admin: AdminClient = admin_client(cluster.administrator_configuration())
        self._producer = Producer(
            {**cluster.client_configuration(), "acks": "1", "linger.ms": 20, "compression.type": "none"}
        )
        self._owed: dict[str, float] = {}
        self._written: dict[str, int] = {}
        self._content = os.urandom(2**20)
        self._lots = random.Random(1)
        self.bytes = 0

    def make_all(self) -> None:
        """Make the topics where Kafka puts them, and give each the settings of its volume's next load."""
        made = [f"topic-{number:02d}" for number in range(1, topics_at_start() + 1)]
        for topic in made:
            create_topic(self._admin, topic, [[RECORDED]])
            load = self.places.take(topic, str(self._log_dir(topic)))
            if load is not None:
                # Those that are new some day, too: with Kafka's retention until then, a week of true days,
                # each of them would be a topic whose retention has just been changed.
                self._set(topic, load.settings)
        for topic in self.places.loads:
            self._begin(topic)

    def begin_new(self, day: float) -> list[str]:
        """Begin to write to the topics that are new until a day; return them."""
        due = self.places.begin_due(day)
        for topic in due:
            self._begin(topic)
        return due

    def _begin(self, topic: str) -> None:
        self._owed[topic], self._written[topic] = 0.0, 0

    def keep(self, topic: str, hours: float | None) -> None:
        """Change the retention of a topic; without one, delete the topic."""
        if hours is None:
            del self._owed[topic]
            delete_topic(self._admin, topic)
        else:
            self._set(topic, {"retention.ms": milliseconds(hours)})

    def write(self, since: float, until: float) -> None:
        """Write what comes in between two times, hours of the history."""
        for topic in self._owed:
            load = self.places.loads[topic]
            owed = self._owed[topic] + load.bytes_per_hour(topic, (since + until) / 2) * (until - since)
            size = _KEYED_BYTES if load.keys else _RECORD_BYTES
            while owed >= size:
                self._produce(topic, load, size)
                owed -= size
            self._owed[topic] = owed
        self._producer.poll(0)

    def end(self) -> None:
        """Wait until all is written."""
        self._producer.flush(30)

    def _produce(self, topic: str, load: Load, size: int) -> None:
        begin = self._lots.randrange(len(self._content) - size)
        number = self._written[topic]
        # At first each key once, and then any.
        key = str(number if number < load.keys else self._lots.randrange(load.keys)) if load.keys else None
        self._producer.produce(topic, self._content[begin : begin + size], key=key)
        self._written[topic] = number + 1
        self.bytes += size

    def _set(self, topic: str, settings: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([asked])[asked].result(30)

    def _log_dir(self, topic: str) -> Path:
        deadline = time.monotonic() + _PLACE_SECONDS
        while time.monotonic() < deadline:
            for log_dir in self._log_dirs:
                if (log_dir / f"{topic}-0").is_dir():
                    return log_dir
            time.sleep(0.05)
        raise RuntimeError(f"{topic}: no log dir has a directory for it after {_PLACE_SECONDS:g} s")


def read_history(cluster: KafkaCluster) -> list[bytes]:
    """Return the values of all records on the history topic, in their order.

    Raises:
        RuntimeError: the topic could not be read to its end.
    """
    consumer = Consumer({**cluster.client_configuration(), "group.id": "unused", "enable.auto.commit": False})
    place = TopicPartition(TopicsSection().history.name, 0, 0)
    try:
        _, end = consumer.get_watermark_offsets(place, 30)
        consumer.assign([place])
        found: list[bytes] = []
        deadline = time.monotonic() + _READ_SECONDS
        while end and (not found or place.offset < end):
            for message in consumer.consume(1000, 1.0):
                if message.error() is None:
                    found.append(message.value() or b"")
                    place.offset = (message.offset() or 0) + 1
            if time.monotonic() > deadline:
                raise RuntimeError(f"the history could be read up to {place.offset} of {end}")
        return found
    finally:
        consumer.close()


def cpu_seconds(process_ids: list[int]) -> float:
    """Return the processor seconds of processes and of their children, those that have ended included."""
    total = 0.0
    for number in process_ids:
        times = psutil.Process(number).cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def hours_since(began: float) -> float:
    """Return the hours of the history since a time of the monotonic clock."""
    return (time.monotonic() - began) / HOUR_SECONDS


def days_since(began: float) -> float:
    """Return the days of the history since a time of the monotonic clock."""
    return hours_since(began) / DAY_HOURS
