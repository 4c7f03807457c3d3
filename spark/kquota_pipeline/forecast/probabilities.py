"""From a forecast to probabilities: that a volume reaches a limit within some days, and in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from kquota_pipeline.forecast.conformal import LEVELS, Spread, at_days
from kquota_pipeline.forecast.history import Floats

WITHIN_DAYS = (1, 3, 7, 14, 21, 30)
"""The days of which probabilities are reported."""
LIKELY = 0.5
POSSIBLE = 0.25
"""From this probability on a volume deserves a look."""
# Beyond the outermost quantiles an error becomes rarer with the distance, by this share of the spread.
_TAIL = 0.35


class Outlook(StrEnum):
    """The prospects of a volume within the last of WITHIN_DAYS."""

    OVER = "over the limit"
    FILLING = "filling"
    PERHAPS = "perhaps filling"
    NOT_FILLING = "not filling"
    UNKNOWN = "too little history"
    UNKNOWN_LIMIT = "limit of an unknown type"


def reached_by_day(crests: Floats, usual_errors: Floats, spread: Spread, limit_bytes: float) -> Floats:
    """Return the probability, [day], that the limit is reached until the end of each day to come."""
    table = at_days(spread.highest, len(crests))
    highest = np.maximum.accumulate(crests)
    distance = (limit_bytes - highest) / usual_errors
    found = [1 - _share_below(table[:, day], float(distance[day])) for day in range(len(crests))]
    return np.maximum.accumulate(np.array(found))


def _share_below(quantiles: Floats, error: float) -> float:
    quantiles = np.maximum.accumulate(quantiles + np.arange(len(quantiles)) * 1e-9)
    width = max(float(quantiles[-1] - quantiles[0]), 1e-9)
    if error > quantiles[-1]:
        return float(1 - (1 - LEVELS[-1]) * np.exp(-(error - quantiles[-1]) / (_TAIL * width)))
    if error < quantiles[0]:
        return float(LEVELS[0] * np.exp(-(quantiles[0] - error) / (_TAIL * width)))
    return float(np.interp(error, quantiles, LEVELS))


def days_until(reached: Floats, probability: float = LIKELY) -> float | None:
    """Return the days until the limit is reached with this probability; None is not within the days of
    `reached`.
    """
    there = np.flatnonzero(reached >= probability)
    if not len(there):
        return None
    day = int(there[0])
    before = float(reached[day - 1]) if day else 0.0
    rise = float(reached[day]) - before
    return day + (min(max((probability - before) / rise, 0.0), 1.0) if rise > 0 else 0.0)


def outlook(reached: Floats | None, now_bytes: float, limit_bytes: float | None) -> Outlook:
    """Return in a word what to expect: `filling` is likely within the days of `reached`, `perhaps filling`
    possible. A limit is None if its type is not one of kquota.policy.limits.LimitType.
    """
    if limit_bytes is None:
        return Outlook.UNKNOWN_LIMIT
    if now_bytes >= limit_bytes:
        return Outlook.OVER
    if reached is None:
        return Outlook.UNKNOWN
    last = float(reached[-1])
    if last >= LIKELY:
        return Outlook.FILLING
    return Outlook.PERHAPS if last >= POSSIBLE else Outlook.NOT_FILLING


def within(reached: Floats) -> Sequence[float]:
    """Return the probabilities of WITHIN_DAYS."""
    return [float(reached[day - 1]) for day in WITHIN_DAYS]
