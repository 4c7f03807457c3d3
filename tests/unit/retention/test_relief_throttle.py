"""Replication that fills a full volume, and the option that slows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.retention.inflow import (
    HOLD_SECONDS,
    SLOWEST_BYTES_PER_SECOND,
    THROTTLED_RATE,
    THROTTLED_REPLICAS,
    Inflow,
    throttle_rate,
    with_replicas,
)
from kquota.retention.relief import Situation, StepKind
from kquota.retention.relief_moves import replayed
from kquota.retention.relief_plan import plan_from_document, planned
from kquota.retention.relief_throttle import throttle
from tests.unit.policy.clusters import bounded
from tests.unit.retention.test_relief import WEEK, daily, situation
from tests.unit.retention.test_relief_plan import PLAN

MB = 10**6
NONE = str(2**63 - 1)


def filled(replication: Mapping[str, int], free_bytes: int = HOLD_SECONDS * MB, **other: object) -> Situation:
    base = situation(daily("visits"), daily("orders"), rules={"pay": WEEK, "__x": WEEK})
    inflow = Inflow(1, free_bytes, replication, {}, {})
    return replace(base, protected=("pay",), inflow=replace(inflow, **other))  # type: ignore[arg-type]


def steps(base: Situation) -> list[tuple[str, str | None, str | None, str | None]]:
    option = throttle(base)
    found = () if option is None else option.steps
    return [(step.target, step.setting, step.source, step.destination) for step in found]


def test_exactly_the_replicas_that_fill_the_volume_are_slowed() -> None:
    base = filled({"visits-5": 3 * MB, "visits-3": MB, "orders-1": MB})
    assert steps(base) == [
        ("orders", THROTTLED_REPLICAS, "", "1:1"),
        ("visits", THROTTLED_REPLICAS, "", "3:1,5:1"),
        ("1", THROTTLED_RATE, NONE, str(MB)),
    ]
    option = throttle(base)
    assert option is not None
    assert (option.kind, option.enough, option.frees_bytes) == (StepKind.THROTTLE, False, 0)
    assert replayed(base, option.steps).steps == option.steps
    plan = replace(PLAN, steps=planned(option, {}))
    assert tuple(one.to_step() for one in plan_from_document(plan.to_document()).steps) == option.steps


@pytest.mark.accepts("G16")
def test_internal_and_protected_topics_and_unknown_ones_are_not_slowed() -> None:
    assert steps(filled({"__x-0": 9 * MB, "pay-1": 9 * MB, "gone-1": 9 * MB})) == []


def test_nothing_is_slowed_that_would_not_fill_the_volume_within_a_day() -> None:
    assert steps(filled({"visits-0": MB})) == []
    assert steps(filled({"visits-0": MB + 1})) != []
    assert steps(filled({})) == []
    assert steps(replace(filled({"visits-0": 9 * MB}), inflow=None)) == []
    assert steps(replace(filled({"visits-0": 9 * MB}), to_free_bytes=0)) == []


def test_throttles_of_others_are_kept_in_the_lists_and_a_lower_rate_counts() -> None:
    base = filled({"visits-5": 3 * MB}, throttled={"visits": "0:2,5:9"}, throttle=5 * MB)
    assert steps(base) == [
        ("visits", THROTTLED_REPLICAS, "0:2,5:9", "0:2,5:9,5:1"),
        ("1", THROTTLED_RATE, str(5 * MB), str(MB)),
    ]
    assert steps(filled({"visits-5": 3 * MB}, throttle=MB)) == [("visits", THROTTLED_REPLICAS, "", "5:1")]
    assert steps(filled({"visits-5": 3 * MB}, throttled={"visits": "*"}, throttle=MB)) == []


def test_the_time_until_a_volume_is_full_counts_copies_too() -> None:
    inflow = Inflow(1, 100, {"a-0": 5}, {"b-0": 15}, {})
    assert (inflow.bytes_per_second, inflow.full_seconds) == (20, 5)
    assert replace(inflow, replication={}, copies={}).full_seconds is None


@given(free_bytes=st.integers(0, 10**15))
@bounded(50)
def test_a_throttled_volume_is_not_full_before_a_day_unless_the_throttle_is_the_slowest(
    free_bytes: int,
) -> None:
    rate = throttle_rate(Inflow(1, free_bytes, {}, {}, {}))
    assert rate == SLOWEST_BYTES_PER_SECOND or rate * HOLD_SECONDS <= free_bytes


@given(
    present=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), unique=True, max_size=5),
    partitions=st.sets(st.integers(0, 9)),
)
@bounded(50)
def test_a_list_keeps_what_it_has_and_names_each_replica_once(
    present: list[tuple[int, int]], partitions: set[int]
) -> None:
    text = ",".join(f"{partition}:{broker_id}" for partition, broker_id in present)
    found = with_replicas(text, partitions, 1).split(",") if text or partitions else []
    assert found[: len(present)] == (text.split(",") if text else [])
    assert set(found) == {f"{one}:{of}" for one, of in present} | {f"{one}:1" for one in partitions}
    assert len(found) == len(set(found))
