"""Votes sort by what holds producers back most, and are compared exactly."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kquota.policy.limit_breaches import LimitBreach, breaches, sorted_votes, worse_votes

wholes = st.integers(0, 2**63)
positive = st.integers(1, 2**63)


@given(wholes, positive, wholes, positive)
def test_headrooms_compare_as_fractions_do(a: int, b: int, c: int, d: int) -> None:
    one, other = LimitBreach.over_soft(a, b, "v"), LimitBreach.over_soft(c, d, "v")
    assert one.headroom == Fraction(a, b)
    assert (one < other) == (Fraction(a, b) < Fraction(c, d))
    assert (one == other) == (Fraction(a, b) == Fraction(c, d))


def test_headrooms_that_are_equal_as_floats_are_compared_exactly() -> None:
    size = 10**17
    tighter, looser = (
        LimitBreach.over_soft(size, 3 * size, "b"),
        LimitBreach.over_soft(size + 1, 3 * size, "a"),
    )
    assert tighter.approximate == looser.approximate
    assert sorted_votes([looser, None, tighter]) == (tighter, looser)


def test_breaches_come_first() -> None:
    hard, latched = LimitBreach.at_hard("c", by_latch=False), LimitBreach.at_hard("b", by_latch=True)
    soft = LimitBreach.over_soft(1, 2, "a")
    assert (hard.headroom, soft.headroom) == (0, Fraction(1, 2))
    votes = sorted_votes([soft, latched, hard])
    assert votes == (hard, latched, soft)
    assert breaches(votes) == (hard, latched)
    assert breaches((soft,)) == ()


def test_of_two_reports_about_a_volume_the_worse_one_counts() -> None:
    hard, half, third = (
        LimitBreach.at_hard("a", by_latch=False),
        LimitBreach.over_soft(1, 2, "a"),
        LimitBreach.over_soft(1, 3, "b"),
    )
    assert worse_votes((half,), (hard, third)) == (hard, third)
    assert worse_votes((hard, third), (half,)) == (hard, third)
