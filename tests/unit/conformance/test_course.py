"""The figures that are taken from the samples of a trial."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.course import HELD_FOR_SECONDS, HELD_RATIO, Course, Sample, acknowledged_to, consumed
from tests.unit.conformance.courses import STEP_SECONDS, course

FIRST = acknowledged_to([0])


def test_producers_are_held_from_the_last_byte_that_lands() -> None:
    held = course((10, 1e6), (2, 1e6), (20, 0)).held_seconds(FIRST, 10, 32, 1e6)
    assert held == pytest.approx(2, abs=2 * STEP_SECONDS + HELD_RATIO * 20)


def test_producers_that_go_on_slowly_are_not_held() -> None:
    assert course((10, 1e6), (25, 1e5)).held_seconds(FIRST, 10, 35, 1e6) is None


def test_a_silence_at_the_end_of_the_hold_is_too_short_to_count() -> None:
    silence_seconds = HELD_FOR_SECONDS - 1
    assert course((10, 1e6), (21, 1e6), (silence_seconds, 0)).held_seconds(FIRST, 10, 35, 1e6) is None


def test_producers_that_a_dead_leader_stops_for_a_moment_are_not_held() -> None:
    stalled = course((10, 1e6), (8, 0), (17, 1e6))
    assert stalled.held_seconds(FIRST, 10, 35, 1e6) is None


def test_a_volume_passes_its_limit_once_and_takes_in_what_lies_beyond() -> None:
    filled = course((10, 1e6), (5, 1e6), (10, 0), left_bytes=12e6)
    crossed = filled.passed_at(2_000_000, since=0)
    assert crossed == pytest.approx(10, abs=2 * STEP_SECONDS)
    assert crossed is not None
    assert filled.overshoot_bytes(2_000_000, crossed, 25) == pytest.approx(2_000_000, rel=0.06)
    assert filled.passed_at(2_000_000, since=20) == pytest.approx(20, abs=STEP_SECONDS)
    assert filled.passed_at(-1, since=0) is None


def test_the_suite_s_own_file_is_not_the_system_s_overshoot() -> None:
    pushed = Course([Sample(at / 10, left, (0,), 0) for at, left in enumerate([90, 90, 30, 30, 28, 28])])
    assert pushed.overshoot_bytes(40, 0.2, 0.5) == 2


def test_the_slowest_producer_decides_when_all_are_back() -> None:
    samples = [
        Sample(at / 10, 0, (max(0, at - 10) * 100_000, max(0, at - 40) * 100_000), 0) for at in range(100)
    ]
    both = Course(samples)
    first, second = (FIRST, 1e6), (acknowledged_to([1]), 1e6)
    quick, slow = both.resumed_seconds([first], 0, 9.9), both.resumed_seconds([first, second], 0, 9.9)
    assert quick == pytest.approx(1, abs=2 * STEP_SECONDS)
    assert slow == pytest.approx(4, abs=2 * STEP_SECONDS)
    assert both.resumed_seconds([first, second], 0, 4) is None


def test_a_producer_that_was_never_held_is_back_at_once() -> None:
    resumed = course((30, 1e6)).resumed_seconds([(FIRST, 1e6)], 20, 30)
    assert resumed == pytest.approx(0, abs=2 * STEP_SECONDS)


def test_a_share_is_of_the_rate_before_and_unknown_without_one() -> None:
    slowed = course((10, 1e6), (10, 2.5e5))
    assert slowed.share(FIRST, (0, 10), (10, 20)) == pytest.approx(0.25, rel=0.02)
    assert slowed.share(consumed, (0, 10), (10, 20)) == pytest.approx(0.25, rel=0.02)
    assert course((10, 0), (10, 1e6)).share(FIRST, (0, 10), (10, 20)) is None


def test_a_rate_without_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 samples"):
        course((10, 1e6)).rate(FIRST, 20, 30)


@given(
    st.lists(st.integers(min_value=0, max_value=10**6), min_size=2, max_size=60),
    st.integers(min_value=1, max_value=10**7),
)
def test_no_more_lands_beyond_the_limit_than_there_was_room_for(steps: list[int], hard_left: int) -> None:
    taken = [sum(steps[:end]) for end in range(len(steps))]
    samples = [Sample(at / 10, max(0, 2 * hard_left - total), (total,), 0) for at, total in enumerate(taken)]
    seen = Course(samples)
    crossed = seen.passed_at(hard_left, since=0)
    if crossed is None:
        assert samples[-1].left_bytes > hard_left
    else:
        end = samples[-1].at
        beyond = seen.overshoot_bytes(hard_left, crossed, end)
        assert 0 <= beyond <= hard_left - samples[-1].left_bytes
