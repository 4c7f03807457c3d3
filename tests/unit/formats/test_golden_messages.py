"""The golden samples of the messages: schema and core accept and refuse the same, with these words."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from kquota.formats.records import (
    DECOMMISSION_KEY,
    HOLD_KEY,
    TopicKind,
    decommission_key,
    order_key,
    read_event,
    relief_key,
)
from kquota.formats.usage_format import parse_usage, usage_to_document
from kquota.policy.events import BrokerOrder, Event, MalformedEvent, OrderEvent, UsageEvent
from tests.unit.policy.golden import SCHEMAS, Sample, complaints, each, refused_by_schema, samples, validator
from tests.unit.wording import wording

REFUSALS = wording("refusals")
APPENDED_MS = round(datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC).timestamp() * 1000)
# An invalid limit is no malformed record: it makes the broker undetermined.
INVALID_LIMITS = {
    "limit-type-unknown",
    "limit-type-in-lower-case",
    "limit-type-empty",
    "limit-level-negative",
    "limit-level-of-bytes-negative",
    "limit-level-far-beyond-64-bits",
    "limit-percentage-above-100",
    "limit-level-beyond-64-bits",
    "limits-in-the-wrong-order",
    "limits-of-consumed-space-in-the-wrong-order",
    "volume-limit-type-unknown",
    "volume-limit-percentage-above-100",
    "volume-limit-not-after-the-soft-one-of-all",
    "inodes-negative",
    "inodes-percentage-above-100",
}


def order_of(golden: Sample) -> tuple[str, str]:
    """Return the key in the topic and the schema's definition: the file's name begins with the kind."""
    kind = golden.name.split("-", 1)[0]
    if kind == HOLD_KEY:
        return HOLD_KEY, "hold"
    if kind == DECOMMISSION_KEY:
        return decommission_key(7), "decommission"
    if kind == "relief":
        return relief_key("a-plan"), "relief"
    return order_key(BrokerOrder(kind), 7), "order_about_a_broker"


@pytest.mark.parametrize("kind", ["usage", "operator", "decision", "history", "relief", "topics", "status"])
def test_each_schema_is_itself_valid_and_says_what_it_is(kind: str) -> None:
    schema = validator(kind).schema
    assert isinstance(schema, dict)
    assert schema["$id"] == f"urn:kquota:schema:{kind}:1"
    assert schema["title"]
    assert schema["description"]


@pytest.mark.accepts("A22", "A23")
@each("usage", "valid")
def test_a_valid_usage_record_is_accepted_by_schema_and_core(golden: Sample) -> None:
    text = golden.text
    assert complaints("usage", json.loads(text)) == []
    event = read_event("1", text)
    assert isinstance(event, UsageEvent)
    assert event.record.invalid_limit is None


@pytest.mark.accepts("A22")
@each("usage", "valid")
def test_what_the_core_writes_again_is_valid_and_reads_the_same(golden: Sample) -> None:
    record = parse_usage(golden.text)
    document = usage_to_document(record)
    assert complaints("usage", document) == []
    again = parse_usage(json.dumps(document))
    assert again.volumes == record.volumes
    assert (again.hard, again.soft, again.cluster_id) == (record.hard, record.soft, record.cluster_id)


def refusal_of_usage(golden: Sample) -> str | None:
    """Return why the core can't use a usage record, and whether it is malformed or has an invalid limit."""
    event = read_event("1", golden.text)
    if isinstance(event, MalformedEvent):
        assert golden.name not in INVALID_LIMITS
        assert (event.broker_id, event.key) == (1, "1")
        return event.problem
    assert isinstance(event, UsageEvent)
    assert golden.name in INVALID_LIMITS
    if "inodes" not in golden.name:
        assert event.record.volumes[0].headroom() is None
    return event.record.invalid_limit


