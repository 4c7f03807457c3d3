"""Exponential smoothing of the crests of days, with and without a rhythm of the week. Pure arrays.

The additive error models of Hyndman et al. (2008): a level, a damped slope, and the days of a week, each
moved by a part of the error of every day. All settings of a small grid run side by side through the days, and
at each moment each counts by how well it has foretold one day ahead until then.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from kquota_pipeline.forecast.history import Floats
from kquota_pipeline.forecast.methods import WEEK

# The parts of an error by which level, slope and day of the week are moved; what is left of a slope a day.
_LEVEL = (0.1, 0.3, 0.6, 0.9)
_SLOPE = ((0.0, 1.0), (0.05, 0.9), (0.2, 0.9), (0.02, 0.98))
_OF_WEEK = (0.05, 0.2, 0.5)
# A setting counts by the inverse of its squared errors to this power, a day, of at most this many days.
_SHARP, _COUNTED_DAYS = 0.5, 30


def smoothed(crests: Floats, moments: int, ahead: int) -> Floats:
    """Return the crests of days to come, [moment, day ahead], by level and slope; moment k is k days ago."""
    return _foretold(crests, moments, ahead, np.array([[*a, 0.0] for a in _grid()]), 1)


def smoothed_week(crests: Floats, moments: int, ahead: int) -> Floats:
    """Return the same with a rhythm of the week: NaN at moments with less than two weeks before them."""
    grid = np.array([[*a, of_week] for a, of_week in product(_grid(), _OF_WEEK)])
    return _foretold(crests, moments, ahead, grid, WEEK)


def _grid() -> list[tuple[float, float, float]]:
    return [(level, slope, damped) for level, (slope, damped) in product(_LEVEL, _SLOPE)]


def _foretold(crests: Floats, moments: int, ahead: int, grid: Floats, season: int) -> Floats:
    """Return the forecasts by the settings of `grid`, [setting, (level, slope, damped, of week)]."""
    found = np.full((moments, ahead), np.nan)
    begin = 2 * season
    if len(crests) < begin:
        return found
    of_level, of_slope, damped, of_week = grid.T
    weeks = crests[:begin].reshape(2, season)
    rhythm = np.tile((weeks - weeks.mean(axis=1, keepdims=True)).mean(axis=0), (len(grid), 1))
    level = np.full(len(grid), float(weeks[0].mean()))
    slope = np.zeros(len(grid))
    squares = np.zeros(len(grid))
    days = np.arange(1, ahead + 1)
    sums = np.cumsum(damped[:, None] ** days, axis=1)
    for day, crest in enumerate(crests):
        of_day = day % season
        error = crest - (level + damped * slope + rhythm[:, of_day])
        if day >= season:
            squares += error**2
        level = level + damped * slope + of_level * error
        slope = damped * slope + of_slope * of_level * error
        rhythm[:, of_day] += of_week * (1 - of_level) * error
        moment = len(crests) - 1 - day
        if moment < moments and day + 1 >= begin:
            least = 1e-12 * crest**2 + 1e-300
            weights = ((squares.min() + least) / (squares + least)) ** (_SHARP * min(day, _COUNTED_DAYS))
            weights /= weights.sum()
            to_come = level[:, None] + slope[:, None] * sums + rhythm[:, (day + days) % season]
            found[moment] = weights @ to_come
    return found
