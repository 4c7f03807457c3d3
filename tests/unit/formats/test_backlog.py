"""Reading a backlog from its end: records settled by a later one are not even read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kquota.formats.records import TopicRecord
from kquota.formats.topic_replay import read_backlog
from kquota.policy.events import UsageEvent
from kquota.policy.view import ClusterView
from tests.unit.policy.situations import NOW, TOLERANCE, Value, free, order, raw, usage

PRESENT = usage(free(50))
AT_THE_TOLERANCE = usage(free(50), age_seconds=-30)
FUTURE = usage(free(50), age_seconds=-30.001)


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ([PRESENT, PRESENT], [False, True]),
        ([PRESENT, AT_THE_TOLERANCE], [False, True]),
        ([PRESENT, None], [False, True]),
        ([PRESENT, FUTURE], [True, True]),
        ([PRESENT, b"garbage"], [True, True]),
        ([PRESENT, usage(free(50), ClusterId="another")], [True, True]),
        ([PRESENT, usage(free(50), ClusterId="ours")], [False, True]),
        ([PRESENT, PRESENT, FUTURE], [False, True, True]),
    ],
)
def test_only_what_can_still_count_is_read(values: list[Value], read: list[bool]) -> None:
    view = ClusterView(TOLERANCE, cluster_id="ours")
    events = read_backlog([TopicRecord(b"1", raw(value)) for value in values], view, NOW)
    assert [event is not None for event in events] == read


def test_each_key_is_settled_by_itself_and_the_order_stays() -> None:
    records = [
        TopicRecord(b"1", raw(PRESENT)),
        TopicRecord(b"2", raw(PRESENT)),
        TopicRecord(b"1", raw(FUTURE)),
        TopicRecord(b"hold", raw(order(Action="open"))),
    ]
    events = read_backlog(records, ClusterView(TOLERANCE), NOW)
    assert None not in events
    assert [event.broker_id for event in events if isinstance(event, UsageEvent)] == [1, 2, 1]


def of(instance: str | None, **fields: object) -> Value:
    return usage(free(50), **fields) if instance is None else usage(free(50), InstanceId=instance, **fields)


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ([of("a"), of("a")], [False, True]),
        ([of("a"), of("b")], [True, True]),  # two agents for one broker: both count
        ([of("a"), of("b"), of("a")], [False, True, True]),
        ([of("a"), of("a"), of("b")], [False, True, True]),
        ([of(None), of("a")], [False, True]),
        ([of("a"), of(None)], [True, True]),
        ([of("a"), None, of("b")], [False, True, True]),
        ([b"garbage", of("a")], [False, True]),  # it names no instance
        ([None, of("a")], [True, True]),  # a tombstone is settled by nothing but another
        ([of("ä"), of("ä")], [True, True]),  # JSON's escapes: not worth decoding, it is read instead
    ],
)
def test_a_record_is_settled_by_a_later_one_of_its_instance(values: list[Value], read: list[bool]) -> None:
    records = [TopicRecord(b"1", raw(value)) for value in values]
    events = read_backlog(records, ClusterView(TOLERANCE), NOW)
    assert [event is not None for event in events] == read


def test_bytes_that_are_no_text_name_an_instance_of_their_own() -> None:
    records = [TopicRecord(b"1", b'{"InstanceId": "\xff"}'), TopicRecord(b"1", raw(of("a")))]
    events = read_backlog(records, ClusterView(TOLERANCE), NOW)
    assert [event is not None for event in events] == [True, True]


def test_a_record_keeps_when_the_topic_took_it_in() -> None:
    (event,) = read_backlog([TopicRecord(b"1", raw(PRESENT), 1_700_000_000_000)], ClusterView(TOLERANCE), NOW)
    assert isinstance(event, UsageEvent)
    assert event.record.appended_at == datetime.fromtimestamp(1_700_000_000, UTC)
