"""The hours of each volume: derived once from the samples of a closed day, otherwise when they are read.

An hour has 120 samples of a volume. A day that still gets samples has no hours in the table, so that none of
them lacks one.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.maintain.days import digest, files_of_days, last_digests
from kquota_pipeline.tables import HOURS, USAGE, Tables

_HOUR_SECONDS = 3600


def hour_rows(usage: DataFrame) -> DataFrame:
    """Return the rows of table `hours` for the usage rows given: whole hours of them."""
    at = F.timestamp_seconds(F.col("hour").cast("long") * _HOUR_SECONDS)
    return hourly(usage).withColumn("at", at).withColumn("day", F.to_date("at")).drop("hour")


def read_hours(spark: SparkSession, tables: Tables, first: date | None = None) -> DataFrame:
    """Return the hours of each volume, with the columns of `forecast.series.hourly`, from the day `first` on.

    Those of days that have not changed since `maintain` derived them are read, the others are made of their
    samples.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    usage = delta.of_days(delta.opened(spark, tables, USAGE), first)
    files = files_of_days(spark, tables, USAGE)
    derived = last_digests(spark, tables)[HOURS.name]
    changed = [day for day, names in files.items() if digest(names) != derived.get(day)]
    if len(changed) == len(files):
        return hourly(usage)
    hour = F.floor(F.unix_timestamp("at") / _HOUR_SECONDS).cast("int").alias("hour")
    ready = delta.of_days(delta.opened(spark, tables, HOURS), first).where(~_among(changed))
    made = hourly(usage.where(_among(changed)))
    return made.unionByName(ready.select("*", hour).drop("at", "day"))


def _among(days: Collection[date]) -> Column:
    return F.col("day").isin(list(days))
