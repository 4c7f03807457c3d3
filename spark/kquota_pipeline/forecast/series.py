"""Usage samples → one series of hours per volume, by column expressions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota.policy.limits import LimitType

VOLUME = ("cluster_id", "broker_id", "volume_name")

# Sums of integers are the same in whatever order the rows come. Those of bytes are of two parts, as file
# systems that call themselves 8 EiB, as some do, exceed a long.
_LOW_BITS = 20
_HELD_PARTS = 1 << 40


def limit_bytes(kind: str) -> Column:
    """Return the consumption, in bytes, at which a row's volume stands at its `hard` or `soft` limit.

    The same conversion as `kquota.policy.limits.Limit.consumed_at_bytes`, in binary floating point.
    """
    level, capacity = F.col(f"{kind}_limit_level"), F.col("capacity_bytes").cast("double")
    found = F.lit(None).cast("double")
    for limit_type in LimitType:
        amount = capacity * (level / 100) if limit_type.in_percent else level
        consumed = capacity - amount if limit_type.counts_free else amount
        found = F.when(F.col(f"{kind}_limit_type") == limit_type.value, consumed).otherwise(found)
    return found


def total_bytes(sizes: Column) -> Column:
    """Return the sum of sizes: two file systems that call themselves 8 EiB, as some do, exceed a long."""
    return F.sum(sizes.cast("double"))


def hourly(usage: DataFrame) -> DataFrame:
    """Return one row per volume and hour: its crest, its mean, its last figures, and whether producers were
    held.

    Rows of metadata volumes and of volumes that could not be read are left out: their figures are old. Hours
    without a sample have no row.

    Columns: cluster_id, broker_id, volume_name, hour (epoch hours), crest_bytes, lowest_bytes, mean_bytes,
    last_bytes, capacity_bytes, volume_id, mount_point, hard_bytes, soft_bytes, held (the share of their
    rate that producers were denied), samples. `maintain.derived.read_hours` returns the same of all
    tables, and reads no sample twice.
    """
    read = usage.where((F.col("role") == "data") & (F.col("status") == "ok"))
    # A text that is aggregated would sort all samples. As a key it is hashed, and few rows are left to sort.
    texts = ("volume_id", "mount_point")
    hour = F.expr(f"unix_micros(at) div {3600 * 10**6}").cast("int")
    parts = read.groupBy(*VOLUME, *texts, hour.alias("hour")).agg(
        F.max("consumed_bytes").alias("crest_bytes"),
        F.min("consumed_bytes").alias("lowest_bytes"),
        F.sum(F.shiftright("consumed_bytes", _LOW_BITS)).alias("high_sum"),
        F.sum(F.col("consumed_bytes").bitwiseAND((1 << _LOW_BITS) - 1)).alias("low_sum"),
        F.max("at").alias("at"),
        F.max_by("consumed_bytes", "at").alias("last_bytes"),
        F.max_by("capacity_bytes", "at").alias("capacity_bytes"),
        F.max_by(limit_bytes("hard"), "at").alias("hard_bytes"),
        F.max_by(limit_bytes("soft"), "at").alias("soft_bytes"),
        F.sum(F.round((1 - F.coalesce("applied_factor", F.lit(1.0))) * _HELD_PARTS).cast("long")).alias(
            "held"
        ),
        F.count("*").alias("samples"),
    )
    sum_bytes = F.sum("high_sum") * float(1 << _LOW_BITS) + F.sum("low_sum")
    last = ("last_bytes", "capacity_bytes", *texts, "hard_bytes", "soft_bytes")
    return (
        parts.groupBy(*VOLUME, "hour")
        .agg(
            F.max("crest_bytes").alias("crest_bytes"),
            F.min("lowest_bytes").alias("lowest_bytes"),
            (sum_bytes / F.sum("samples")).alias("mean_bytes"),
            F.max_by(F.struct(*last), "at").alias("last"),
            (F.sum("held") / _HELD_PARTS / F.sum("samples")).alias("held"),
            F.sum("samples").alias("samples"),
        )
        .select(
            *VOLUME, "hour", "crest_bytes", "lowest_bytes", "mean_bytes",
            *(f"last.{name}" for name in last), "held", "samples",
        )
    )  # fmt: skip


def latest(usage: DataFrame) -> DataFrame:
    """Return the newest row of each volume."""
    newest = Window.partitionBy(*VOLUME).orderBy(F.col("at").desc(), F.col("sequence").desc())
    return usage.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")
