"""Every method at every moment of the last weeks: what it would have said, and what came."""

from __future__ import annotations

import numpy as np

from kquota_pipeline.forecast.choose import Chosen, Trials, choose
from kquota_pipeline.forecast.days import Days
from kquota_pipeline.forecast.history import DAY_HOURS, Floats
from kquota_pipeline.forecast.methods import DAILY, WEEK, median_slope, period_of, repeated
from kquota_pipeline.forecast.smoothing import smoothed, smoothed_week

AHEAD_DAYS = 30
MIN_DAYS = 2
_MOMENTS = 29
_PRIOR_TRIALS = 1.5
# The usual error of a method, in units of a volume's change from day to day.
_USUAL_ERROR = {
    "last": 1.0,
    "level": 1.1,
    "line": 1.1,
    "momentum": 1.2,
    "week before": 1.3,
    "smoothed": 1.0,
    "smoothed week": 1.0,
    "teeth": 1.0,
    "even growth": 0.8,
    "newcomer": 0.8,
    "expiry": 0.4,
    "expiry corrected": 0.5,
    "expiry by week": 0.5,
}
Methods = dict[str, Floats]
"""The forecasts of each method, [moment, day ahead] in bytes: moment 0 is now, moment k is k days ago."""


def moments_of(day_count: int) -> int:
    """Return at how many moments, one a day back from now, methods are tried."""
    return max(1, min(_MOMENTS, day_count - MIN_DAYS + 1))


def without_gaps(days: Days) -> Floats | None:
    """Return the crests of days until now, gaps filled by straight lines; None with less than two days."""
    known = np.flatnonzero(np.isfinite(days.day_bytes))
    if len(known) < MIN_DAYS:
        return None
    return np.interp(np.arange(known[0], len(days.day_bytes)), known, days.day_bytes[known])


def came_after(days: Days) -> Floats:
    """Return the crests that came after each moment, [moment, day ahead]; NaN where they are yet to come."""
    known = np.flatnonzero(np.isfinite(days.day_bytes))
    moments = moments_of(len(days.day_bytes) - int(known[0]))
    found = np.full((moments, AHEAD_DAYS), np.nan)
    for moment in range(1, moments):
        to_come = days.day_bytes[len(days.day_bytes) - moment :][:AHEAD_DAYS]
        found[moment, : len(to_come)] = to_come
    return found


def usage_methods(crests: Floats, hourly: Floats) -> Methods:
    """Return what each method says that knows usage alone, by day and by hour."""
    moments = moments_of(len(crests))
    found = {
        name: np.array([method(crests[: len(crests) - moment], AHEAD_DAYS) for moment in range(moments)])
        for name, method in DAILY.items()
    }
    found["smoothed"] = smoothed(crests, moments, AHEAD_DAYS)
    by_week = smoothed_week(crests, moments, AHEAD_DAYS)
    if np.isfinite(by_week[0]).all():
        found["smoothed week"] = by_week
    period = period_of(hourly)
    if period is not None:
        teeth = np.full((moments, AHEAD_DAYS), np.nan)
        for moment in range(moments):
            known = hourly[: len(hourly) - moment * DAY_HOURS]
            if len(known) > 1.1 * period:
                teeth[moment] = repeated(known, period, AHEAD_DAYS)
        found["teeth"] = teeth
    return found


def even_growth(crests: Floats, hourly: Floats) -> Floats:
    """Return lines by the growth of the last three days: what never leaves grows evenly."""
    moments = moments_of(len(crests))
    found = np.full((moments, AHEAD_DAYS), np.nan)
    for moment in range(moments):
        known = hourly[: len(hourly) - moment * DAY_HOURS][-3 * DAY_HOURS :: 3]
        slope = median_slope(known) / 3 * DAY_HOURS
        found[moment] = crests[len(crests) - 1 - moment] + slope * np.arange(1, AHEAD_DAYS + 1)
    return found


def only_now(crests: Floats, moments: int) -> Floats:
    """Return a method that has a forecast at the last moment alone."""
    found = np.full((moments, AHEAD_DAYS), np.nan)
    found[0] = crests
    return found


def corrected(foretold: Floats, came: Floats) -> Floats:
    """Return forecasts less the errors of the last two weeks, as far as they were known at each moment.

    Of days so far ahead that no error was known the last correction goes on: a forecast has no steps there.
    """
    found = foretold.copy()
    errors = came - foretold
    for moment in range(len(found)):
        correction = 0.0
        for day in range(AHEAD_DAYS):
            known = errors[moment + day + 1 : moment + day + 15, day] if day < 21 else np.zeros(0)
            known = known[np.isfinite(known)]
            if len(known):
                correction = np.median(known) * len(known) / (len(known) + 3.0)
            found[moment, day] += correction
    return found


def corrected_by_week(foretold: Floats, came: Floats) -> Floats:
    """Return forecasts less the errors of those made whole weeks before: what the sum of expiry misses of
    segments that roll once a week comes again, also in the weeks of which no error was known. NaN at moments
    without such errors.
    """
    found = np.full(foretold.shape, np.nan)
    errors = came - foretold
    for moment in range(len(found) - WEEK):
        if not np.isfinite(errors[moment + WEEK, 0]):
            continue
        correction = np.zeros(AHEAD_DAYS)
        for day in range(AHEAD_DAYS):
            # Errors this many days ahead are known of forecasts that are as many days old.
            known = errors[moment + (day // WEEK + 1) * WEEK :: WEEK, day] if day < 4 * WEEK else np.zeros(0)
            known = known[np.isfinite(known)]
            if len(known):
                correction[day] = np.median(known) * len(known) / (len(known) + 1.0)
            elif day >= WEEK:
                correction[day] = correction[day - WEEK]
        found[moment] = foretold[moment] + correction
    return found


def chosen(
    methods: Methods, came: Floats, crests: Floats, least_error: float, trust: Floats | None = None
) -> Chosen:
    """Weigh the methods by their errors, and at first by what they are usually wrong by."""
    change = max(float(np.abs(np.diff(crests[-22:])).mean()), 2 * least_error)
    usual = np.array([_USUAL_ERROR[name] for name in methods])[:, None] * change
    usual = usual * np.arange(1, AHEAD_DAYS + 1) ** 0.5
    return choose(Trials(np.array(list(methods.values())), came), usual, _PRIOR_TRIALS, least_error, trust)
