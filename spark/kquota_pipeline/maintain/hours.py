"""The hours of each volume: derived once from the samples of a closed day, otherwise when they are read.

An hour has 120 samples of a volume. A day that still gets samples has no hours in the table, so that none of
them lacks one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota_pipeline.forecast.series import hourly

_HOUR_SECONDS = 3600


def hour_rows(usage: DataFrame) -> DataFrame:
    """Return the rows of table `hours` for the usage rows given: whole hours of them."""
    at = F.timestamp_seconds(F.col("hour").cast("long") * _HOUR_SECONDS)
    return hourly(usage).withColumn("at", at).withColumn("day", F.to_date("at")).drop("hour")


def as_hourly(rows: DataFrame) -> DataFrame:
    """Return rows of table `hours` with the columns of `forecast.series.hourly`."""
    hour = F.floor(F.unix_timestamp("at") / _HOUR_SECONDS).cast("int").alias("hour")
    return rows.select("*", hour).drop("at", "day")
