"""Forecasts of the crests of days to come from those of days before. Pure: arrays in, arrays out.

Each method gets the crests of days until now, without gaps, and returns one crest for each day to come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from kquota_pipeline.forecast.history import DAY_HOURS, Floats, Ints

WEEK = 7
_LINE_DAYS = 28


def last(crests: Floats, ahead: int) -> Floats:
    """Return the crest of the last day."""
    return np.full(ahead, crests[-1])


def level(crests: Floats, ahead: int) -> Floats:
    """Return a smoothed level, in which the last days count most."""
    weights = 0.65 ** np.arange(min(len(crests), 12))
    return np.full(ahead, float(crests[::-1][: len(weights)] @ weights / weights.sum()))


def line(crests: Floats, ahead: int) -> Floats:
    """Return a line from the last crest, by the median of the slopes between all pairs of four weeks."""
    return np.asarray(crests[-1] + median_slope(crests[-_LINE_DAYS:]) * np.arange(1, ahead + 1))


def momentum(crests: Floats, ahead: int) -> Floats:
    """Return what goes on as in the last three days, less with each day."""
    slope = median_slope(crests[-4:])
    return np.asarray(crests[-1] + slope * np.cumsum(0.75 ** np.arange(1, ahead + 1)))


def week_before(crests: Floats, ahead: int) -> Floats:
    """Return the same days of the last week."""
    if len(crests) < WEEK:
        return last(crests, ahead)
    return np.asarray(crests[-WEEK:][np.arange(ahead) % WEEK])


DAILY: Mapping[str, Callable[[Floats, int], Floats]] = {
    "last": last,
    "level": level,
    "line": line,
    "momentum": momentum,
    "week before": week_before,
}


def median_slope(values: Floats) -> float:
    """Return the median of the slopes between all pairs (Theil and Sen); 0 for a single value."""
    if len(values) < 2:
        return 0.0
    first, second = _pairs(len(values))
    return float(np.median((values[second] - values[first]) / (second - first)))


@cache
def _pairs(count: int) -> tuple[Ints, Ints]:
    first, second = np.triu_indices(count, 1)
    return first, second


def period_of(hourly: Floats) -> int | None:
    """Return the hours after which the teeth of a saw come again, None where they do not.

    The period is that of the largest correlation of the changes with themselves, of 26 hours to 15 days.
    """
    if len(hourly) < 3 * DAY_HOURS:
        return None
    kernel = np.ones(6) / 6
    smooth = np.convolve(hourly, kernel, "valid")
    flat = smooth - np.polyval(np.polyfit(np.arange(len(smooth)), smooth, 1), np.arange(len(smooth)))
    power = float(flat @ flat)
    longest = min(15 * DAY_HOURS, int(len(flat) / 2.2))
    if power <= 0 or longest <= 26:
        return None
    size = 1 << (2 * len(flat) - 1).bit_length()
    spectrum = np.fft.rfft(flat, size)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum), size)[: longest + 1]
    lags = np.arange(longest + 1)
    correlation = correlation * len(flat) / (len(flat) - lags) / power
    inner = correlation[26:longest]
    peaks = 26 + np.flatnonzero(
        (inner >= correlation[25 : longest - 1]) & (inner >= correlation[27 : longest + 1])
    )
    if not len(peaks):
        return None
    best = float(correlation[peaks].max())
    if best < 0.3:
        return None
    return int(peaks[np.argmax(correlation[peaks] > best - 0.08)])


def repeated(hourly: Floats, period: int, ahead: int) -> Floats:
    """Return the crests of days to come if the last periods, of this many hours, come again."""
    times = min(max(len(hourly) // period, 1), 3)
    table = hourly[-times * period :].reshape(times, period)
    levels = table.mean(axis=1)
    weights = 0.7 ** np.arange(times)[::-1]
    shape = (table - levels[:, None]).T @ weights / weights.sum()
    slope = 0.5 * (levels[-1] - levels[0]) / (times - 1) if times > 1 else 0.0
    hours = np.arange(ahead * DAY_HOURS)
    future = levels[-1] + shape[hours % period] + slope * (1 + hours // period)
    return np.asarray(future.reshape(ahead, DAY_HOURS).max(axis=1))
