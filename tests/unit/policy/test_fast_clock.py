"""A broker whose clock was ahead: its last report must not be fresh when the time of it comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.policy.decision import State
from tests.unit.policy.situations import causes
from tests.unit.policy.test_slow_clock import decided


@pytest.mark.accepts("F7", "F39")
@pytest.mark.parametrize(
    ("age", "appended_ago", "cause"),
    [
        (1, 3600, "stale"),  # written while the clock was an hour ahead, by an agent that is gone
        (-20, 3600, "stale"),  # within the tolerance for the future
        (0, 60, None),  # by no more than the staleness: such a clock is not distinguished
        (0, 60.001, "stale"),
        (1, 1, None),
        (1, -3600, None),  # the leader of the topic is ahead
        (1, None, None),
    ],
)
def test_a_report_of_a_clock_that_was_ahead_is_as_old_as_its_storage(
    age: float, appended_ago: float | None, cause: str | None
) -> None:
    assert causes(decided(age, appended_ago)) == ([] if cause is None else [(1, cause)])


@pytest.mark.accepts("F39")
def test_its_breach_still_counts() -> None:
    assert decided(1, 3600, fallback="open", gb=5).state is State.PAUSE
    assert decided(1, 3600, fallback="open", gb=50).state is State.OPEN


@given(age=st.floats(-30, 200), appended_ago=st.floats(-10, 10_000))
def test_no_report_is_fresh_for_longer_than_twice_the_staleness_after_its_storage(
    age: float, appended_ago: float
) -> None:
    known = causes(decided(age, appended_ago)) == []
    assert not known or appended_ago <= 2 * 60.01
