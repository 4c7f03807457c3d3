"""Usage samples → one series of hours per volume, by column expressions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

VOLUME = ("cluster_id", "broker_id", "volume_name")


def limit_bytes(kind: str) -> Column:
    """Return the consumption, in bytes, at which a row's volume stands at its `hard` or `soft` limit.

    The same conversion as `kquota.core.limits.Limit.consumed_at_bytes`, in binary floating point.
    """
    level, capacity = F.col(f"{kind}_limit_level"), F.col("capacity_bytes").cast("double")
    return (
        F.when(F.col(f"{kind}_limit_type") == "ConsumedSpace", level)
        .when(F.col(f"{kind}_limit_type") == "MinFreeBytes", capacity - level)
        .when(F.col(f"{kind}_limit_type") == "MinFreePercentage", capacity * (1 - level / 100))
    )


def hourly(usage: DataFrame) -> DataFrame:
    """Return one row per volume and hour: its crest, its mean, its last figures, and whether producers were
    held.

    Rows of metadata volumes and of volumes that could not be read are left out: their figures are old. Hours
    without a sample have no row.

    Columns: cluster_id, broker_id, volume_name, hour (epoch hours), crest_bytes, mean_bytes, last_bytes,
    capacity_bytes, volume_id, mount_point, hard_bytes, soft_bytes, held (the share of their
    rate that producers were denied).
    """
    read = usage.where((F.col("role") == "data") & (F.col("status") == "ok"))
    hour = F.floor(F.unix_timestamp("at") / 3600).cast("int")
    return read.groupBy(*VOLUME, hour.alias("hour")).agg(
        F.max("consumed_bytes").alias("crest_bytes"),
        F.avg("consumed_bytes").alias("mean_bytes"),
        *[F.max_by(column, "at").alias(name) for column, name in (
            ("consumed_bytes", "last_bytes"), ("capacity_bytes", "capacity_bytes"),
            ("volume_id", "volume_id"), ("mount_point", "mount_point"),
        )],
        F.max_by(limit_bytes("hard"), "at").alias("hard_bytes"),
        F.max_by(limit_bytes("soft"), "at").alias("soft_bytes"),
        (1 - F.avg(F.coalesce("applied_factor", F.lit(1.0)))).alias("held"),
    )  # fmt: skip


def straight_line(usage: DataFrame) -> DataFrame:
    """Return the least-squares line of each volume over all its samples.

    Columns: cluster_id, broker_id, volume_name, slope_bytes_per_second, level_bytes (at the mean time),
    mean_at (epoch seconds), samples.
    """
    seconds = F.unix_timestamp("at").cast("double")
    return usage.groupBy(*VOLUME).agg(
        F.regr_slope(F.col("consumed_bytes").cast("double"), seconds).alias("slope_bytes_per_second"),
        F.avg("consumed_bytes").alias("level_bytes"),
        F.avg(seconds).alias("mean_at"),
        F.count("*").alias("samples"),
    )


def latest(usage: DataFrame) -> DataFrame:
    """Return the newest row of each volume."""
    newest = Window.partitionBy(*VOLUME).orderBy(F.col("at").desc(), F.col("sequence").desc())
    return usage.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")
