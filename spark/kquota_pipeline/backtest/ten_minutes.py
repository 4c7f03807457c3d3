"""The ten minutes of each volume: the samples that the closed loop reads, and no others."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.backtest.events import tick_of
from kquota_pipeline.forecast.series import VOLUME

STEP_SECONDS = 600
_TEXTS = (
    *("instance_id", "volume_id", "log_dirs", "mount_point", "status", "role"),
    *("hard_limit_type", "soft_limit_type", "applied_mechanism", "topics"),
)
_LAST = (
    *("sequence", "capacity_bytes", "consumed_bytes", "hard_limit_level", "soft_limit_level"),
    *("fill_ceiling_bytes_per_second", "topics_sequence"),
)


def ten_minute_rows(usage: DataFrame) -> DataFrame:
    """Return the rows of table `ten_minutes` for the usage rows given: whole days of them.

    A row is the last sample of a volume in ten minutes, with the columns of `usage` that a simulation or a
    recommendation reads; one for each value of its texts, such as its status, that it had there. A sample
    that names topics has a row of its own, because later ones refer to it. So a step of ten minutes or a
    multiple has the same last samples.
    """
    is_read = (F.col("role") == "data") & (F.col("status") == "ok")
    in_turn = Window.partitionBy(*VOLUME, "day", is_read).orderBy("at", "sequence")
    seconds = (F.unix_micros("at") - F.lag(F.unix_micros("at")).over(in_turn)) / 1e6
    same = F.lag("volume_id").over(in_turn).eqNullSafe(F.col("volume_id")) & (seconds > 0)
    filled = (F.col("consumed_bytes") - F.lag("consumed_bytes").over(in_turn)) / seconds
    names = F.when(F.col("topics").isNotNull(), F.col("sequence"))
    # A text that is aggregated would sort all samples.
    key = (*VOLUME, "day", *_TEXTS, "tick", "names")
    return (
        usage.withColumns({"rate": F.when(is_read & same, filled), "names": names})
        .withColumn("tick", tick_of("at", STEP_SECONDS))
        .groupBy(*key)
        .agg(
            F.max("at").alias("last_at"),
            *[F.max_by(name, "at").alias(name) for name in _LAST],
            F.min("at").alias("first_at"),
            F.min_by("consumed_bytes", "at").alias("first_bytes"),
            F.max("rate").alias("fill_bytes_per_second"),
            F.count("*").alias("samples"),
        )
        .withColumnRenamed("last_at", "at")
        .drop("tick", "names")
    )
