"""The Kafka clients of an agent are made together, or not at all."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kquota.daemon.kafka_side import MAX_BYTES_A_CYCLE, KafkaSide
from kquota.fold.records import TopicRecord, TopicRestarted
from kquota.kafka.config import ConfigurationError
from tests.integration.waiting import eventually
from tests.unit.daemon.configured import settings_in


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


def test_what_came_before_the_log_was_read_again_is_not_folded_beside_it(tmp_path: Path) -> None:
    side = KafkaSide(settings_in(tmp_path), 1, None)
    try:
        for event in (
            TopicRecord(0, 9, 0, b"hold", b"lost"),
            TopicRestarted("id", "the offset is out of range", same_topic=True),
            TopicRecord(0, 0, 0, b"1", b"{}"),
        ):
            side.inbox.put(event)
        assert [arrival.key for arrival in side.gather(0)] == [b"1"]
        assert side.outlet.producer.generation == 1
        for event in (TopicRecord(0, 9, 0, b"1", b"{}"), TopicRestarted("id2", "it was created again")):
            side.inbox.put(event)
        assert [arrival.key for arrival in side.gather(0)] == [b"1"], "a new topic takes nothing back"
        eventually(lambda: side.outlet.producer.generation == 2, "a new producer knows nothing of the former")
    finally:
        side.close()


@pytest.mark.accepts("F6")
def test_large_records_are_folded_in_small_portions_and_none_is_lost(tmp_path: Path) -> None:
    side = KafkaSide(settings_in(tmp_path), 1, None)
    try:
        large = b"{" * (MAX_BYTES_A_CYCLE // 4)
        for offset in range(10):
            side.inbox.put(TopicRecord(0, offset, 0, b"%d" % offset, large))
        portions = [[arrival.key for arrival in side.gather(0)] for _ in range(4)]
        assert [len(portion) for portion in portions] == [4, 4, 2, 0]
        keys = [key for portion in portions for key in portion]
        assert keys == [b"%d" % offset for offset in range(10)]
    finally:
        side.close()


def test_a_refusal_half_way_leaves_no_client_open(tmp_path: Path) -> None:
    # a refusal of the reader's client alone, when those before it are there
    kafka = {"bootstrap.servers": "127.0.0.1:1", "session.timeout.ms": 400_000}
    settings = settings_in(tmp_path, kafka=kafka)
    before = len(client_threads())
    for _ in range(3):
        with pytest.raises(ConfigurationError, match=r"max\.poll\.interval\.ms"):
            KafkaSide(settings, 1, None)
    eventually(lambda: len(client_threads()) <= before, f"{client_threads()} end")
