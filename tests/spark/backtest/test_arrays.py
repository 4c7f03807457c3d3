"""The closed loop on arrays gives what the core decides, volume by volume, on random fleets."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota_pipeline.backtest.closed_loop import simulate
from kquota_pipeline.backtest.thresholds import Thresholds, bound_of
from tests.spark.backtest.closed_loop_by_core import simulate_by_core
from tests.spark.backtest.scenes import random_scene

FLEETS = 16


def states(factors: np.ndarray) -> np.ndarray:
    return np.where(factors >= 1, 2, np.where(factors > 0, 1, 0))


def compare(number: int) -> Counter[str]:
    """Compare one random fleet under all of its policies; return how often something happened."""
    scene, flows, policies = random_scene(number)
    held = np.empty((len(scene.ticks), len(scene.volumes), len(policies)))

    def watch(tick: int, places: object, consumed: np.ndarray) -> None:
        held[tick][:, places] = consumed

    outcome = simulate(scene, flows, policies, watch)
    seen: Counter[str] = Counter()
    for place, policy in enumerate(policies):
        course = simulate_by_core(scene, flows, policy)
        where = f"fleet {number}, {policy}"
        np.testing.assert_array_equal(
            states(outcome.factors[:, place]), states(course.factors), err_msg=where
        )
        np.testing.assert_allclose(outcome.factors[:, place], course.factors, rtol=1e-9, err_msg=where)
        np.testing.assert_array_equal(outcome.undetermined[:, place], course.undetermined, err_msg=where)
        np.testing.assert_allclose(held[:, :, place], course.consumed_bytes, atol=1e-4, err_msg=where)
        np.testing.assert_allclose(outcome.held_bytes[:, place], course.held_bytes, atol=1e-4, err_msg=where)
        assert outcome.lost_bytes[place] == pytest.approx(course.lost_bytes, abs=1e-3), where
        tallies = zip(
            *(getattr(outcome, name)[:, place] for name in ("paused", "slowed", "unlisted", "by_cluster")),
            strict=True,
        )
        assert [tuple(map(int, tally)) for tally in tallies] == [
            tuple(map(int, tally)) for tally in course.tallies
        ], where
        seen += Counter(f"{policy.scope} {state}" for state in states(outcome.factors[:, place]).tolist())
        seen[f"{policy.fallback_action} undetermined"] += int(course.undetermined.sum())
        seen["held by topic"] += sum(tally.slowed + tally.paused for tally in course.tallies)
    return seen


def test_arrays_decide_as_the_core_does_on_random_fleets() -> None:
    seen: Counter[str] = Counter()
    for number in range(FLEETS):
        seen += compare(number)
    assert all(seen[f"{scope} {state}"] > 100 for scope in ("cluster", "volume") for state in range(3)), seen
    assert all(seen[f"{action} undetermined"] for action in ("pause", "open", "bounded")), seen
    assert seen["held by topic"] > 100


limits = st.one_of(
    st.builds(Limit.of, st.just(LimitType.MIN_FREE_PERCENTAGE), st.fractions(0, 100, max_denominator=60)),
    st.builds(Limit.of, st.just(LimitType.MIN_FREE_BYTES), st.integers(0, 2000)),
    st.builds(Limit.of, st.just(LimitType.CONSUMED_SPACE), st.fractions(0, 2000, max_denominator=7)),
)


@given(
    soft=limits,
    hard=limits,
    capacity=st.integers(1, 1000) | st.integers(10**13, 10**13 + 1000),
    share=st.integers(-3, 1000),
)
def test_whole_bytes_are_over_a_bound_exactly_where_the_core_says_so(
    soft: Limit, hard: Limit, capacity: int, share: int
) -> None:
    try:
        pair = LimitPair(soft=soft, hard=hard)
    except ValueError:
        return
    bounds, thresholds = pair.bounds(capacity), Thresholds(1, 1)
    thresholds.set(0, [bound_of(pair, capacity)])
    near = [bounds.soft_bytes, bounds.hard_bytes]
    for consumed in {capacity * share // 1000, *(round(one) + step for one in near for step in (-1, 0, 1))}:
        if not 0 <= consumed <= capacity:
            continue
        exact = bounds.headroom(consumed)
        assert (consumed >= thresholds.low[0, 0]) == (exact < 1)
        assert (consumed >= thresholds.hard[0, 0]) == (exact == 0)
