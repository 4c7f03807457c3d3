"""Usage samples → one series of hours per volume, by column expressions."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.numbered import NUMBER, described, votes, with_number, without_number

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


def _sums() -> dict[str, Column]:
    """Return what a group of samples comes to, whatever the group."""
    return {
        "crest_bytes": F.max("consumed_bytes"),
        "lowest_bytes": F.min("consumed_bytes"),
        "sum_bytes": F.sum("consumed_bytes"),
        "at": F.max("at"),
        "last_bytes": F.max_by("consumed_bytes", "at"),
        "capacity_bytes": F.max_by("capacity_bytes", "at"),
        "held": F.sum(1 - F.coalesce("applied_factor", F.lit(1.0))),
        "samples": F.count("*"),
    }


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
    last = ("last_bytes", "capacity_bytes", "volume_id", "mount_point", "hard_bytes", "soft_bytes")
    return (
        _parts_by_number(usage)
        .unionByName(_parts_by_texts(usage))
        .groupBy(*VOLUME, "hour")
        .agg(
            F.max("crest_bytes").alias("crest_bytes"),
            F.min("lowest_bytes").alias("lowest_bytes"),
            (F.sum("sum_bytes") / F.sum("samples")).alias("mean_bytes"),
            F.max_by(F.struct(*last), "at").alias("last"),
            (F.sum("held") / F.sum("samples")).alias("held"),
            F.sum("samples").alias("samples"),
        )
        .select(
            *VOLUME, "hour", "crest_bytes", "lowest_bytes", "mean_bytes",
            *(f"last.{name}" for name in last), "held", "samples",
        )
    )  # fmt: skip


def _named(columns: Mapping[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]


def _hour() -> Column:
    return F.expr(f"unix_micros(at) div {3600 * 10**6}").cast("int")


def _parts_by_texts(usage: DataFrame) -> DataFrame:
    """Return the parts of hours that samples without a number come to."""
    # A text that is aggregated would sort all samples. As a key it is hashed, and few rows are left to sort.
    keys = (*VOLUME, "volume_id", "mount_point", _hour().alias("hour"))
    limits = [F.max_by(limit_bytes(kind), "at").alias(f"{kind}_bytes") for kind in ("hard", "soft")]
    return without_number(usage).where(votes()).groupBy(*keys).agg(*_named(_sums()), *limits)


def _parts_by_number(usage: DataFrame) -> DataFrame:
    """Return the same of the samples with a number; it stands for the limits, too."""
    parts = with_number(usage).groupBy(NUMBER, _hour().alias("hour")).agg(*_named(_sums()))
    limits = [limit_bytes(kind).alias(f"{kind}_bytes") for kind in ("hard", "soft")]
    found = described(parts, usage, votes())
    return found.select(*VOLUME, "volume_id", "mount_point", "hour", *_sums(), *limits)


def latest(usage: DataFrame) -> DataFrame:
    """Return the newest row of each volume."""
    newest = Window.partitionBy(*VOLUME).orderBy(F.col("at").desc(), F.col("sequence").desc())
    return usage.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")
