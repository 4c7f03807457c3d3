"""The pace of the probe process: the sooner the nearer a number is, and the faster it comes nearer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kquota.disks.probe_process import NEAR_SECONDS, next_look_seconds

INTERVALS = st.floats(0.001, 10)
LEFT = st.integers(0, 10**13)
RATES = st.floats(-1e10, 1e10)


@given(INTERVALS, LEFT, RATES)
def test_it_is_never_longer_than_the_interval_nor_shorter_than_the_shortest(
    interval: float, left: int, rate: float
) -> None:
    assert min(NEAR_SECONDS, interval) <= next_look_seconds(interval, left, rate) <= interval


@given(INTERVALS, LEFT, LEFT, RATES)
def test_the_nearer_the_sooner(interval: float, one: int, other: int, rate: float) -> None:
    near, far = sorted((one, other))
    assert next_look_seconds(interval, near, rate) <= next_look_seconds(interval, far, rate)


@given(INTERVALS, LEFT, RATES, RATES)
def test_the_faster_the_sooner(interval: float, left: int, one: float, other: float) -> None:
    slow, fast = sorted((one, other))
    assert next_look_seconds(interval, left, fast) <= next_look_seconds(interval, left, slow)


@given(st.floats(0.08, 10), st.floats(0.001, 1), st.floats(1, 1e9))
def test_in_the_last_second_it_is_the_shortest(interval: float, seconds_left: float, rate: float) -> None:
    assert next_look_seconds(interval, int(seconds_left * rate), rate) == NEAR_SECONDS


def test_far_from_the_number_it_is_half_the_interval() -> None:
    assert next_look_seconds(0.2, 10**12, 0.0) == next_look_seconds(0.2, 10**12, 1e6) == 0.1
