"""Single methods, on what each is made for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kquota_pipeline.forecast.history import DAY_HOURS, Floats
from kquota_pipeline.forecast.methods import DAILY, median_slope, period_of, repeated
from kquota_pipeline.forecast.smoothing import smoothed, smoothed_week


@pytest.mark.parametrize("name", DAILY)
@pytest.mark.parametrize("days", [2, 5, 9, 40])
def test_every_method_says_that_a_level_stays(name: str, days: int) -> None:
    assert DAILY[name](np.full(days, 7.0), 30) == pytest.approx(7.0)


Method = Callable[[Floats, int, int], Floats]
SHAPE = np.array([0, 10, 20, 30, 20, -40, -40.0])


@pytest.mark.parametrize("days", [2, 5, 9, 40])
def test_smoothing_says_that_a_level_stays_and_needs_two_weeks_for_a_rhythm(days: int) -> None:
    level = np.full(days, 7.0)
    assert smoothed(level, 3, 30)[0] == pytest.approx(7.0)
    by_week = smoothed_week(level, 3, 30)
    assert by_week[0] == pytest.approx(7.0) if days >= 14 else np.isnan(by_week).all()


def test_smoothing_follows_a_slope_and_a_rhythm_of_the_week() -> None:
    days = np.arange(42)
    assert smoothed(100 + 3.0 * days, 1, 3)[0] == pytest.approx(100 + 3.0 * (42 + np.arange(3)), rel=0.02)
    crests = 400 + np.tile(SHAPE, 6) + np.random.default_rng(3).normal(0, 2, 42)
    assert smoothed_week(crests, 1, 14)[0] == pytest.approx(400 + np.tile(SHAPE, 2), abs=5)
    assert np.abs(smoothed(crests, 1, 14)[0] - 400 - np.tile(SHAPE, 2)).max() > 20


def test_smoothing_goes_on_from_a_new_level_of_a_weekly_rhythm() -> None:
    crests = 400 + np.tile(SHAPE, 6) + np.where(np.arange(42) >= 30, 100.0, 0.0)
    assert smoothed_week(crests, 1, 7)[0] == pytest.approx(500 + SHAPE, abs=12)


@pytest.mark.parametrize("method", [smoothed, smoothed_week])
def test_smoothing_at_a_moment_knows_nothing_of_later_days(method: Method) -> None:
    crests = np.random.default_rng(5).normal(400, 30, 40)
    alone, with_later = method(crests[:33], 1, 10), method(crests, 8, 10)
    assert with_later[7] == pytest.approx(alone[0])


@given(
    # At least a byte: of 1e-150 the squares are zero, and so is each error of a method.
    crests=arrays(float, st.integers(14, 40), elements=st.just(0.0) | st.floats(1, 1e13)),
    scale=st.sampled_from([1e-6, 1024.0, 1e6]),
)
def test_smoothing_is_finite_and_has_the_unit_of_what_it_is_given(crests: Floats, scale: float) -> None:
    for method in (smoothed, smoothed_week):
        found = method(crests, 1, 30)
        assert np.isfinite(found).all()
        near = 1e-6 * scale * float(crests.max())
        assert method(crests * scale, 1, 30) == pytest.approx(found * scale, rel=1e-6, abs=near)


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
