"""Operators' orders, in sentences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kquota.formats.records import RecordHeaders, TopicKind, read_event
from kquota.guard.orders import OrderNews, order_news
from tests.unit.wording import say

NOTE = {"Until": "2026-11-20T11:00:00Z", "Reason": "a test", "Actor": "alice"}
BY_BOB: RecordHeaders = (("actor", b"bob"), ("reason", b"done"))


def news(key: str, value: dict[str, Any] | None, headers: RecordHeaders = ()) -> OrderNews | None:
    raw = None if value is None else json.dumps(value).encode()
    topic = TopicKind.ORDERS if key.startswith("relief/") else None
    return order_news(read_event(key.encode(), raw, 1795168800000, topic=topic), headers)


@pytest.mark.parametrize(
    ("key", "value", "name", "fields"),
    [
        ("hold", {"Action": "open", **NOTE}, "hold-given", {"action": "open"}),
        ("hold", None, "hold-released", {}),
        ("quarantine/3", NOTE, "order-given", {"broker": 3, "order": "quarantine"}),
        ("quarantine/3", None, "order-ended", {"broker": 3, "order": "quarantine"}),
        ("relief/p", NOTE, "relief-given", {"plan": "p"}),
        ("relief/p", None, "relief-ended", {"plan": "p"}),
        ("maintenance/3", None, "order-ended", {"broker": 3, "order": "maintenance"}),
        ("3", None, "decommissioned", {"broker": 3}),
    ],
)
@pytest.mark.accepts("F12")
def test_an_order_says_what_who_why_and_until_when(
    key: str, value: dict[str, Any] | None, name: str, fields: dict[str, object]
) -> None:
    told = news(key, value, BY_BOB)
    assert told is not None
    terms = {"actor": "alice", "reason": "a test", "until": "2026-11-20T11:00:00.000Z"}
    by_bob = {"actor": "bob", "reason": "done"}
    assert told.sentence == say(name, **fields, **(terms if value else by_bob))
    assert told.body["Key"] == key
    assert told.decommission == (key == "3")
    if value is None:
        assert told.body == {"Key": key, "Order": None, "Actor": "bob", "Reason": "done"}


def test_without_headers_nobody_is_named() -> None:
    told = news("3", None)
    assert told is not None
    assert told.sentence == say("decommissioned-without-an-author", broker=3)


def test_a_header_can_not_forge_a_journal_line() -> None:
    told = news("3", None, (("actor", b"bob\nPAUSE: \x1b[31mred\xff"), ("reason", None)))
    assert told is not None
    assert "\n" not in told.sentence
    assert "\x1b" not in told.sentence


@pytest.mark.parametrize("key", ["1", "hold", "unheard-of", "quarantine/x"])
def test_other_records_are_no_orders(key: str) -> None:
    assert order_news(read_event(key.encode(), b"{"), ()) is None
