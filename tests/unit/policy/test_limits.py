"""Limits: three types, exact bytes, and the headroom between soft and hard."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import pytest

from kquota.policy.decision import State
from kquota.policy.limits import MAX_BYTES, InvalidLimit, Limit, LimitPair, LimitType, exact_number
from tests.unit.policy.golden import SCHEMAS
from tests.unit.policy.situations import GB

CAPACITY = 100 * GB
TYPES = "ConsumedSpace, MinFreeBytes, MinFreePercentage"
UP_TO_BYTES = f"between 0 and {MAX_BYTES}"
UP_TO_HUNDRED = "between 0 and 100"
CONSUMED, FREE, PERCENT = LimitType.CONSUMED_SPACE, LimitType.MIN_FREE_BYTES, LimitType.MIN_FREE_PERCENTAGE
# soft and hard of each type at the same places of a 100 GB volume: 80 GB and 90 GB consumed
PAIRS = {
    "ConsumedSpace": LimitPair(Limit.of(CONSUMED, 80 * GB), Limit.of(CONSUMED, 90 * GB)),
    "MinFreeBytes": LimitPair(Limit.of(FREE, 20 * GB), Limit.of(FREE, 10 * GB)),
    "MinFreePercentage": LimitPair(Limit.of(PERCENT, 20), Limit.of(PERCENT, 10)),
    "soft in percent, hard in bytes": LimitPair(Limit.of(PERCENT, 20), Limit.of(FREE, 10 * GB)),
    "soft in bytes, hard consumed": LimitPair(Limit.of(FREE, 20 * GB), Limit.of(CONSUMED, 90 * GB)),
}


@pytest.mark.accepts("A2")
def test_the_limit_types_are_exactly_three() -> None:
    assert {kind.value for kind in LimitType} == {"ConsumedSpace", "MinFreeBytes", "MinFreePercentage"}


@pytest.mark.parametrize("schema", ["usage", "limits"])
def test_the_schemas_know_the_same_types_and_which_are_percentages(schema: str) -> None:
    limit = json.loads((SCHEMAS / f"{schema}.schema.json").read_text("utf-8"))["$defs"]["limit"]
    assert limit["properties"]["type"]["enum"] == list(LimitType)
    assert [limit["if"]["properties"]["type"]["const"]] == [one for one in LimitType if one.in_percent]


@pytest.mark.accepts("A3", "A4", "A5", "A24")
@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(
    ("consumed_bytes", "state", "headroom"),
    [
        (0, State.OPEN, Fraction(1)),
        (80 * GB - 1, State.OPEN, Fraction(1)),
        (80 * GB, State.OPEN, Fraction(1)),  # at the soft limit: not breached
        (80 * GB + 1, State.THROTTLE, 1 - Fraction(1, 10 * GB)),
        (85 * GB, State.THROTTLE, Fraction(1, 2)),
        (90 * GB - 1, State.THROTTLE, Fraction(1, 10 * GB)),
        (90 * GB, State.PAUSE, Fraction(0)),  # at the hard limit: breached
        (90 * GB + 1, State.PAUSE, Fraction(0)),
        (CAPACITY, State.PAUSE, Fraction(0)),
    ],
)
def test_soft_begins_above_its_level_and_hard_at_its_level(
    kind: str, consumed_bytes: int, state: State, headroom: Fraction
) -> None:
    found = PAIRS[kind].bounds(CAPACITY).headroom(consumed_bytes)
    assert (State.of_headroom(found), found) == (state, headroom)


@pytest.mark.accepts("A7")
@pytest.mark.parametrize(
    ("free_bytes", "headroom"),
    [
        (20 * GB, Fraction(1)),
        (15 * GB, Fraction(1, 2)),
        (12 * GB, Fraction(1, 5)),
        (10 * GB, Fraction(0)),
        (9_900_000_000, Fraction(0)),
    ],
)
def test_the_closer_to_the_hard_limit_the_smaller_the_headroom(free_bytes: int, headroom: Fraction) -> None:
    assert PAIRS["MinFreeBytes"].bounds(CAPACITY).headroom(CAPACITY - free_bytes) == headroom


@pytest.mark.accepts("A5")
def test_a_percentage_is_of_the_capacity_and_exact() -> None:
    bounds = LimitPair(Limit.of(PERCENT, 20), Limit.of(PERCENT, 10)).bounds(7)
    assert (bounds.soft_bytes, bounds.hard_bytes) == (Fraction(56, 10), Fraction(63, 10))
    assert bounds.headroom(6) == Fraction(3, 7)


@pytest.mark.accepts("A2")
@pytest.mark.parametrize(
    ("type_name", "level", "key", "allowed"),
    [
        ("MaxUsed", 1, "type 'MaxUsed'", TYPES),
        ("minfreebytes", 1, "type 'minfreebytes'", TYPES),
        (None, 1, "type None", TYPES),
        ("MinFreeBytes", -1, "level -1", f"bytes {UP_TO_BYTES}"),
        ("ConsumedSpace", -0.5, "level -0.5", f"bytes {UP_TO_BYTES}"),
        ("ConsumedSpace", MAX_BYTES + 1, f"level {MAX_BYTES + 1}", f"bytes {UP_TO_BYTES}"),
        ("MinFreePercentage", -1, "level -1", f"percentage {UP_TO_HUNDRED}"),
        ("MinFreePercentage", 100.1, "level 100.1", f"percentage {UP_TO_HUNDRED}"),
        (
            "MinFreePercentage",
            Decimal("100.0000000000000000001"),
            "level 100",
            f"percentage {UP_TO_HUNDRED}",
        ),
        ("MinFreeBytes", "10", "level '10'", f"number {UP_TO_BYTES}"),
        ("MinFreeBytes", True, "level True", f"number {UP_TO_BYTES}"),
        ("MinFreeBytes", None, "level None", f"number {UP_TO_BYTES}"),
        ("MinFreeBytes", float("nan"), "level nan", f"number {UP_TO_BYTES}"),
        ("MinFreeBytes", float("inf"), "level inf", f"number {UP_TO_BYTES}"),
        ("MinFreeBytes", Decimal("1E+999999"), "level ", f"number {UP_TO_BYTES}"),
    ],
)
def test_a_limit_out_of_range_is_refused_with_what_is_allowed(
    type_name: object, level: object, key: str, allowed: str
) -> None:
    with pytest.raises(InvalidLimit) as refused:
        Limit.parse({"type": type_name, "level": level})
    assert str(refused.value).startswith(key)
    assert str(refused.value).endswith(allowed)


@pytest.mark.accepts("A2")
@pytest.mark.parametrize(
    ("type_name", "level"),
    [
        ("MinFreePercentage", 0),
        ("MinFreePercentage", 100),
        ("MinFreePercentage", 12.5),
        ("MinFreeBytes", 0),
        ("ConsumedSpace", MAX_BYTES),
    ],
)
def test_a_level_at_the_end_of_its_range_is_a_limit(type_name: str, level: float) -> None:
    assert Limit.parse({"type": type_name, "level": level}).to_document() == {
        "type": type_name,
        "level": level,
    }


@pytest.mark.accepts("A29")
@pytest.mark.parametrize(
    ("kind", "soft", "hard"),
    [
        (CONSUMED, 90, 80),
        (CONSUMED, 80, 80),
        (FREE, 10, 20),
        (FREE, 10, 10),
        (PERCENT, 5, 15),
        (PERCENT, 5, 5),
    ],
)
def test_of_one_type_soft_must_be_reached_before_hard(kind: LimitType, soft: int, hard: int) -> None:
    than = "less" if kind is CONSUMED else "more"
    with pytest.raises(InvalidLimit, match=rf"^soft limit {kind.value} {soft} .* {than} than .*, {hard}$"):
        LimitPair(Limit.of(kind, soft), Limit.of(kind, hard))


@pytest.mark.accepts("A24", "A29")
def test_limits_of_two_types_may_cross_on_one_volume_and_not_on_another() -> None:
    pair = LimitPair(Limit.of(PERCENT, 15), Limit.of(FREE, 10 * GB))
    assert pair.bounds(100 * GB).has_throttle_zone
    assert not pair.bounds(50 * GB).has_throttle_zone


@pytest.mark.accepts("A29")
@pytest.mark.parametrize("soft_free_percent", [10, 5])  # equal to the hard limit in bytes, and beyond it
def test_without_a_zone_there_is_open_below_hard_and_pause_from_hard_on(soft_free_percent: int) -> None:
    bounds = LimitPair(Limit.of(PERCENT, soft_free_percent), Limit.of(FREE, 10 * GB)).bounds(CAPACITY)
    assert not bounds.has_throttle_zone
    assert [bounds.headroom(90 * GB + delta) for delta in (-1, 0, 1)] == [1, 0, 0]


def test_a_limit_that_asks_for_more_than_the_volume_has_is_always_breached() -> None:
    bounds = LimitPair(Limit.of(FREE, 200 * GB), Limit.of(FREE, 150 * GB)).bounds(CAPACITY)
    assert bounds.headroom(0) == 0


def test_a_hard_limit_above_the_capacity_is_never_reached() -> None:
    bounds = LimitPair(Limit.of(CONSUMED, 80 * GB), Limit.of(CONSUMED, 180 * GB)).bounds(CAPACITY)
    assert bounds.headroom(CAPACITY) == Fraction(4, 5)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.1, Fraction(1, 10)),
        (Decimal("12.5"), Fraction(25, 2)),
        (Decimal("1E+3"), Fraction(1000)),
        (2**63 - 1, Fraction(2**63 - 1)),
        (Decimal("9223372036854775807"), Fraction(2**63 - 1)),
        (True, None),
        ("1", None),
        (None, None),
        (10**4000, None),
        (Decimal("1E+999999999"), None),
        (Decimal("1E-999999999"), None),
        (Decimal("NaN"), None),
        (Decimal("-Infinity"), None),
        (Decimal("0." + "1" * 41), None),
    ],
)
def test_numbers_are_exact_and_of_a_sane_size(value: object, number: Fraction | None) -> None:
    assert exact_number(value) == number


def test_a_limit_says_its_unit() -> None:
    assert [str(pair.soft) for pair in PAIRS.values()][:3] == [
        "ConsumedSpace 80000000000 bytes",
        "MinFreeBytes 20000000000 bytes",
        "MinFreePercentage 20 %",
    ]
