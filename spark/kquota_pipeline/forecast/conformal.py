"""Intervals made of past errors: of this volume by its usual error, of all volumes of a kind by their spread.

An error is in units of its volume's usual one at that time. So errors of many volumes have one distribution
for each kind of volume and number of days ahead, and a volume with little history gets the spread of others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kquota_pipeline.forecast.history import Floats

LEVELS = np.array([0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99])
TABLE_DAYS = np.array([1, 3, 7, 14])
"""The days ahead of which errors are pooled; in between, tables are interpolated."""
THIN_DAYS = 3
"""Of the moments of a volume every third one counts: the errors of neighbours are nearly the same."""
# A fleet needs this many errors to count as much as what was found on others.
_USUAL_COUNT = 150.0
# Spreads of one to two weeks' trials are too narrow by this: they share their days.
_WIDER = 1.1


@dataclass(frozen=True, slots=True)
class Spread:
    """The quantiles, [level, day of TABLE_DAYS], of errors of a day's crest and of the highest one so far."""

    day: Floats
    highest: Floats


# Quantiles of errors on fleets that were made to tune the forecast on; the bench judges it on others.
_DAY = [
    [-6.0, -4.1, -3.9, -4.0], [-4.4, -2.4, -2.45, -2.6], [-3.0, -1.75, -1.7, -1.65],
    [-1.7, -1.2, -1.1, -1.05], [-0.85, -0.6, -0.6, -0.55], [-0.45, -0.25, -0.25, -0.25],
    [-0.2, -0.05, -0.05, -0.1], [0.0, 0.1, 0.1, 0.05],
    [0.2, 0.35, 0.25, 0.2], [0.4, 0.65, 0.5, 0.4], [0.7, 1.0, 0.85, 0.75], [1.25, 1.7, 1.7, 1.6],
    [2.0, 3.0, 3.1, 3.1], [3.0, 4.5, 4.5, 4.5], [5.5, 6.0, 6.0, 6.0],
]  # fmt: skip
_HIGHEST = [
    [-6.0, -2.8, -2.4, -2.15], [-4.4, -1.8, -1.3, -1.25], [-3.0, -1.3, -0.85, -0.8],
    [-1.7, -0.75, -0.45, -0.4],
    [-0.85, -0.3, -0.15, -0.05], [-0.45, -0.05, 0.05, 0.05], [-0.2, 0.1, 0.2, 0.2], [0.0, 0.3, 0.35, 0.35],
    [0.2, 0.5, 0.5, 0.5], [0.4, 0.75, 0.75, 0.75], [0.7, 1.05, 1.1, 1.15], [1.25, 1.7, 2.0, 2.1],
    [2.0, 3.0, 3.5, 3.5], [3.0, 4.5, 4.5, 4.5], [5.5, 6.0, 6.0, 6.0],
]  # fmt: skip
USUAL = Spread(np.array(_DAY), np.array(_HIGHEST))


def thinned(errors: Floats) -> Floats:
    """Return the errors that count for others, [moment, day of TABLE_DAYS], of those of all moments."""
    return np.asarray(errors[::THIN_DAYS][:, TABLE_DAYS - 1])


def spread_of(day_errors: Floats, highest_errors: Floats) -> Spread:
    """Return the spread of pooled errors, [error, day of TABLE_DAYS] with NaN where there is none."""
    return Spread(_quantiles(day_errors, USUAL.day), _quantiles(highest_errors, USUAL.highest))


def _quantiles(errors: Floats, usual: Floats) -> Floats:
    found = usual.copy()
    for number in range(len(TABLE_DAYS)):
        own = errors[:, number]
        own = own[np.isfinite(own)]
        if len(own):
            share = len(own) / (len(own) + _USUAL_COUNT)
            found[:, number] = share * np.quantile(own, LEVELS) * _WIDER + (1 - share) * usual[:, number]
    return found


def at_days(table: Floats, ahead: int) -> Floats:
    """Return a table for each day ahead, [level, day]; beyond the last one it stays."""
    days = np.arange(1, ahead + 1)
    return np.array([np.interp(np.log(days), np.log(TABLE_DAYS), row) for row in table])


def interval(
    crests: Floats, usual_errors: Floats, spread: Spread, share: float = 0.8
) -> tuple[Floats, Floats]:
    """Return the bounds between which this share of the crests of days to come lies, in bytes."""
    table = at_days(spread.day, len(crests))
    tail = (1 - share) / 2
    low = np.array([np.interp(tail, LEVELS, table[:, day]) for day in range(len(crests))])
    high = np.array([np.interp(1 - tail, LEVELS, table[:, day]) for day in range(len(crests))])
    return crests + usual_errors * low, crests + usual_errors * high


def within_disk(
    crests: Floats, usual_errors: Floats, spread: Spread, capacity_bytes: float, share: float = 0.8
) -> tuple[Floats, Floats, Floats]:
    """Return the crests of days to come and the bounds of their `interval`, between nothing and the disk."""
    low, high = interval(crests, usual_errors, spread, share)
    return (
        np.clip(crests, 0, capacity_bytes),
        np.clip(low, 0, capacity_bytes),
        np.clip(high, 0, capacity_bytes),
    )
