"""Keys and values of the usage topic: which record means what."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from kquota.formats.records import broker_key, order_key, read_event
from kquota.formats.strict_json import ParsedJson
from kquota.policy.events import (
    BrokerOrder,
    BrokerOrderEvent,
    Hold,
    HoldAction,
    HoldEvent,
    IgnoredEvent,
    MalformedEvent,
    OrderTerms,
    TombstoneEvent,
    UsageEvent,
)
from tests.unit.policy.situations import NOW, free, order, raw, usage

USAGE = raw(usage(free(50)))


@pytest.mark.parametrize("broker_id", [0, 1, 42, 2**31 - 1])
@pytest.mark.parametrize("as_text", [True, False])
def test_the_key_of_a_usage_record_is_the_broker_id_as_decimal_text(broker_id: int, as_text: bool) -> None:
    key = broker_key(broker_id) if as_text else broker_key(broker_id).encode()
    event = read_event(key, USAGE)
    assert isinstance(event, UsageEvent)
    assert event.broker_id == broker_id


@pytest.mark.accepts("A31")
@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"01",
        b"-1",
        b"+1",
        b" 1",
        b"1 ",
        b"1\n",
        b"1.0",
        b"0x1",
        b"1_0",
        b"2147483648",
        b"99999999999999999999",
        b"\xff",
        "\u0661".encode(),
        "\uff11".encode(),
        b"broker-1",
        b"Hold",
        b"hold/1",
        b"quarantine",
        b"quarantine/",
        b"quarantine/01",
        b"quarantine/-1",
        b"quarantine/2147483648",
        b"maintenance/x",
        b"quarantine/1/2",
    ],
)
@pytest.mark.parametrize("value", [USAGE, None, b"garbage"])
def test_keys_that_are_neither_a_broker_id_nor_ours_are_ignored(
    key: bytes | None, value: bytes | None
) -> None:
    assert isinstance(read_event(key, value), IgnoredEvent)


@pytest.mark.accepts("A31", "F11")
def test_only_an_absent_value_is_a_tombstone() -> None:
    assert read_event(b"1", None) == TombstoneEvent(1)
    removed_at = datetime(2026, 11, 20, 10, 0, 0, 500_000, tzinfo=UTC)
    appended_ms = round(removed_at.timestamp() * 1000)
    assert read_event(b"1", None, appended_ms) == TombstoneEvent(1, appended_at=removed_at)
    for value in (b"", b"null", "null", ParsedJson(None), b" "):
        event = read_event(b"1", value)
        assert isinstance(event, MalformedEvent)
        assert (event.broker_id, event.key) == (1, "1")


@pytest.mark.parametrize("action", HoldAction)
def test_a_hold_says_what_until_when_why_and_who(action: HoldAction) -> None:
    event = read_event(b"hold", raw(order(Action=action.value)))
    note = OrderTerms(NOW + timedelta(seconds=60), "a test", "alice")
    assert event == HoldEvent(Hold(action, note))
    assert read_event(b"hold", json.dumps(Hold(action, note).to_document())) == event


@pytest.mark.parametrize("kind", BrokerOrder)
def test_an_order_about_one_broker_carries_its_id_in_the_key(kind: BrokerOrder) -> None:
    note = OrderTerms(NOW + timedelta(seconds=60), "a test", "alice")
    assert read_event(order_key(kind, 7), raw(order())) == BrokerOrderEvent(kind, 7, note)
    assert read_event(order_key(kind, 7), raw(note.to_document())) == BrokerOrderEvent(kind, 7, note)
    assert read_event(order_key(kind, 7), None) == BrokerOrderEvent(kind, 7, None)


def test_a_tombstone_releases_a_hold() -> None:
    assert read_event(b"hold", None) == HoldEvent(None)


@pytest.mark.accepts("F26")
def test_unknown_fields_of_an_order_are_ignored() -> None:
    assert read_event(b"quarantine/1", raw(order(Ticket="X-1"))) == read_event(b"quarantine/1", raw(order()))


def test_reason_and_actor_may_be_absent_and_are_made_fit_to_print() -> None:
    event = read_event(b"quarantine/1", raw({"Until": "2026-11-20T10:16:00Z", "Actor": "a\nb\x1b"}))
    assert isinstance(event, BrokerOrderEvent)
    assert event.note is not None
    assert (event.note.reason, event.note.actor) == ("", "a\ufffdb\ufffd")
