"""Which method a volume gets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kquota_pipeline.forecast.choose import Trials, choose
from kquota_pipeline.forecast.conformal import LEVELS, TABLE_DAYS, at_days, interval, spread_of, thinned
from kquota_pipeline.forecast.history import Floats
from kquota_pipeline.forecast.trials import AHEAD_DAYS, corrected, corrected_by_week

AHEAD = 14


def trials(wrong_by: tuple[float, ...], moments: int = 20, seed: int = 1) -> Trials:
    """Methods that are wrong by this much at each moment, one way or the other; all that came is 100."""
    draw = np.random.default_rng(seed)
    foretold = np.array([100 + by * draw.choice([-1, 1], (moments, AHEAD)) for by in wrong_by])
    came = np.full((moments, AHEAD), 100.0)
    came[np.arange(moments)[:, None] < np.arange(1, AHEAD + 1)[None]] = np.nan
    return Trials(foretold, came)


def test_the_method_that_was_right_counts_most_and_its_error_is_the_usual_one() -> None:
    found = choose(trials((1.0, 6.0)), np.full((2, AHEAD), 3.0), 1.0, 0.1)
    assert (found.weights[0] > 0.8).all()
    assert found.weights.sum(axis=0) == pytest.approx(1.0)
    assert 1.0 <= found.usual_error[0].mean() <= 3.0


def test_what_came_after_a_moment_changes_nothing_of_its_forecast() -> None:
    one = trials((1.0, 6.0))
    other = Trials(one.foretold, one.came.copy())
    moment = 8
    for day in range(AHEAD):
        other.came[: moment + day + 1, day] += 50
    before = choose(one, np.full((2, AHEAD), 3.0), 1.0, 0.1)
    after = choose(other, np.full((2, AHEAD), 3.0), 1.0, 0.1)
    assert after.foretold[moment:] == pytest.approx(before.foretold[moment:])
    assert after.usual_error[moment:] == pytest.approx(before.usual_error[moment:])
    assert (after.usual_error[0] > before.usual_error[0]).all()


def test_a_method_without_a_forecast_at_a_moment_does_not_count_there() -> None:
    own = trials((1.0, 6.0))
    own.foretold[0, 0] = np.nan
    found = choose(own, np.full((2, AHEAD), 3.0), 1.0, 0.1)
    assert found.foretold[0] == pytest.approx(own.foretold[1, 0])


def test_a_fleets_own_errors_make_its_intervals_and_few_of_them_do_not() -> None:
    draw = np.random.default_rng(4)
    many = spread_of(*(draw.normal(0, 1, (4000, len(TABLE_DAYS))) for _ in range(2)))
    low, high = interval(np.full(AHEAD, 50.0), np.full(AHEAD, 10.0), many)
    error = draw.normal(0, 10, 20_000)
    share = ((50 + error >= low[6]) & (50 + error <= high[6])).mean()
    assert 0.78 <= share <= 0.88
    few = spread_of(np.full((3, len(TABLE_DAYS)), 0.01), np.full((3, len(TABLE_DAYS)), 0.01))
    assert at_days(few.day, AHEAD)[np.searchsorted(LEVELS, 0.9), 6] > 1


def test_every_third_moment_of_a_volume_counts() -> None:
    errors = np.arange(20.0)[:, None] + np.arange(30.0)[None] / 100
    assert thinned(errors)[:, 0].tolist() == [0, 3, 6, 9, 12, 15, 18]


def weekly_teeth(moments: int) -> tuple[Floats, Floats]:
    """Return forecasts that know nothing of a tooth of 60 each week, and what came, [moment, day ahead]."""
    moment, ahead = np.mgrid[:moments, 1 : AHEAD_DAYS + 1]
    day = ahead - moment  # 0 is today
    came = np.where(day > 0, np.nan, 100 + 60.0 * (day % 7 == 3))
    return np.full(came.shape, 100.0), came


@pytest.mark.parametrize("correct", [corrected, corrected_by_week])
def test_where_no_error_was_known_the_last_correction_goes_on(correct: Callable[..., Floats]) -> None:
    moments = 18
    foretold, came = np.full((moments, AHEAD_DAYS), 100.0), np.full((moments, AHEAD_DAYS), np.nan)
    for moment in range(1, moments):
        came[moment, :moment] = 130.0
    found = correct(foretold, came)[0]
    assert np.abs(np.diff(found)).max() < 6
    assert found[0] > 115
    assert (found > 107).all()


def test_what_a_forecast_misses_once_a_week_is_corrected_by_the_weeks_before() -> None:
    foretold, came = weekly_teeth(29)
    found = corrected_by_week(foretold, came)
    tooth = np.arange(1, AHEAD_DAYS + 1) % 7 == 3
    assert (found[0, :14][tooth[:14]] > 140).all()
    assert (found[0, :14][~tooth[:14]] == 100).all()
    assert np.isnan(found[-7:]).all()


def test_a_correction_by_week_is_made_of_errors_that_were_known_at_its_moment() -> None:
    foretold, came = weekly_teeth(29)
    other = came.copy()
    moment = 5
    for day in range(AHEAD_DAYS):
        other[: moment + day + 1, day] += 50
    before, after = corrected_by_week(foretold, came), corrected_by_week(foretold, other)
    assert after[moment:] == pytest.approx(before[moment:], nan_ok=True)
    assert after[0] != pytest.approx(before[0])
