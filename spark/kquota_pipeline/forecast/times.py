"""From a trend to a time: when the crests reach a limit, and in plain words whether they do at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kquota_pipeline.forecast.trend import Trend

# Who looks further ahead than this looks into a crystal.
HORIZON_DAYS = 180.0


class Outlook(StrEnum):
    """What the crests of a volume do."""

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
    days = _days(limit_bytes - trend.level_bytes, trend.slope_bytes_per_day)
    early = _days(
        limit_bytes - trend.level_bytes - max(0.0, trend.scatter_high_bytes), trend.slope_high_bytes_per_day
    )
    late = _days(
        limit_bytes - trend.level_bytes - min(0.0, trend.scatter_low_bytes), trend.slope_low_bytes_per_day
    )
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
