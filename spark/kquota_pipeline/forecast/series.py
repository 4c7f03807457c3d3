"""Usage samples → one series of hours per volume, by column expressions."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# Time is cut into spans of 2^37 µs, some 38 hours.
_SPAN_BITS = 37
_SPAN_SECONDS = 2**_SPAN_BITS / 1e6
# Near the samples, whenever they are from: it begins on the last day of 2025.
_ORIGIN_SPAN = 12_858
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
        F.sum("consumed_bytes").alias("sum_bytes"),
        F.max("at").alias("at"),
        F.max_by("consumed_bytes", "at").alias("last_bytes"),
        F.max_by("capacity_bytes", "at").alias("capacity_bytes"),
        F.max_by(limit_bytes("hard"), "at").alias("hard_bytes"),
        F.max_by(limit_bytes("soft"), "at").alias("soft_bytes"),
        F.sum(1 - F.coalesce("applied_factor", F.lit(1.0))).alias("held"),
        F.count("*").alias("samples"),
    )
    last = ("last_bytes", "capacity_bytes", *texts, "hard_bytes", "soft_bytes")
    return (
        parts.groupBy(*VOLUME, "hour")
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


def straight_line(usage: DataFrame) -> DataFrame:
    """Return the least-squares line of each volume over all its samples.

    Columns: cluster_id, broker_id, volume_name, slope_bytes_per_second (null for samples of one moment),
    level_bytes (at the mean time), mean_at (epoch seconds), samples.
    """
    # Plain sums are a third of the work of Spark's regr_slope, but lose digits where times are large compared
    # with their spread. So they are of times since the beginning of a span, and few sums of spans are shifted
    # to one origin. A span and its remainder, in µs, are bits of the time: days would cost divisions.
    micros = F.unix_micros("at")
    x = micros.bitwiseAND(F.lit(2**_SPAN_BITS - 1)).cast("double")
    y = F.col("consumed_bytes").cast("double")
    spans = usage.groupBy(*VOLUME, F.shiftright(micros, _SPAN_BITS).alias("_span")).agg(
        F.count("*").alias("n"),
        F.sum(x).alias("x"),
        F.sum(y).alias("y"),
        F.sum(x * y).alias("xy"),
        F.sum(x * x).alias("xx"),
    )
    shift = (F.col("_span") - _ORIGIN_SPAN) * F.lit(_SPAN_SECONDS)
    x, xy, xx = F.col("x") / 1e6, F.col("xy") / 1e6, F.col("xx") / 1e12
    sums = spans.groupBy(*VOLUME).agg(
        F.sum("n").alias("samples"),
        F.sum(x + F.col("n") * shift).alias("_x"),
        F.sum("y").alias("_y"),
        F.sum(xy + F.col("y") * shift).alias("_xy"),
        F.sum(xx + 2 * shift * x + F.col("n") * shift * shift).alias("_xx"),
    )
    n = F.col("samples")
    spread = n * F.col("_xx") - F.col("_x") * F.col("_x")
    together = n * F.col("_xy") - F.col("_x") * F.col("_y")
    return sums.select(
        *VOLUME,
        # Samples of one moment have a spread of nothing but rounding.
        F.when(spread > 1e-12 * n * F.col("_xx"), together / spread).alias("slope_bytes_per_second"),
        (F.col("_y") / n).alias("level_bytes"),
        (F.col("_x") / n + _ORIGIN_SPAN * _SPAN_SECONDS).alias("mean_at"),
        "samples",
    )


def latest(usage: DataFrame) -> DataFrame:
    """Return the newest row of each volume."""
    newest = Window.partitionBy(*VOLUME).orderBy(F.col("at").desc(), F.col("sequence").desc())
    return usage.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank")
