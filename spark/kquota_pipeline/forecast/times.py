"""From a trend to a time: when the crests reach a limit, and in plain words whether they do at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kquota_pipeline.forecast.trend import DAY_HOURS, Trend, reach

# A forecast beyond this is a guess.
HORIZON_DAYS = 180.0
_DAYS = np.arange(0, HORIZON_DAYS * DAY_HOURS + 1) / DAY_HOURS


class Outlook(StrEnum):
    """The behaviour of the peaks of a volume."""

    OVER = "over the limit"
    FILLING = "filling"
    PERHAPS = "perhaps filling"
    NOT_FILLING = "not filling"
    UNKNOWN = "too little history"


@dataclass(frozen=True, slots=True)
class TimeToLimit:
    """Days from now until the crests reach a limit; None is "not within HORIZON_DAYS".

    `early_days` is what one in ten would undercut, `late_days` what one in ten would exceed.
    """

    outlook: Outlook
    days: float | None
    early_days: float | None
    late_days: float | None


def time_to_limit(trend: Trend | None, now_bytes: float, limit_bytes: float) -> TimeToLimit:
    """Return when the crests of a volume that holds `now_bytes` reach `limit_bytes`."""
    if now_bytes >= limit_bytes:
        return TimeToLimit(Outlook.OVER, 0.0, 0.0, 0.0)
    if trend is None:
        return TimeToLimit(Outlook.UNKNOWN, None, None, None)
    distance = limit_bytes - trend.level_bytes
    days = _days(distance, trend.slope_bytes_per_day)
    early = _first_day(distance, trend.slope_bytes_per_day, trend.spread_high_bytes)
    late = _first_day(distance, trend.slope_bytes_per_day, trend.spread_low_bytes)
    if early is None:
        outlook = Outlook.NOT_FILLING
    else:
        outlook = Outlook.PERHAPS if days is None or late is None else Outlook.FILLING
    return TimeToLimit(outlook, days, early, late)


def _days(distance_bytes: float, bytes_per_day: float) -> float | None:
    if distance_bytes <= 0:
        return 0.0
    if bytes_per_day <= 0:
        return None
    days = distance_bytes / bytes_per_day
    return days if days <= HORIZON_DAYS else None


def _first_day(distance_bytes: float, bytes_per_day: float, spread_bytes: float) -> float | None:
    """Return the first moment, to the hour, at which a border of the interval is at the limit."""
    there = np.flatnonzero(bytes_per_day * _DAYS + spread_bytes * reach(_DAYS) >= distance_bytes)
    return float(_DAYS[there[0]]) if len(there) else None
