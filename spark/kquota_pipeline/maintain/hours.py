"""The hours of each volume: derived once from the samples and looks of a closed day, otherwise when they are
read.

An hour has 120 samples of a volume, and six looks. A day that still gets some has no hours in the table, so
that none of them lacks one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota_pipeline.forecast.looks import hourly_looks
from kquota_pipeline.forecast.series import hourly

_HOUR_SECONDS = 3600


def hour_rows(usage: DataFrame) -> DataFrame:
    """Return the rows of table `hours` for the usage rows given: whole hours of them."""
    return _at_times(hourly(usage))


def as_hourly(rows: DataFrame) -> DataFrame:
    """Return rows of table `hours` with the columns of `forecast.series.hourly`."""
    return _in_hours(rows, "int")


def look_rows(expiry: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the rows of table `looks` for whole hours of the tables `expiry` and `topics`."""
    return _at_times(hourly_looks(expiry, topics))


def as_hourly_looks(rows: DataFrame) -> DataFrame:
    """Return rows of table `looks` with the columns of `forecast.looks.hourly_looks`."""
    return _in_hours(rows, "long")


def _at_times(by_hour: DataFrame) -> DataFrame:
    at = F.timestamp_seconds(F.col("hour").cast("long") * _HOUR_SECONDS)
    return by_hour.withColumn("at", at).withColumn("day", F.to_date("at")).drop("hour")


def _in_hours(rows: DataFrame, kind: str) -> DataFrame:
    hour = F.floor(F.unix_timestamp("at") / _HOUR_SECONDS).cast(kind).alias("hour")
    return rows.select("*", hour).drop("at", "day")
