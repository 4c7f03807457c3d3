"""Operators' orders, in sentences."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kquota.formats.records import RecordHeaders, TopicKind, read_event
from kquota.guard.orders import OrderNews, order_news

NOTE = {"Until": "2026-11-20T11:00:00Z", "Reason": "a test", "Actor": "alice"}
BY_BOB: RecordHeaders = (("actor", b"bob"), ("reason", b"done"))


def news(key: str, value: dict[str, Any] | None, headers: RecordHeaders = ()) -> OrderNews | None:
    raw = None if value is None else json.dumps(value).encode()
    topic = TopicKind.ORDERS if key.startswith("relief/") else None
    return order_news(read_event(key.encode(), raw, 1795168800000, topic=topic), headers)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            "hold",
            {"Action": "open", **NOTE},
            "the cluster is held at open until 2026-11-20T11:00:00.000Z by alice (a test)",
        ),
        ("hold", None, "the hold was released by bob (done)"),
        ("quarantine/3", NOTE, "broker 3 is in quarantine until 2026-11-20T11:00:00.000Z by alice (a test)"),
        ("quarantine/3", None, "the quarantine of broker 3 was ended by bob (done)"),
        ("relief/p", NOTE, "relief plan p is in force until 2026-11-20T11:00:00.000Z by alice (a test)"),
        ("relief/p", None, "relief plan p was ended by bob (done)"),
        ("maintenance/3", None, "the maintenance of broker 3 was ended by bob (done)"),
        ("3", None, "broker 3 was decommissioned by bob (done)"),
    ],
)
@pytest.mark.accepts("F12")
def test_an_order_says_what_who_why_and_until_when(
    key: str, value: dict[str, Any] | None, sentence: str
) -> None:
    told = news(key, value, BY_BOB)
    assert told is not None
    assert told.sentence == sentence
    assert told.body["Key"] == key
    assert told.decommission == (key == "3")
    if value is None:
        assert told.body == {"Key": key, "Order": None, "Actor": "bob", "Reason": "done"}


def test_without_headers_nobody_is_named() -> None:
    told = news("3", None)
    assert told is not None
    assert told.sentence == "broker 3 was decommissioned by an unnamed user"


def test_a_header_can_not_forge_a_journal_line() -> None:
    told = news("3", None, (("actor", b"bob\nPAUSE: \x1b[31mred\xff"), ("reason", None)))
    assert told is not None
    assert "\n" not in told.sentence
    assert "\x1b" not in told.sentence


@pytest.mark.parametrize("key", ["1", "hold", "unheard-of", "quarantine/x"])
def test_other_records_are_no_orders(key: str) -> None:
    assert order_news(read_event(key.encode(), b"{"), ()) is None
