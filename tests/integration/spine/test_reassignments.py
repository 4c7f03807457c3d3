"""Partitions are moved to a volume that fills: before a PAUSE and in it, to the end and cancelled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Node, TopicCollection

from bench.ledger.audit import Promise, audit
from bench.ledger.campaign import await_records
from bench.ledger.producers import Kind, LedgerProducer, compiled
from bench.ledger.reader import read_all
from bench.loads import Client, Delivery, JavaLoadClass
from testbed.loopback.clients import admin_client, create_topic, offsets_by_partition
from testbed.loopback.plug_in import FENCE_PROPERTIES
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB
from tests.integration.spine.fleet import QUICK, Fleet, min_free
from tests.integration.spine.reassign_tool import ReassignTool
from tests.integration.waiting import at_rest, eventually

HARD_FREE_BYTES, SOFT_FREE_BYTES = 300 * MIB, 310 * MIB
VISITS_BYTES, LATE_BYTES, RECORD_BYTES = 192 * MIB, 16 * MIB, 50_000
COPY_BYTES_PER_SECOND = 2_000_000
"""So slow that the copy goes on for a minute and a half: growth in a PAUSE is logged after half of one."""
FULL = 3
MOVED = ("visits-0", "visits-1")


def _ids(nodes: Iterable[Node]) -> list[int]:
    return sorted(node.id for node in nodes)


@dataclass
class Movers:
    """Three brokers, topics on the first two of them, and Kafka's tool for moves."""

    fleet: Fleet
    tool: ReassignTool
    java: JavaLoadClass

    def writer(self, topic: str, partitions: int, rate_bytes: float, record_bytes: int) -> LedgerProducer:
        return LedgerProducer(
            Kind(Client.LIBRDKAFKA, Delivery.IDEMPOTENT),
            self.fleet.cluster,
            self.java,
            rate_bytes,
            {},
            topic=topic,
            partitions=partitions,
            record_bytes=record_bytes,
        )

    def write(self, topic: str, partitions: int, size_bytes: int) -> LedgerProducer:
        """Give a topic that many bytes; returns the producer, which has ended."""
        producer = self.writer(topic, partitions, 50e6, RECORD_BYTES)
        records = size_bytes // RECORD_BYTES
        eventually(lambda: self.records(topic) >= records, f"{topic} is written", 180)
        producer.ask_to_stop()
        producer.stopped()
        return producer

    def records(self, topic: str) -> int:
        admin = admin_client(self.fleet.cluster.client_configuration())
        return sum(offsets_by_partition(admin, topic).values())

    def replicas(self, topic: str) -> dict[str, tuple[list[int], list[int]]]:
        """The brokers of each partition, and those in sync."""
        admin = admin_client(self.fleet.cluster.client_configuration())
        (future,) = admin.describe_topics(TopicCollection([topic])).values()
        return {
            f"{topic}-{one.id}": (_ids(one.replicas), _ids(one.isr)) for one in future.result(30).partitions
        }

    def copies(self, topic: str) -> list[str]:
        """Directories of a topic on the volume that fills, those that are being deleted among them."""
        (log_dir,) = self.fleet.cluster.nodes[FULL].layout.log_dirs
        return sorted(path.name for path in log_dir.glob(f"{topic}-*"))


@pytest.fixture(scope="module")
def movers(
    kafka_runtime: KafkaRuntime, callback_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Movers]:
    properties = {
        **FENCE_PROPERTIES,
        "log.segment.delete.delay.ms": "1000",
        "log.initial.task.delay.ms": "1000",
    }
    with Fleet(
        kafka_runtime,
        callback_jar,
        dict.fromkeys((1, 2, FULL), 1),
        settings=QUICK | {"limits": min_free(hard_bytes=HARD_FREE_BYTES, soft_bytes=SOFT_FREE_BYTES)},
        properties=properties,
    ) as fleet:
        for agent in fleet.of():
            agent.start()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        tool = ReassignTool.of(kafka_runtime, tmp_path_factory.mktemp("kafka") / "bin", fleet.cluster)
        java = compiled(kafka_runtime, fleet.cluster.path)
        yield Movers(fleet, tool, java)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.accepts("F54")
def test_moves_to_a_volume_that_fills_hold_the_pause_until_they_are_cancelled(movers: Movers) -> None:
    fleet, tool, agent = movers.fleet, movers.tool, movers.fleet.agents[FULL]
    admin = admin_client(fleet.cluster.client_configuration())
    create_topic(admin, "visits", [[1, 2]] * len(MOVED))
    create_topic(admin, "late", [[1, 2]])
    create_topic(admin, "flow", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    producers = {
        "visits": movers.write("visits", len(MOVED), VISITS_BYTES),
        "late": movers.write("late", 1, LATE_BYTES),
        "flow": movers.writer("flow", 3, 50_000.0, 1_000),
    }
    await_records([producers["flow"]])
    fleet.disk(FULL).fill(leave_bytes=SOFT_FREE_BYTES + LATE_BYTES + 14 * MIB)
    at_rest(lambda: agent.state, "the broker has seen it")
    assert agent.state == "OPEN"
    marks = fleet.marks()

    # Begun before the PAUSE, which it leads to, and goes on in.
    begun = {name: [1, 3] for name in MOVED}
    tool.execute(begun, COPY_BYTES_PER_SECOND)
    fleet.await_enforced("PAUSE", timeout_seconds=120)
    held = at_rest(lambda: movers.records("flow"), "what was authorized before is appended")
    growing = f"volume {fleet.disk(FULL).device} of broker {FULL} goes on growing in PAUSE"
    told = eventually(lambda: agent.told("topics that grow: visits", since=marks[FULL]), "it is named", 120)
    assert growing in told[0][1]
    # Both have the same throttle: within some seconds it may let one of them through alone.
    assert re.search(r"replication fills volume .*: it gets replicas of visits-[01]", agent.order("explain"))

    # Begun in the PAUSE, and finished in it.
    tool.execute({"late-0": [1, 3]})
    eventually(lambda: movers.replicas("late") == {"late-0": ([1, 3], [1, 3])}, "it is moved", 120)
    assert tool.reassigned() == set(MOVED), "the other one goes on"
    assert [one.applied_state for one in fleet.of()] == ["PAUSE"] * 3
    assert movers.records("flow") == held

    # Cancelled in the PAUSE: what was copied is deleted, and there is room again.
    tool.cancel(begun)
    assert tool.reassigned() == set()
    eventually(lambda: movers.copies("visits") == [], "what was copied is deleted", 120)
    fleet.await_enforced("OPEN", timeout_seconds=120)
    tool.verify(begun)
    assert movers.replicas("visits") == dict.fromkeys(MOVED, ([1, 2], [1, 2]))
    eventually(lambda: agent.told(f"over: {growing}", since=marks[FULL]), "its end is logged")
    for one in fleet.of():
        passed = one.states_passed(marks[one.broker_id])
        # Files go one by one: a look may fall between two of them.
        assert passed in (["THROTTLE", "PAUSE", *between, "OPEN"] for between in ([], ["THROTTLE"])), passed
    await_records([producers["flow"]])
    producers["flow"].ask_to_stop()
    producers["flow"].stopped()
    for topic, producer in producers.items():
        partitions = len(movers.replicas(topic))
        found = read_all(fleet.cluster.client_configuration(), topic, partitions)
        account = audit(topic, producer.book(), found)
        print(topic, account)
        assert account.broken(Promise.EXACTLY_ONCE) == {}, topic
