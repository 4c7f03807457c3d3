"""The forecast of every volume, and how good such forecasts would have been: DataFrame → DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kquota_pipeline.forecast.series import VOLUME
from kquota_pipeline.forecast.times import time_to_limit
from kquota_pipeline.forecast.trend import DAY_HOURS, Series, Trend, trend_of

_VOLUME_FIELDS = [
    StructField("cluster_id", StringType()),
    StructField("broker_id", IntegerType()),
    StructField("volume_name", StringType()),
]
_LIMITS = ("soft", "hard")
FORECAST = StructType(
    [
        *_VOLUME_FIELDS,
        StructField("mount_point", StringType()),
        StructField("hour", LongType()),  # the last hour of the history, since the epoch
        StructField("capacity_bytes", LongType()),
        StructField("consumed_bytes", LongType()),
        StructField("soft_bytes", DoubleType()),
        StructField("hard_bytes", DoubleType()),
        StructField("level_bytes", DoubleType()),  # of the crests; null with too little history, and so below
        StructField("slope_bytes_per_day", DoubleType()),
        # The interval: how far off the crest of the next day is, at most; times forecast.trend.reach.
        StructField("spread_low_bytes", DoubleType()),
        StructField("spread_high_bytes", DoubleType()),
        StructField("crests", IntegerType()),
        *[
            StructField(f"{limit}_{name}", kind)
            for limit in _LIMITS
            for name, kind in (
                ("outlook", StringType()),
                ("days", DoubleType()),
                ("early_days", DoubleType()),
                ("late_days", DoubleType()),
            )
        ],
    ]
)
ERRORS = StructType(
    [
        *_VOLUME_FIELDS,
        StructField("days_ahead", IntegerType()),
        StructField("method", StringType()),
        StructField("error_ratio", DoubleType()),  # foretold less real crest, as a share of the capacity
        StructField("inside", BooleanType()),  # the interval; null for methods without one
    ]
)


def forecast(hours: DataFrame) -> DataFrame:
    """Return one row per volume (FORECAST): its trend, and when it reaches its soft and hard limit (input:
    series.hourly).

    Volumes that the cluster has not heard of for a day (decommissioned, replaced under another name) have no
    future, and no row.
    """
    rows = hours.groupBy(*VOLUME).applyInPandas(_forecast_volume, FORECAST)
    newest = F.max("hour").over(Window.partitionBy("cluster_id"))
    recent = F.col("hour") > F.col("newest") - DAY_HOURS
    return rows.withColumn("newest", newest).where(recent).drop("newest")


def forecast_errors(
    hours: DataFrame, days: int = 7, held_back_days: Sequence[int] = (5, 7, 9, 11)
) -> DataFrame:
    """Return how wrong forecasts of up to `days` would have been (ERRORS), made `held_back_days` ago (input:
    series.hourly).

    Nothing after that moment is used. Each is of a day's crest, by four methods: the trend of the crests; the
    least-squares line through all samples; the crest of the same weekday a week before (seasonal-naive); the
    crest of the last day (naive).
    """

    def of_volume(own: pd.DataFrame) -> pd.DataFrame:
        parts = [_errors_of_volume(own, days, ago) for ago in held_back_days]
        whole = [part for part in parts if len(part)]
        return pd.concat(whole, ignore_index=True) if whole else parts[0]

    return hours.groupBy(*VOLUME).applyInPandas(of_volume, ERRORS)


def accuracy(errors: DataFrame) -> DataFrame:
    """Return for each method its mean and median absolute error (shares of the capacity), and its coverage.

    Columns: method, forecasts, mean_error_ratio, median_error_ratio, covered_ratio.
    """
    return _accuracy(errors, "method")


def accuracy_by_day(errors: DataFrame) -> DataFrame:
    """Return the same for each method and this many days ahead (column days_ahead)."""
    return _accuracy(errors, "method", "days_ahead")


def _accuracy(errors: DataFrame, *by: str) -> DataFrame:
    size = F.abs("error_ratio")
    return errors.groupBy(*by).agg(
        F.count("*").alias("forecasts"),
        F.avg(size).alias("mean_error_ratio"),
        F.percentile(size, F.lit(0.5)).alias("median_error_ratio"),
        F.avg(F.col("inside").cast("double")).alias("covered_ratio"),
    )


def _series(hours: pd.DataFrame) -> Series:
    return Series(
        hours=hours["hour"].to_numpy(dtype=np.int64),
        crest_bytes=hours["crest_bytes"].to_numpy(dtype=float),
        held=hours["held"].to_numpy(dtype=float),
        capacity_bytes=float(hours["capacity_bytes"].iloc[-1]),
        volume_ids=hours["volume_id"].to_numpy(dtype=object),
    )


def _forecast_volume(hours: pd.DataFrame) -> pd.DataFrame:
    hours = hours.sort_values("hour")
    last = hours.iloc[-1]
    trend = trend_of(_series(hours))
    row = {
        name: last[name]
        for name in (*VOLUME, "mount_point", "hour", "capacity_bytes", "soft_bytes", "hard_bytes")
    }
    row["consumed_bytes"] = last["last_bytes"]
    for field in ("level_bytes", "slope_bytes_per_day", "spread_low_bytes", "spread_high_bytes", "crests"):
        row[field] = None if trend is None else getattr(trend, field)
    for limit in _LIMITS:
        time = time_to_limit(trend, float(last["last_bytes"]), float(last[f"{limit}_bytes"]))
        row |= {
            f"{limit}_outlook": time.outlook.value,
            f"{limit}_days": time.days,
            f"{limit}_early_days": time.early_days,
            f"{limit}_late_days": time.late_days,
        }
    return pd.DataFrame([row], columns=FORECAST.fieldNames())


def _errors_of_volume(hours: pd.DataFrame, days: int, days_ago: int) -> pd.DataFrame:
    hours = hours.sort_values("hour")
    now = int(hours["hour"].iloc[-1]) - days_ago * DAY_HOURS
    known, later = hours[hours["hour"] <= now], hours[hours["hour"] > now]
    rows: list[dict[str, object]] = []
    if len(known) >= 2:
        trend = trend_of(_series(known))
        line = np.polyfit(known["hour"] - now, known["mean_bytes"], 1)
        for ahead in range(1, days + 1):
            real = _crest(later, now, ahead)
            if trend is not None and real is not None:
                rows += _errors_of_day(known, trend, line, now, ahead, real)
    frame = pd.DataFrame(rows, columns=ERRORS.fieldNames(), dtype=object)
    for name in VOLUME:
        frame[name] = hours[name].iloc[0]
    return frame


def _errors_of_day(
    known: pd.DataFrame, trend: Trend, line: np.ndarray, now: int, ahead: int, real: float
) -> Iterator[dict[str, object]]:
    capacity = float(known["capacity_bytes"].iloc[-1])
    middle = now + ahead * DAY_HOURS - DAY_HOURS / 2
    low, high = trend.band_at(middle)
    yesterday = _crest(known, now, 0) or float(known["crest_bytes"].iloc[-1])
    foretold = {
        "trend of crests": trend.crest_at(middle),
        "straight line": float(np.polyval(line, middle - now)),
        "seasonal-naive": _crest(known, now, ahead - 7) or yesterday,
        "naive": yesterday,
    }
    for method, crest in foretold.items():
        inside = low <= real <= high if method == "trend of crests" else None
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
