"""Votes sort by what holds producers back most, and are compared exactly."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kquota.core.votes import Ballot, Exact, Severity, Vote

wholes = st.integers(0, 2**63)
positive = st.integers(1, 2**63)


@given(wholes, positive, wholes, positive)
def test_exact_ratios_compare_as_fractions_do(a: int, b: int, c: int, d: int) -> None:
    one, other = Exact(a, b), Exact(c, d)
    assert one.fraction == Fraction(a, b)
    assert (one < other) == (Fraction(a, b) < Fraction(c, d))
    assert (one == other) == (Fraction(a, b) == Fraction(c, d))


def test_equal_ratios_are_not_below_each_other() -> None:
    assert Exact(1, 3) == Exact(2, 6)
    assert not Exact(1, 3) < Exact(2, 6)
    assert Exact(1, 3) != "1/3"


def test_headrooms_that_are_equal_as_floats_are_compared_exactly() -> None:
    size = 10**17
    tighter, looser = Vote.over_soft(size, 3 * size, "b"), Vote.over_soft(size + 1, 3 * size, "a")
    assert tighter.approximate == looser.approximate
    assert Ballot.of([looser, tighter]).votes == (tighter, looser)


def test_breaches_come_first_and_are_counted() -> None:
    hard, latched, soft = Vote.at_hard(True, "c"), Vote.at_hard(False, "b"), Vote.over_soft(1, 2, "a")
    assert (hard.severity, latched.severity, soft.severity) == (
        Severity.HARD,
        Severity.LATCHED,
        Severity.SOFT,
    )
    assert (hard.headroom, soft.headroom) == (0, Fraction(1, 2))
    ballot = Ballot.of([soft, latched, hard])
    assert ballot.breaches == 2
    assert sorted(vote.volume for vote in ballot.breaches_alone().votes) == ["b", "c"]
    assert ballot.votes[-1] == soft
    assert Ballot.of([hard]).breaches_alone() == Ballot.of([hard])
