"""Single methods, on what each is made for."""

from __future__ import annotations

import numpy as np
import pytest

from kquota_pipeline.forecast.history import DAY_HOURS
from kquota_pipeline.forecast.methods import DAILY, median_slope, period_of, repeated, week


@pytest.mark.parametrize("name", DAILY)
@pytest.mark.parametrize("days", [2, 5, 9, 40])
def test_every_method_says_that_a_level_stays(name: str, days: int) -> None:
    assert DAILY[name](np.full(days, 7.0), 30) == pytest.approx(7.0)


def test_a_week_comes_again_at_the_level_of_the_last_one() -> None:
    shape = np.array([0, 1, 2, 3, 2, -4, -4.0])
    crests = np.concatenate([100 + shape, 110 + shape, 120 + shape])
    assert week(crests, 7) == pytest.approx(120 + shape + 0.5 * 10 / 7 * (np.arange(1, 8) + 3))


@pytest.mark.parametrize("period", [36, 84, 168])
def test_the_period_of_teeth_is_found_and_they_come_again(period: int) -> None:
    hours = np.arange(40 * DAY_HOURS)
    saw = 400 + 200 * (hours % period) / period + np.random.default_rng(2).normal(0, 2, len(hours))
    found = period_of(saw[: -7 * DAY_HOURS])
    assert found is not None
    assert abs(found / period - round(found / period)) < 0.06
    came = saw[-7 * DAY_HOURS :].reshape(7, DAY_HOURS).max(axis=1)
    assert repeated(saw[: -7 * DAY_HOURS], found, 7) == pytest.approx(came, abs=25)


def test_noise_has_no_teeth() -> None:
    assert period_of(400 + np.random.default_rng(2).normal(0, 2, 40 * DAY_HOURS)) is None


def test_a_few_outliers_leave_the_slope() -> None:
    values = 5.0 * np.arange(28)
    values[[3, 17, 22]] += 400
    assert median_slope(values) == pytest.approx(5, rel=0.05)
