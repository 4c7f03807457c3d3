"""Thresholds of topics: valid sums, and the golden samples that the broker reads as well."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.quotas.topic_thresholds import (
    RATE_ALLOWED,
    InvalidThresholds,
    TopicThresholds,
    parse_rate,
    parse_thresholds,
    thresholds_to_document,
)
from tests.unit.policy.golden import Sample, complaints, each, refused_by_schema


@pytest.mark.accepts("D1")
@each("topics", "valid")
def test_a_valid_file_is_accepted_by_schema_and_core_and_written_again(golden: Sample) -> None:
    text = golden.text
    assert complaints("topics", json.loads(text)) == []
    thresholds = parse_thresholds(text)
    again = thresholds_to_document(thresholds)
    assert complaints("topics", again) == []
    assert parse_thresholds(json.dumps(again)) == thresholds


@each("topics", "invalid")
def test_an_invalid_file_is_refused_by_schema_and_core(golden: Sample) -> None:
    text = golden.text
    assert refused_by_schema("topics", text)
    with pytest.raises(InvalidThresholds):
        parse_thresholds(text)


def test_a_file_may_begin_with_a_byte_order_mark_as_for_the_broker() -> None:
    text = '{"schema_version":1,"total.bytes.in.per.sec.threshold":100,"topics":{}}'
    assert parse_thresholds(b"\xef\xbb\xbf" + text.encode()) == parse_thresholds("\ufeff" + text)
    assert parse_thresholds("\ufeff" + text) == parse_thresholds(text)


@pytest.mark.accepts("D2", "D3")
def test_a_change_that_does_not_add_up_is_rejected() -> None:
    figures = TopicThresholds(100, {"A": 40, "B": 20})
    assert figures.rest_bytes_per_second == 40
    assert figures.with_topic("A", 80).rest_bytes_per_second == 0
    with pytest.raises(InvalidThresholds, match="add up to 101, allowed is at most the total of 100"):
        figures.with_topic("A", 81)
    with pytest.raises(InvalidThresholds, match="add up to 60"):
        figures.with_total(59)
    assert figures.without_topic("A") == TopicThresholds(100, {"B": 20})


@pytest.mark.accepts("D2")
@given(
    total=st.integers(0, 1000),
    topics=st.dictionaries(st.sampled_from("ABCDEF"), st.integers(0, 400), max_size=6),
)
def test_thresholds_are_there_only_if_they_add_up(total: int, topics: dict[str, int]) -> None:
    if sum(topics.values()) > total:
        with pytest.raises(InvalidThresholds):
            TopicThresholds(total, topics)
    else:
        thresholds = TopicThresholds(total, topics)
        assert thresholds.rest_bytes_per_second + sum(topics.values()) == total


@pytest.mark.parametrize(
    ("text", "bytes_per_second"),
    [
        ("0", 0),
        ("81", 81),
        ("2M", 2_000_000),
        ("1.5M", 1_500_000),
        ("2Mi", 2 * 2**20),
        ("1Ti", 2**40),
        (" 4K ", 4000),
        (f"{2**63 - 1}", 2**63 - 1),
    ],
)
def test_a_rate_is_a_number_with_a_unit(text: str, bytes_per_second: int) -> None:
    assert parse_rate(text) == bytes_per_second


@pytest.mark.parametrize(
    "text", ["", "M", "-1", "1.5", "2MB", "2m", "2 M", "1e6", "9223372036854775808", "9" * 19 + "T"]
)
def test_anything_else_is_refused_and_says_what_is_allowed(text: str) -> None:
    with pytest.raises(InvalidThresholds, match=r"40Mi \(2\^20\)"):
        parse_rate(text)


def test_a_key_twice_is_refused() -> None:
    with pytest.raises(InvalidThresholds, match="same key twice"):
        parse_thresholds('{"schema_version": 1, "schema_version": 1, "total.bytes.in.per.sec.threshold": 1}')


VALID = {
    "schema_version": 1,
    "total.bytes.in.per.sec.threshold": 9,
    "topics": {"a": {"bytes.in.per.sec.threshold": 4}},
}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"schema_version": 2}, "schema_version is 2, allowed is 1"),
        (
            {"Total": 1},
            "there is no key Total in the document, allowed are schema_version, topics,"
            " total.bytes.in.per.sec.threshold",
        ),
        ({"topics": []}, "topics is no JSON object"),
        ({"topics": {"a\n": 7}}, "topics.a\ufffd is no JSON object"),
        (
            {"total.bytes.in.per.sec.threshold": "9"},
            f"total.bytes.in.per.sec.threshold is '9', {RATE_ALLOWED}",
        ),
        (
            {"topics": {"a": {"bytes.in.per.sec.threshold": None}}},
            f"topics.a.bytes.in.per.sec.threshold is None, {RATE_ALLOWED}",
        ),
        ({"total.bytes.in.per.sec.threshold": -1}, f"total.bytes.in.per.sec.threshold is -1, {RATE_ALLOWED}"),
        (
            {"topics": {"a b": {"bytes.in.per.sec.threshold": 1}}},
            "'a b' is no name of a topic: allowed are letters, digits and . _ -",
        ),
    ],
)
def test_a_file_that_can_not_be_used_says_which_key_and_what_is_allowed(
    change: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InvalidThresholds) as refused:
        parse_thresholds(json.dumps(VALID | change))
    assert str(refused.value) == sentence


def test_no_document_is_refused() -> None:
    with pytest.raises(InvalidThresholds, match=r"^the document is no JSON object$"):
        parse_thresholds("[]")
