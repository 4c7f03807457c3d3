"""Probabilities of reaching a limit, and the words for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota_pipeline.forecast.conformal import USUAL
from kquota_pipeline.forecast.probabilities import Outlook, days_until, outlook, reached_by_day

AHEAD = 30


@given(st.floats(-20, 20), st.floats(0.1, 30), st.floats(0, 200), st.floats(0, 200))
def test_a_within_grows_with_the_days_and_a_lower_limit_is_reached_sooner(
    slope: float, error: float, one: float, other: float
) -> None:
    crests = 100 + slope * np.arange(1, AHEAD + 1)
    errors = error * np.arange(1, AHEAD + 1) ** 0.5
    low, high = (reached_by_day(crests, errors, USUAL, limit) for limit in sorted((one, other)))
    for found in (low, high):
        assert ((found >= 0) & (found <= 1)).all()
        assert (np.diff(found) >= 0).all()
    assert (low >= high - 1e-9).all()


def test_a_rise_through_the_limit_is_likely_and_a_level_far_below_is_not() -> None:
    days = np.arange(1, AHEAD + 1)
    errors = 2 * days**0.5
    rising = reached_by_day(500 + 20.0 * days, errors, USUAL, 800.0)
    assert rising[4] < 0.05
    assert rising[29] > 0.95
    until = days_until(rising)
    assert until is not None
    assert 13 <= until <= 16
    assert outlook(rising, 500, 800) is Outlook.FILLING
    level = reached_by_day(np.full(AHEAD, 500.0), errors, USUAL, 800.0)
    assert level[29] < 0.02
    assert days_until(level) is None
    assert outlook(level, 500, 800) is Outlook.NOT_FILLING
    near = reached_by_day(np.full(AHEAD, 792.0), errors, USUAL, 800.0)
    assert outlook(near, 792, 800) is Outlook.PERHAPS


def test_a_volume_over_its_limit_is_there_and_one_without_history_is_unknown() -> None:
    assert outlook(None, 800, 800) is Outlook.OVER
    assert outlook(None, 700, 800) is Outlook.UNKNOWN


def test_days_are_counted_within_a_day_by_how_much_more_likely_it_became() -> None:
    assert days_until(np.array([0.0, 0.4, 0.6, 1.0])) == pytest.approx(2.5)
    assert days_until(np.array([0.8, 0.9])) == pytest.approx(0.625)
