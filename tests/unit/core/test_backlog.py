"""Reading a backlog from its end: what a later record has settled is not even read."""

from __future__ import annotations

import pytest

from kquota.core.backlog import read_backlog
from kquota.core.records import UsageEvent
from kquota.core.view import ClusterView
from tests.unit.core.situations import NOW, TOLERANCE, Value, free, order, raw, usage

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
    events = read_backlog([(b"1", raw(value), None) for value in values], view, NOW)
    assert [event is not None for event in events] == read


def test_each_key_is_settled_by_itself_and_the_order_stays() -> None:
    records = [
        (b"1", raw(PRESENT), None),
        (b"2", raw(PRESENT), None),
        (b"1", raw(FUTURE), None),
        (b"hold", raw(order(Action="open")), None),
    ]
    events = read_backlog(records, ClusterView(TOLERANCE), NOW)
    assert None not in events
    assert [event.broker_id for event in events if isinstance(event, UsageEvent)] == [1, 2, 1]