@pytest.mark.accepts("A2", "A22", "A23", "A31", "F5", "F6")
@each("usage", "invalid")
def test_an_invalid_usage_record_is_refused_by_schema_and_core(golden: Sample) -> None:
    assert refused_by_schema("usage", golden.text)
    assert refusal_of_usage(golden) == REFUSALS["usage"][golden.name]


@pytest.mark.accepts("A2", "A23", "A29", "A31", "F5", "F6")
@each("usage", "beyond")
def test_a_usage_record_that_no_schema_can_refuse_is_refused_by_the_core(golden: Sample) -> None:
    assert refusal_of_usage(golden) == REFUSALS["usage"][golden.name]


@each("operator", "valid")
def test_a_valid_order_is_accepted_by_schema_and_core(golden: Sample) -> None:
    text = golden.text
    key, definition = order_of(golden)
    assert complaints("operator", json.loads(text), definition) == []
    assert not isinstance(read_event(key, text), MalformedEvent)


@pytest.mark.accepts("F5")
@each("operator", "invalid")
def test_an_invalid_order_is_refused_by_schema_and_core(golden: Sample) -> None:
    text = golden.text
    key, definition = order_of(golden)
    assert refused_by_schema("operator", text, definition)
    assert read_event(key, text) == MalformedEvent(None, key, REFUSALS["operator"][golden.name])


def of_the_orders_topic(golden: Sample) -> tuple[list[str], Event]:
    """Return what the schema has against a sample, and what it is for readers of the orders topic."""
    text = golden.text
    key, definition = order_of(golden)
    document = json.loads(text)
    found = [*complaints("operator", document, definition), *complaints("operator", document, "bounds")]
    return found, read_event(key, text, APPENDED_MS, None, TopicKind.ORDERS)


@each("orders", "valid")
def test_a_valid_order_of_the_orders_topic_is_accepted_by_schema_and_core(golden: Sample) -> None:
    found, event = of_the_orders_topic(golden)
    assert found == []
    assert isinstance(event, OrderEvent)


@pytest.mark.accepts("F5", "G11")
@each("orders", "invalid")
def test_an_invalid_order_of_the_orders_topic_is_refused_by_schema_and_core(golden: Sample) -> None:
    found, event = of_the_orders_topic(golden)
    assert found
    assert event == MalformedEvent(None, order_of(golden)[0], REFUSALS["orders"][golden.name])


@pytest.mark.accepts("G11")
@each("orders", "beyond")
def test_an_order_for_too_long_is_refused_by_the_core(golden: Sample) -> None:
    _, event = of_the_orders_topic(golden)
    assert event == MalformedEvent(None, order_of(golden)[0], REFUSALS["orders"][golden.name])


def test_the_words_of_refusals_are_those_of_samples() -> None:
    groups = {"usage": ["invalid", "beyond"], "operator": ["invalid"], "orders": ["invalid", "beyond"]}
    for kind, verdicts in groups.items():
        assert REFUSALS[kind].keys() == {one.name for verdict in verdicts for one in samples(kind, verdict)}


@each("history", "valid")
def test_a_valid_history_record_is_accepted_with_its_body(golden: Sample) -> None:
    document = golden.document
    assert complaints("history", document) == []
    if document["Kind"] == "usage":
        assert parse_usage(json.dumps(document["Body"])).invalid_limit is None
    if document["Kind"] == "operator" and document["Body"]["Order"] is not None:
        event = read_event(document["Body"]["Key"], json.dumps(document["Body"]["Order"]))
        assert not isinstance(event, MalformedEvent)


@each("history", "invalid")
def test_an_invalid_history_record_is_refused(golden: Sample) -> None:
    assert refused_by_schema("history", golden.text)


def test_every_kind_of_history_has_a_sample() -> None:
    kinds = {one.document["Kind"] for one in samples("history", "valid")}
    schema = json.loads((SCHEMAS / "history.schema.json").read_text("utf-8"))
    assert kinds == set(schema["properties"]["Kind"]["enum"])
