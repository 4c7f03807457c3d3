"""The least-squares line of each volume over all its samples.

No job of the pipeline needs lines, as forecasts follow the crests of days. They show what sums of products of
all samples cost, which an analysis of an operator's own may need.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota_pipeline.forecast.series import VOLUME

# Time is cut into spans of 2^37 µs, some 38 hours.
_SPAN_BITS = 37
_SPAN_SECONDS = 2**_SPAN_BITS / 1e6
# Near the samples, whenever they are from: it begins on the last day of 2025.
_ORIGIN_SPAN = 12_858


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
