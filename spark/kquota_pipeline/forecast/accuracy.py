"""How good such forecasts would have been, next to simpler ones: DataFrame → DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, IntegerType, StringType, StructField, StructType

from kquota_pipeline.forecast.conformal import spread_of, thinned, within_disk
from kquota_pipeline.forecast.history import DAY_HOURS, Floats, Looks
from kquota_pipeline.forecast.job import per_volume
from kquota_pipeline.forecast.looks import series_of
from kquota_pipeline.forecast.series import VOLUME
from kquota_pipeline.forecast.volume import volume_forecast

OURS = "forecast"
ERRORS = StructType(
    [
        StructField("cluster_id", StringType()),
        StructField("broker_id", IntegerType()),
        StructField("volume_name", StringType()),
        StructField("days_ahead", IntegerType()),
        StructField("method", StringType()),
        StructField("error_ratio", DoubleType()),  # foretold less real crest, as a share of the capacity
        StructField("inside", BooleanType()),  # the interval; null for methods without one
    ]
)


class _Foretold(NamedTuple):
    """By our forecast: each day's crest and the bounds of its interval; and the straight line's."""

    crests: Floats
    low: Floats
    high: Floats
    line: Floats


def forecast_errors(
    hours: DataFrame,
    looks: DataFrame | None = None,
    *,
    days: int = 7,
    held_back_days: Sequence[int] = (5, 7, 9, 11),
) -> DataFrame:
    """Return how wrong forecasts of up to `days` would have been (ERRORS), made `held_back_days` ago
    (input: series.hourly, looks.hourly_looks).

    Nothing after that moment is used. Each is of a day's crest, by four methods: the forecast; the
    least-squares line through all samples; the crest of the same weekday a week before (seasonal-naive); the
    crest of the last day (naive). The interval here is that of a volume without others of its kind.
    """

    def of_volume(own: pd.DataFrame, seen: Looks | None) -> pd.DataFrame:
        rows = [row for ago in held_back_days for row in _errors_of_volume(own, seen, days, ago)]
        frame = pd.DataFrame(rows, columns=ERRORS.fieldNames(), dtype=object)
        for name in VOLUME:
            frame[name] = own[name].iloc[0]
        return frame

    return per_volume(hours, looks, of_volume, ERRORS)


def accuracy(errors: DataFrame, *by: str) -> DataFrame:
    """Return for each method, and each of `by`, its mean and median absolute error (shares of the capacity),
    and its coverage.

    Columns: method, those of `by`, forecasts, mean_error_ratio, median_error_ratio, covered_ratio.
    """
    size = F.abs("error_ratio")
    return errors.groupBy("method", *by).agg(
        F.count("*").alias("forecasts"),
        F.avg(size).alias("mean_error_ratio"),
        F.percentile(size, F.lit(0.5)).alias("median_error_ratio"),
        F.avg(F.col("inside").cast("double")).alias("covered_ratio"),
    )


def _errors_of_volume(
    hours: pd.DataFrame, looks: Looks | None, days: int, days_ago: int
) -> Iterator[dict[str, object]]:
    now = int(hours["hour"].iloc[-1]) - days_ago * DAY_HOURS
    known, later = hours[hours["hour"] <= now], hours[hours["hour"] > now]
    if len(known) < 2 or int(known["hour"].iloc[-1]) < now - DAY_HOURS // 2:
        return
    found = volume_forecast(series_of(known), None if looks is None else looks.until(now))
    if found is None:
        return
    spread = spread_of(thinned(found.past_errors), thinned(found.past_highest))
    middles = (np.arange(days) + 0.5) * DAY_HOURS
    line = np.polyval(np.polyfit(known["hour"] - now, known["mean_bytes"], 1), middles)
    capacity_bytes = float(known["capacity_bytes"].iloc[-1])
    crests = within_disk(found.crest_bytes, found.usual_error_bytes, spread, capacity_bytes)
    foretold = _Foretold(*crests, np.asarray(line))
    for ahead in range(1, days + 1):
        real = _crest(later, now, ahead)
        if real is not None:
            yield from _errors_of_day(known, foretold, now, ahead, real)


def _errors_of_day(
    known: pd.DataFrame, foretold: _Foretold, now: int, ahead: int, real: float
) -> Iterator[dict[str, object]]:
    capacity = float(known["capacity_bytes"].iloc[-1])
    day = ahead - 1
    yesterday = _crest(known, now, 0) or float(known["crest_bytes"].iloc[-1])
    crests = {
        OURS: float(foretold.crests[day]),
        "straight line": float(foretold.line[day]),
        "seasonal-naive": _crest(known, now, ahead - 7) or yesterday,
        "naive": yesterday,
    }
    for method, crest in crests.items():
        inside = bool(foretold.low[day] <= real <= foretold.high[day]) if method == OURS else None
        yield {
            "days_ahead": ahead,
            "method": method,
            "error_ratio": (crest - real) / capacity,
            "inside": inside,
        }


def _crest(hours: pd.DataFrame, now: int, day: int) -> float | None:
    """Return the crest of the day that ends `day` days after `now`; None where most of it is missing."""
    end = now + day * DAY_HOURS
    inside = hours[(hours["hour"] > end - DAY_HOURS) & (hours["hour"] <= end)]
    return float(inside["crest_bytes"].max()) if len(inside) >= DAY_HOURS // 2 else None
