"""The Kafka clients of an agent are made together, or not at all."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kquota.formats.records import TopicKind, TopicRecord
from kquota.guard.event_queue import MAX_HELD_BYTES, EventQueue, readable
from kquota.guard.kafka_side import KafkaSide
from kquota.guard.kafka_state import MAX_BYTES_A_CYCLE, KafkaEvent, hand_over, take_portion
from kquota.kafka import reader as reading
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.topic_records import CaughtUp, TopicRestarted, size_bytes
from tests.integration.waiting import eventually
from tests.unit.guard.configured import settings_in
from tests.unit.kafka.scripted import Message, Script

MEBIBYTE = 1_048_576
NOWHERE = ClientProperties({"bootstrap.servers": "127.0.0.1:1"}, node=1)


def client_threads() -> list[str]:
    """The threads of librdkafka and of our clients."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:  # it has just ended
            continue
    ours = [thread.name for thread in threading.enumerate() if thread.name.startswith("kquota-")]
    return [name for name in names if name.startswith("rdk:")] + ours


def test_what_was_read_and_what_happened_to_its_topic_is_gathered_in_its_order(tmp_path: Path) -> None:
    side = KafkaSide(settings_in(tmp_path), 1, None)
    try:
        events = [
            TopicRecord(b"hold", b"lost", 0),
            TopicRestarted("id", "the offset is out of range", same_topic=True),
            TopicRecord(b"1", b"{}", 0),
            CaughtUp(1),
        ]
        for event in events:
            side.queue.put(event)
        assert side.gather(0) == events
        assert side.producer_thread.producer.generation == 1
        side.queue.put(TopicRestarted("id2", "it was created again"))
        side.gather(0)
        eventually(
            lambda: side.producer_thread.producer.generation == 2,
            "a new producer knows nothing of the former",
        )
    finally:
        side.close()


@pytest.mark.accepts("F6")
def test_large_records_are_folded_in_small_portions_and_none_is_lost(tmp_path: Path) -> None:
    side = KafkaSide(settings_in(tmp_path), 1, None)
    try:
        large = b"{" * (MAX_BYTES_A_CYCLE // 4)
        for offset in range(10):
            side.queue.put(TopicRecord(b"%d" % offset, large, 0))
        portions = [[one.key for one in side.gather(0) if isinstance(one, TopicRecord)] for _ in range(4)]
        assert [len(portion) for portion in portions] == [4, 4, 2, 0]
        keys = [key for portion in portions for key in portion]
        assert keys == [b"%d" % offset for offset in range(10)]
    finally:
        side.close()


@pytest.mark.accepts("F6")
@pytest.mark.parametrize("topic", TopicKind)
@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(b"k" * MEBIBYTE, None),
        TopicRecord(b"1", None, headers=(("name", b"v" * MEBIBYTE),)),
        TopicRecord(b"1", None, headers=(("n", b""),) * 10_000),
    ],
    ids=["key", "header", "many headers"],
)
def test_a_portion_counts_all_that_is_large_in_a_record(
    tmp_path: Path, record: TopicRecord, topic: TopicKind
) -> None:
    side = KafkaSide(settings_in(tmp_path), 1, None)
    try:
        for _ in range(30):
            side.queue.put(record._replace(topic=topic))
        assert 1 < len(side.gather(0)) <= -(-MAX_BYTES_A_CYCLE // size_bytes(record)) < 30
    finally:
        side.close()


class Large(Message):
    """A record of a mebibyte."""

    def value(self) -> bytes:
        return super().value().ljust(MEBIBYTE)


@pytest.mark.accepts("F6")
def test_a_reader_waits_for_cycles_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    script, queue, handed_over = Script(), EventQueue[KafkaEvent](), list[KafkaEvent]()
    monkeypatch.setattr(reading, "RotatingClient", script.make)

    def sink(event: KafkaEvent) -> None:
        hand_over(queue, event)
        handed_over.append(event)

    def waiting() -> int:
        return sum(isinstance(event, TopicRecord) for event in handed_over)

    reader = reading.TopicReader(NOWHERE, script, ReadTopic("t", sink))  # type: ignore[arg-type]
    room = MAX_HELD_BYTES // MEBIBYTE
    script.ends = {0: 4 * room}
    reader.start()
    try:
        eventually(lambda: script.assigned, "it begins to read")
        script.say(*(Large(offset) for offset in range(4 * room)))
        assert readable(60.0, queue.urgent), "it waits for room"
        assert waiting() == room - 1, "a record takes a little more than its value"
        taken: list[KafkaEvent] = []

        def caught_up() -> bool:
            taken.extend(take_portion(queue, None))
            return CaughtUp(4 * room) in taken

        eventually(caught_up, "all is read")
        records = [
            event for event in taken[: taken.index(CaughtUp(4 * room))] if isinstance(event, TopicRecord)
        ]
        assert [one.offset for one in records] == list(range(4 * room)), (
            "caught up means that all came before"
        )
        handed_over.clear()
        script.say(*(Large(offset) for offset in range(4 * room, 8 * room)))
        eventually(lambda: waiting() == room - 1, "the inbox is full again")
    finally:
        queue.close()
        reader.close()
    eventually(lambda: script.closed, "a reader that waits for room ends, too")


def test_a_refusal_half_way_leaves_no_client_open(tmp_path: Path) -> None:
    # a refusal of the reader's client alone, when those before it are there
    kafka = {"bootstrap.servers": "127.0.0.1:1", "session.timeout.ms": 400_000}
    settings = settings_in(tmp_path, kafka=kafka)
    before = len(client_threads())
    for _ in range(3):
        with pytest.raises(ConfigurationError, match=r"max\.poll\.interval\.ms"):
            KafkaSide(settings, 1, None)
    eventually(lambda: len(client_threads()) <= before, f"{client_threads()} end")
