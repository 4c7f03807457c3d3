"""How fast a volume fills."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.policy.fill import (
    MAX_GAP_SECONDS,
    MIN_SEEN_SECONDS,
    TIME_CONSTANT_SECONDS,
    FillRate,
    seconds_until,
)

CAPACITY = 10**12

steps = st.lists(
    st.tuples(st.integers(0, CAPACITY), st.floats(0.1, MAX_GAP_SECONDS)), min_size=1, max_size=30
)


def seen(rate_bytes_per_second: float, seconds: float, *, step: float = 5.0, start: int = 0) -> FillRate:
    fill = FillRate.begin(CAPACITY, start, 0.0)
    for at in itertools.takewhile(lambda at: at <= seconds, itertools.count(step, step)):
        fill = fill.after(CAPACITY, start + round(rate_bytes_per_second * at), at)
    return fill


@pytest.mark.parametrize("step", [0.2, 1, 5, 30])
@pytest.mark.parametrize("rate", [-3e6, 0, 1e3, 5e8])
def test_a_steady_rate_is_told_exactly_however_often_one_looks(rate: float, step: float) -> None:
    assert seen(rate, 60, step=step, start=10**11).bytes_per_second == pytest.approx(rate, rel=1e-6, abs=5)


def test_no_rate_is_told_of_a_short_look() -> None:
    assert seen(1e6, MIN_SEEN_SECONDS - 1, step=1).bytes_per_second is None
    assert seen(1e6, MIN_SEEN_SECONDS, step=1).bytes_per_second is not None


def test_a_change_of_the_rate_shows_within_some_time_constants() -> None:
    fill = seen(1e6, 600)
    for at in itertools.count(605, 5):
        fill = fill.after(CAPACITY, fill.consumed_bytes, float(at))
        if at - 600 >= 3 * TIME_CONSTANT_SECONDS:
            break
    assert fill.bytes_per_second is not None
    assert 0 < fill.bytes_per_second < 0.06 * 1e6


def test_retention_that_keeps_up_is_no_filling() -> None:
    fill = FillRate.begin(CAPACITY, 0, 0.0)
    for at in range(5, 3600, 5):  # a segment of 500 MB is deleted as soon as it was written
        fill = fill.after(CAPACITY, at * 10**6 * 5 % (500 * 10**6), float(at))
    assert fill.bytes_per_second is not None
    assert abs(fill.bytes_per_second) < 0.25 * 5e6


def test_another_size_and_a_long_gap_begin_anew() -> None:
    fill = seen(1e6, 60)
    assert fill.after(2 * CAPACITY, 5, 65.0) == FillRate.begin(2 * CAPACITY, 5, 65.0)
    late = fill.at_seconds + MAX_GAP_SECONDS + 1
    assert fill.after(CAPACITY, 5, late) == FillRate.begin(CAPACITY, 5, late)


def test_after_the_longest_gap_and_after_the_shortest_step_the_look_goes_on() -> None:
    fill = seen(1e6, 60)
    assert fill.after(CAPACITY, 5, fill.at_seconds + MAX_GAP_SECONDS).since_seconds == 0.0
    assert fill.after(CAPACITY, 5, fill.at_seconds + 0.2).consumed_bytes == 5


def test_a_look_that_is_not_later_changes_nothing() -> None:
    fill = seen(1e6, 60)
    assert fill.after(CAPACITY, 7, fill.at_seconds) is fill


@given(steps)
def test_the_rate_lies_between_the_slowest_and_the_fastest_that_was_seen(
    looks: list[tuple[int, float]],
) -> None:
    fill = FillRate.begin(CAPACITY, 0, 0.0)
    rates = []
    for consumed, seconds in looks:
        at = fill.at_seconds + seconds
        rates.append((consumed - fill.consumed_bytes) / (at - fill.at_seconds) if at > fill.at_seconds else 0)
        fill = fill.after(CAPACITY, consumed, at)
    rate = fill.bytes_per_second
    if rate is not None:
        slack = 1e-6 * max(abs(r) for r in rates) + 1e-6
        assert min(rates) - slack <= rate <= max(rates) + slack


def test_when_a_bound_is_reached() -> None:
    assert seconds_until(100, 40, 2.0) == 30
    assert seconds_until(100, 100, None) == 0
    assert seconds_until(100, 120, -5.0) == 0
    assert seconds_until(100, 40, 0.5) == 120
    assert seconds_until(100, 40, 0.0) is None
    assert seconds_until(100, 40, -1.0) is None
    assert seconds_until(100, 40, None) is None
