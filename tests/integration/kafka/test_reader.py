"""Reading the topic: everything from the beginning, whatever happens to the topic meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from kquota.formats.records import TopicRecord
from kquota.guard.event_queue import EventQueue, readable
from kquota.guard.kafka_state import KafkaEvent, hand_over, take_portion
from kquota.kafka.admin import AdminConnection, TopicFacts
from kquota.kafka.config import ClientProperties
from kquota.kafka.errors import Kind
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.operator_producer import Published, publish_operator_record
from kquota.kafka.producer import ProducerThread
from kquota.kafka.publisher import UsagePublisher
from kquota.kafka.reader import TopicReader
from kquota.kafka.topic_check import TopicCheck
from kquota.kafka.topic_records import CaughtUp, PartitionsChanged, ReadingFailed, TopicRestarted
from kquota.kafka.topics import Verdict, usage_topic
from testbed.loopback.clients import create_topic, delete_topic
from testbed.loopback.cluster import KafkaCluster
from tests.integration.kafka.conftest import AGENT, PATIENCE_SECONDS, Seen, read_all
from tests.integration.kafka.raw_producer import append
from tests.integration.waiting import eventually

Close = Callable[[Any], Any]
COMPACT = {"cleanup.policy": "compact", "compression.type": "uncompressed"}


@pytest.fixture
def writer(secured: KafkaCluster) -> Producer:
    more = {"partitioner": "murmur2", "message.max.bytes": "40000000", "log_level": 0}
    return Producer({**secured.client_configuration(AGENT), **more})


def write(writer: Producer, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> None:
    for key, value in records:
        writer.produce(topic, key=key, value=value)
    assert writer.flush(PATIENCE_SECONDS) == 0


def start_reading(properties: ClientProperties, topic: str, admin: AdminConnection, close: Close) -> Seen:
    seen = Seen()
    close(TopicReader(properties, admin, ReadTopic(topic, seen, topic_interval_seconds=0.3))).start()
    return seen


def topic_id(admin: AdminConnection, topic: str) -> str:
    facts = admin.describe_topic(topic).result()
    assert isinstance(facts, TopicFacts)
    return facts.topic_id


def test_records_whose_header_names_are_not_utf_8_cost_a_reader_no_other_record(
    secured: KafkaCluster,
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    topic_name: str,
    closing: Close,
) -> None:
    create_topic(super_admin, topic_name, [[1, 2]], COMPACT)
    hostile = ((b"\xff\xfe", b"1"),)
    records = [
        (b"%d" % number, b"a record", hostile if number % 5 == 3 else ((b"name", b"1"),))
        for number in range(500)
    ]
    append(secured.client_configuration(AGENT), topic_name, records)
    _, seen = read_all(properties, topic_name, admin, closing)
    assert [record.key for record in seen.of(TopicRecord)] == [key for key, _, _ in records]
    assert [event.records for event in seen.of(CaughtUp)] == [500]
    kept = [tuple((name.encode(), value) for name, value in one.headers) for one in seen.of(TopicRecord)]
    assert kept == [() if headers is hostile else headers for _, _, headers in records]


@pytest.mark.accepts("A16")
def test_a_new_reader_has_everything_that_was_written_and_then_what_comes(
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    writer: Producer,
    topic_name: str,
    closing: Close,
) -> None:
    create_topic(super_admin, topic_name, [[1, 2], [2, 1], [1, 2]], COMPACT)
    written = [(str(number % 20).encode(), str(number).encode()) for number in range(500)]
    write(writer, topic_name, written)
    _, seen = read_all(properties, topic_name, admin, closing)
    assert sorted(seen.values) == sorted(value for _, value in written)
    assert [event.partitions for event in seen.of(PartitionsChanged)] == [3]
    assert [event.records for event in seen.of(CaughtUp)] == [500]
    for partition in range(3):
        offsets = [record.offset for record in seen.of(TopicRecord) if record.partition == partition]
        assert offsets == list(range(len(offsets)))
    headers = [("Actor", b"me"), ("Reason", b"it is gone")]
    published = publish_operator_record(properties, topic_name, b"7", None, headers, PATIENCE_SECONDS)
    assert isinstance(published, Published)
    eventually(lambda: seen.latest[b"7"] is None, "the tombstone is handed over")
    tombstone = seen.of(TopicRecord)[-1]
    assert (tombstone.partition, tombstone.offset) == (published.partition, published.offset)
    assert tombstone.headers == tuple(headers)
    assert tombstone.appended_ms is not None
    assert published.appended_ms is None, "the topic has its writers' times"
    assert abs(tombstone.appended_ms / 1000 - time.time()) < 60
    assert seen.trouble is None


@pytest.mark.accepts("A16")
def test_the_state_is_rebuilt_after_compaction(
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    writer: Producer,
    topic_name: str,
    closing: Close,
) -> None:
    settings = {**usage_topic().settings, "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    create_topic(super_admin, topic_name, [[1, 2]], settings)
    written = [(str(number % 4).encode(), b"%d" % number) for number in range(40)]
    for number in range(0, 40, 4):
        write(writer, topic_name, written[number : number + 4])
        time.sleep(0.15)
    last = {key: value for key, value in written if key != b"3"} | {b"3": None}
    write(writer, topic_name, [(b"3", None)])

    def compacted() -> Seen | None:
        time.sleep(0.2)
        reader, seen = read_all(properties, topic_name, admin, closing)
        reader.close()
        assert seen.latest == last
        # The last segment is never compacted; of the others one record a key is left.
        return seen if len(seen.values) <= 9 else None

    found = eventually(compacted, "the log cleaner has compacted the topic", PATIENCE_SECONDS)
    offsets = [record.offset for record in found.of(TopicRecord)]
    assert offsets == sorted(set(offsets))
    assert offsets[0] > 0


@pytest.mark.accepts("F9")
def test_a_topic_deleted_and_created_again_is_read_from_its_new_beginning(
    secured: KafkaCluster,
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    topic_name: str,
    closing: Close,
) -> None:
    check = TopicCheck(admin, usage_topic(topic_name), settle_seconds=0)
    assert check.look().status is Verdict.CREATED
    publisher = UsagePublisher(closing(ProducerThread(properties, lifetime_seconds=5)), topic_name)
    seen = start_reading(properties, topic_name, admin, closing)

    def deliver(value: bytes) -> None:
        def delivered() -> bool:
            before = publisher.state().delivered
            publisher.publish(b"1", value)
            publisher.flush(PATIENCE_SECONDS)  # one may be given up before a busy broker has answered
            return publisher.state().delivered > before

        eventually(delivered, f"{value!r} is delivered")

    for number in range(3):
        deliver(b"old %d" % number)
    eventually(lambda: seen.values[-1:] == [b"old 2"] and seen.caught_up, "the old topic is read")
    old_id = topic_id(admin, topic_name)
    # Its leaders' epochs are above those of the next topic, which librdkafka would take for old news.
    leader = super_admin.list_topics(topic_name).topics[topic_name].partitions[0].leader
    secured.nodes[leader].stop()
    secured.restart(leader)
    deliver(b"old 3")
    eventually(lambda: seen.values[-1:] == [b"old 3"], "the old topic is read after its leader's restart")

    delete_topic(super_admin, topic_name)
    eventually(lambda: seen.trouble, "the reader misses the topic")

    def missed() -> int:
        publisher.publish(b"1", b"while it was away")
        publisher.flush(PATIENCE_SECONDS)
        return publisher.state().errors[Kind.TOPIC_MISSING]

    eventually(missed, "the publisher misses the topic")
    # The broker creates missing topics, but not for us: the topic must not come back as any topic.
    absent = TopicCheck(admin, usage_topic(topic_name), create=False)
    eventually(lambda: absent.look().status is Verdict.ABSENT, "both brokers have heard of its end")

    eventually(lambda: check.look().status is Verdict.CREATED, "it is created again")
    # More records than the old topic had: only the topic's id shows that it is another one.
    for number in range(6):
        deliver(b"new %d" % number)
    eventually(lambda: seen.values[-1] == b"new 5", "the new topic is read to its end")
    restarts = seen.of(TopicRestarted)
    assert [event.topic_id for event in restarts] == [topic_id(admin, topic_name)]
    assert restarts[0].topic_id != old_id
    everything = seen.of(object)
    after = everything[everything.index(restarts[0]) :]
    offsets = [record.offset for record in after if isinstance(record, TopicRecord)]
    assert offsets == list(range(len(offsets)))
    assert b"new 0" in [record.value for record in after if isinstance(record, TopicRecord)]
    eventually(lambda: seen.trouble is None, "the reader is content again")


def test_partitions_that_are_added_are_read_too(
    secured: KafkaCluster,
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    writer: Producer,
    topic_name: str,
    closing: Close,
) -> None:
    create_topic(super_admin, topic_name, [[1, 2]], COMPACT)
    write(writer, topic_name, [(b"1", b"first")])
    _, seen = read_all(properties, topic_name, admin, closing)
    super_admin.create_partitions([NewPartitions(topic_name, 3)])[topic_name].result(PATIENCE_SECONDS)
    eventually(lambda: [e.partitions for e in seen.of(PartitionsChanged)] == [1, 3], "the growth is noticed")
    newcomer = Producer({**secured.client_configuration(AGENT), "log_level": 0})
    for partition in range(3):
        newcomer.produce(topic_name, key=b"1", value=b"to %d" % partition, partition=partition)
    assert newcomer.flush(PATIENCE_SECONDS) == 0
    eventually(lambda: len(seen.values) == 4, "all partitions are read")
    assert set(seen.values) == {b"first", b"to 0", b"to 1", b"to 2"}
    assert not seen.of(TopicRestarted)


@pytest.mark.accepts("F6")
def test_oversized_records_neither_stop_nor_stall_the_reader(
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    writer: Producer,
    topic_name: str,
    closing: Close,
) -> None:
    create_topic(super_admin, topic_name, [[1]], {**COMPACT, "max.message.bytes": "40000000"})
    _, seen = read_all(properties, topic_name, admin, closing)
    sizes = [10, 12_000_000, 10, 2_000_000, 6_000_000, 10]
    for number, size in enumerate(sizes):
        write(writer, topic_name, [(b"%d" % number, b"x" * size)])
    eventually(lambda: len(seen.values) == len(sizes), "all records are handed over")
    assert [len(value or b"") for value in seen.values] == sizes
    # A new reader gets past them as well.
    _, again = read_all(properties, topic_name, admin, closing)
    assert [len(value or b"") for value in again.values] == sizes


@pytest.mark.accepts("F6")
def test_a_reader_that_waits_for_room_goes_on_where_it_was(
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    writer: Producer,
    topic_name: str,
    closing: Close,
) -> None:
    create_topic(super_admin, topic_name, [[1, 2]], COMPACT)
    write(writer, topic_name, [(b"%d" % number, bytes(700_000)) for number in range(40)])
    queue: EventQueue[KafkaEvent] = EventQueue(2_000_000)
    reader = closing(TopicReader(properties, admin, ReadTopic(topic_name, partial(hand_over, queue))))
    closing(queue)
    reader.start()
    assert readable(PATIENCE_SECONDS, queue.urgent), "it waits for room"
    portions: list[list[KafkaEvent]] = []

    def has_caught_up() -> bool:
        portions.append(list(take_portion(queue, None)))
        return CaughtUp(40) in portions[-1]

    eventually(has_caught_up, "the reader has caught up")
    records = [[one for one in portion if isinstance(one, TopicRecord)] for portion in portions]
    assert max(len(portion) for portion in records) <= 3, (
        "the next one may take the place of one that was taken"
    )
    assert [one.offset for portion in records for one in portion] == list(range(40))
    assert not [one for portion in portions for one in portion if isinstance(one, ReadingFailed)]


def test_a_receiver_that_fails_does_not_end_the_reading(
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    writer: Producer,
    topic_name: str,
    closing: Close,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create_topic(super_admin, topic_name, [[1, 2]], COMPACT)
    seen = Seen()

    def fragile(what: Any) -> None:
        seen(what)
        if isinstance(what, TopicRecord) and what.value == b"a":
            raise ValueError("a mistake in the receiver")

    reader = closing(TopicReader(properties, admin, ReadTopic(topic_name, fragile)))
    reader.start()
    write(writer, topic_name, [(b"1", b"a"), (b"1", b"b")])
    eventually(lambda: seen.values == [b"a", b"b"], "the record after the mistake is handed over")
    assert "a mistake in the receiver" in caplog.text


def test_closing_is_quick(
    properties: ClientProperties, admin: AdminConnection, super_admin: AdminClient, topic_name: str
) -> None:
    create_topic(super_admin, topic_name, [[1, 2]], COMPACT)
    took_seconds = []
    for _ in range(3):
        seen = Seen()
        reader = TopicReader(properties, admin, ReadTopic(topic_name, seen))
        reader.start()
        eventually(lambda seen=seen: seen.caught_up, "the reader has caught up")
        begun = time.monotonic()
        reader.close()
        took_seconds.append(time.monotonic() - begun)
        eventually(
            lambda: "kquota-reader" not in {thread.name for thread in threading.enumerate()},
            "its thread has ended",
        )
    # The promise of two seconds bounds a supervisor's patience, not this machine's speed.
    assert min(took_seconds) < 2


def test_a_partition_without_a_leader_keeps_nobody_from_the_others(
    secured: KafkaCluster,
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    writer: Producer,
    topic_name: str,
    closing: Close,
) -> None:
    create_topic(super_admin, topic_name, [[1], [2]], COMPACT)
    _, seen = read_all(properties, topic_name, admin, closing)

    def write_to(partition: int, value: bytes) -> None:
        writer.produce(topic_name, key=b"1", value=value, partition=partition)
        assert writer.flush(PATIENCE_SECONDS) == 0

    for partition in (0, 1):
        write_to(partition, b"before %d" % partition)
    eventually(lambda: len(seen.values) == 2, "both partitions are read")
    secured.nodes[2].stop()
    try:
        check = TopicCheck(admin, usage_topic(topic_name))
        verdict = eventually(
            lambda: (found := check.look()) and "leaders" in found.problems and found,
            "the check sees no leader",
        )
        assert "have no leader" in verdict.sentence
        assert verdict.usable
        for number in range(3):
            write_to(0, b"during %d" % number)
        eventually(lambda: len(seen.values) == 5, "the partition with a leader is read")
        # A new reader knows that it does not know everything.
        late_seen = Seen()
        late = closing(TopicReader(properties, admin, ReadTopic(topic_name, late_seen)))
        late.start()
        eventually(lambda: len(late_seen.values) == 4, "a new reader has what can be had")
        assert not late_seen.caught_up
    finally:
        secured.restart(2)
    eventually(lambda: late_seen.caught_up, "the new reader has the rest")
    newcomer = Producer({**secured.client_configuration(AGENT), "log_level": 0})
    newcomer.produce(topic_name, key=b"1", value=b"after", partition=1)
    assert newcomer.flush(PATIENCE_SECONDS) == 0
    eventually(lambda: b"after" in seen.values and b"after" in late_seen.values, "both readers go on")
    assert not seen.of(TopicRestarted)
