"""The agent answers at once, and rests only where events come all the time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kquota.guard.pace import MAX_REST_SECONDS, REST_RATIO, SAVED_SECONDS, Pace

CYCLES = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), max_size=50)


def test_a_few_cycles_in_a_row_wait_for_nothing() -> None:
    pace = Pace(0.0)
    for number in range(5):
        assert pace.rest_seconds(number * 0.005) == 0.0
        pace.cycle_ended(SAVED_SECONDS / REST_RATIO / 6, number * 0.005 + 0.004)


def test_without_pauses_every_cycle_is_followed_by_its_rest() -> None:
    pace, now, rested = Pace(0.0), 0.0, 0.0
    for _ in range(1000):
        rest = pace.rest_seconds(now)
        rested += rest
        now += rest + 0.005
        pace.cycle_ended(0.005, now)
    assert rested >= 0.9 * (1000 * 0.005 * REST_RATIO - SAVED_SECONDS - now / REST_RATIO)
    assert now >= 0.9 * 1000 * 0.005 * REST_RATIO


@given(CYCLES)
def test_it_never_rests_longer_than_the_last_cycle_calls_for(cycles: list[tuple[float, float]]) -> None:
    pace, now = Pace(0.0), 0.0
    for passed, length in cycles:
        now += passed + length
        pace.cycle_ended(length, now)
        assert 0.0 <= pace.rest_seconds(now) <= min(REST_RATIO * length + 1e-9, MAX_REST_SECONDS)


@given(CYCLES, st.floats(0, 100))
def test_rests_that_were_not_needed_are_saved_up_to_a_bound(
    cycles: list[tuple[float, float]], length: float
) -> None:
    pace, now = Pace(0.0), 0.0
    for passed, before in cycles:
        now += passed + before
        pace.cycle_ended(before, now)
    pace.cycle_ended(length, now)
    assert pace.rest_seconds(now) >= min(REST_RATIO * length - SAVED_SECONDS, MAX_REST_SECONDS) - 1e-6
