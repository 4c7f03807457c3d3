"""An event of another thread, or an alarm, ends the wait at once; nothing else does."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty

import pytest

from kquota.formats.records import REGULAR, TopicRecord
from kquota.guard.event_queue import EventQueue, readable
from kquota.guard.kafka_side import KafkaSide
from kquota.guard.pace import REST_FROM_NEWS_SECONDS
from tests.integration.waiting import eventually
from tests.unit.guard.configured import settings_in

LONG_SECONDS = 60.0


@pytest.fixture
def alarm() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def waited(queue: EventQueue[str], timeout_seconds: float, alarm: int | None = None) -> float:
    began = time.monotonic()
    queue.wait(timeout_seconds, alarm)
    return time.monotonic() - began


def test_events_come_out_in_their_order() -> None:
    queue: EventQueue[str] = EventQueue()
    for event in "abc":
        queue.put(event)
    assert [queue.get_nowait() for _ in range(3)] == list("abc")
    with pytest.raises(Empty):
        queue.get_nowait()


def test_an_event_of_another_thread_ends_the_wait() -> None:
    queue: EventQueue[str] = EventQueue()
    thread = threading.Timer(0.05, queue.put, ["news"])
    thread.start()
    assert waited(queue, LONG_SECONDS) < LONG_SECONDS / 2
    assert queue.get_nowait() == "news"
    thread.join()


def test_what_is_left_of_earlier_events_ends_the_next_wait() -> None:
    queue: EventQueue[str] = EventQueue()
    queue.put("first")
    queue.put("second")
    queue.wait(LONG_SECONDS)
    assert queue.get_nowait() == "first"
    assert waited(queue, LONG_SECONDS) < LONG_SECONDS / 2


def test_an_event_that_was_taken_out_ends_no_wait() -> None:
    queue: EventQueue[str] = EventQueue()
    queue.put("news")
    queue.wait(0)
    queue.get_nowait()
    waited(queue, 0)
    assert waited(queue, 0.2) >= 0.19


def test_a_report_that_is_news_ends_a_long_rest_and_a_regular_one_does_not(tmp_path: Path) -> None:
    """Its partition is read from another thread, so a rest may have begun before it comes."""

    def gathered(rest_seconds: float, *reports: TopicRecord) -> tuple[float, list[bytes]]:
        put = threading.Timer(0.02, lambda: [side.put_report(one) for one in reports])
        put.start()
        began = time.monotonic()
        gathered = side.gather(0.0, rest_seconds=rest_seconds)
        keys = [one.key or b"" for one in gathered if isinstance(one, TopicRecord)]
        took = time.monotonic() - began
        put.join()
        return took, keys

    regular, news = TopicRecord(b"1", b"{}", headers=(REGULAR,)), TopicRecord(b"2", b"{}")
    side = KafkaSide(settings_in(tmp_path), 1, None)
    try:
        took, keys = gathered(0.5, regular)
        assert took >= 0.49, "a regular report waits for the end of the rest"
        assert keys == [b"1"]
        took, keys = gathered(LONG_SECONDS, regular, news)
        assert REST_FROM_NEWS_SECONDS <= took < LONG_SECONDS / 2
        assert sorted(keys) == [b"1", b"2"], "one turn takes both"
        took, _ = gathered(0.5, regular)
        assert took >= 0.49, "news that were taken out end no other rest"
    finally:
        side.close()


def writer_of(queue: EventQueue[str], *events: tuple[str, int]) -> threading.Thread:
    """Another thread that hands over events of these sizes; the inbox counts as urgent once it waits."""

    def write() -> None:
        for event, size_bytes in events:
            queue.put(event, size_bytes)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def test_what_has_a_size_waits_for_room_and_nothing_else_does() -> None:
    queue: EventQueue[str] = EventQueue(10)
    queue.put("larger than the bound", 11)
    thread = writer_of(queue, ("next", 4), ("one more", 6), ("last", 1))
    assert readable(LONG_SECONDS, queue.urgent), "a writer that waits ends a rest"
    queue.put("without a size")
    assert [queue.get_nowait() for _ in range(2)] == ["larger than the bound", "without a size"]
    taken: list[str] = []

    def took_out(event: str) -> bool:
        try:
            taken.append(queue.get_nowait())
        except Empty:
            return False
        return taken[-1] == event

    eventually(lambda: took_out("last"), "all come, in their order")
    assert taken == ["next", "one more", "last"]
    thread.join()


def test_no_thread_waits_for_room_in_an_inbox_that_is_closed() -> None:
    queue: EventQueue[str] = EventQueue(10)
    thread = writer_of(queue, ("first", 10), ("in vain", 10), ("another", 1))
    assert readable(LONG_SECONDS, queue.urgent)
    queue.close()
    thread.join(LONG_SECONDS)
    assert not thread.is_alive()
    assert queue.get_nowait() == "first"
    with pytest.raises(Empty):
        queue.get_nowait()


def test_what_is_left_for_the_next_cycle_counts_as_urgent() -> None:
    queue: EventQueue[str] = EventQueue()
    queue.leave_the_rest()
    assert not readable(0, queue.urgent)
    queue.put("news")
    queue.leave_the_rest()
    assert readable(0, queue.urgent)


def test_an_alarm_ends_the_wait(alarm: tuple[int, int]) -> None:
    queue: EventQueue[str] = EventQueue()
    assert waited(queue, 0.1, alarm[0]) >= 0.09
    os.write(alarm[1], b"now\n")
    assert waited(queue, LONG_SECONDS, alarm[0]) < LONG_SECONDS / 2


def test_an_alarm_ends_a_rest_and_an_event_does_not(tmp_path: Path, alarm: tuple[int, int]) -> None:
    side = KafkaSide(settings_in(tmp_path), 1, None)
    try:
        side.queue.put(side.queue)  # type: ignore[arg-type]
        began = time.monotonic()
        side.gather(0.3, rest_seconds=0.3, alarm=alarm[0])
        rested = time.monotonic() - began
        os.write(alarm[1], b"now\n")
        began = time.monotonic()
        side.gather(LONG_SECONDS, rest_seconds=LONG_SECONDS, alarm=alarm[0])
        alarmed = time.monotonic() - began
    finally:
        side.close()
    assert rested >= 0.29
    assert alarmed < LONG_SECONDS / 2
