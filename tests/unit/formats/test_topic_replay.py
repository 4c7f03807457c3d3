"""The view while the topic is read again: old records do not pass for the present."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kquota.formats.records import read_event
from kquota.formats.topic_replay import TopicReplay
from kquota.policy.usage import UsageRecord
from kquota.policy.view import FoldResult
from tests.unit.policy.situations import NOW, TOLERANCE, Value, free, raw, usage

LATER = NOW + timedelta(seconds=10)


@pytest.fixture
def reading() -> TopicReplay:
    return TopicReplay(TOLERANCE)


def take(reading: TopicReplay, value: Value, key: str = "1") -> FoldResult:
    return reading.fold(read_event(key, raw(value)), NOW)


def free_gigabytes(reading: TopicReplay, broker_id: int = 1) -> int | None:
    record = reading.view.record_of(broker_id, NOW)
    if not isinstance(record, UsageRecord):
        return None
    return (record.volumes[0].capacity_bytes - record.volumes[0].consumed_bytes) // 10**9


def test_a_first_reading_counts_at_once_older_records_included(reading: TopicReplay) -> None:
    assert reading.target is reading.view
    assert take(reading, usage(free(50), age_seconds=5)) is FoldResult.USAGE
    assert take(reading, usage(free(60), age_seconds=50)) is FoldResult.USAGE
    assert free_gigabytes(reading) == 60
    reading.reached_end(NOW)
    assert free_gigabytes(reading) == 60
    assert take(reading, usage(free(70), age_seconds=-31)) is FoldResult.FUTURE


def test_the_same_topic_read_again_makes_a_view_of_its_own_until_its_end(reading: TopicReplay) -> None:
    take(reading, usage(free(50), age_seconds=5))
    take(reading, usage(free(20)), key="2")
    before = reading.view
    reading.begin_again(same_topic=True)
    assert reading.view is before is not reading.target
    assert take(reading, usage(free(60), age_seconds=50)) is FoldResult.USAGE, "an older record, read again"
    assert free_gigabytes(reading) == 50
    reading.reached_end(NOW)
    assert free_gigabytes(reading) == 60
    assert free_gigabytes(reading, 2) == 20, "the new view has no word of it"
    assert reading.target is reading.view
    assert take(reading, usage(free(40), age_seconds=50)) is FoldResult.USAGE
    assert free_gigabytes(reading) == 40


def test_the_new_view_has_the_cluster_and_the_brokers_of_the_former(reading: TopicReplay) -> None:
    reading.know("ours", frozenset({1, 2}))
    reading.begin_again(same_topic=True)
    target = reading.target
    assert (target.cluster_id, target.listed) == ("ours", frozenset({1, 2}))
    assert target.future_tolerance == TOLERANCE
    assert take(reading, usage(free(60), ClusterId="another")) is FoldResult.MALFORMED
    reading.know("another", frozenset({3}))
    for view in (reading.view, reading.target):
        assert (view.cluster_id, view.listed) == ("another", frozenset({3}))
    reading.know(None, None)
    assert (reading.view.cluster_id, reading.view.listed) == (None, frozenset())


def test_a_topic_that_was_created_again_reverts_nothing(reading: TopicReplay) -> None:
    take(reading, usage(free(50), age_seconds=5))
    before = reading.view
    reading.begin_again(same_topic=False)
    assert reading.target is reading.view is before
    assert take(reading, usage(free(60), age_seconds=50)) is FoldResult.SUPERSEDED
    assert free_gigabytes(reading) == 50
    assert take(reading, usage(free(55), age_seconds=5)) is FoldResult.USAGE, "as old as the known one"
    assert take(reading, usage(free(70), age_seconds=4)) is FoldResult.USAGE
    assert take(reading, usage(free(30), age_seconds=50), key="2") is FoldResult.USAGE, "the first of its key"
    assert take(reading, None) is FoldResult.TOMBSTONE, "it has no time to compare"
    assert free_gigabytes(reading) is None


def test_at_the_end_of_a_new_topic_older_records_count_again(reading: TopicReplay) -> None:
    take(reading, usage(free(50), age_seconds=5))
    reading.begin_again(same_topic=False)
    reading.reached_end(NOW)
    assert take(reading, usage(free(60), age_seconds=50)) is FoldResult.USAGE
    assert free_gigabytes(reading) == 60


def test_records_from_the_future_are_judged_at_the_end_by_the_time_of_the_end(reading: TopicReplay) -> None:
    take(reading, usage(free(50)))
    reading.begin_again(same_topic=True)
    take(reading, usage(free(70), age_seconds=-35))
    reading.reached_end(LATER)  # its time has come by then, so that the former one need not stand in
    record = reading.view.record_of(1, LATER)
    assert isinstance(record, UsageRecord)
    assert record.snapshot_at == NOW + timedelta(seconds=35)
    assert free_gigabytes(reading) is None
