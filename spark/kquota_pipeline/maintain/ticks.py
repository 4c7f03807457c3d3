"""The cluster's state at each tick of 30 s."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.forecast.series import VOLUME, total_bytes

TICK_SECONDS = 30
_SEVERITY = {"OPEN": 0, "THROTTLE": 1, "PAUSE": 2}


def tick_rows(usage: DataFrame, decisions: DataFrame) -> DataFrame:
    """Return the rows of table `ticks` for the usage and decision rows given: whole days of both.

    Of a volume the last row in a tick counts. Volumes that have no vote (offline, metadata) count nowhere,
    failed ones only as such: their figures are not known. A tick without a usage row has no row.
    """
    tick = F.window("at", f"{TICK_SECONDS} seconds")["start"]
    # Most ticks have one row of a volume, so that groups of them would be nearly as many as rows.
    in_turn = Window.partitionBy(*VOLUME, "day").orderBy("at", "sequence")
    latest = (
        usage.withColumn("tick", tick)
        .withColumn("next_tick", F.lead("tick").over(in_turn))
        .where(~F.col("tick").eqNullSafe(F.col("next_tick")))
    )
    votes = (F.col("role") == "data") & (F.col("status") != "offline")
    known = votes & (F.col("status") == "ok")
    free_bytes = F.col("capacity_bytes") - F.col("consumed_bytes")
    volumes = latest.groupBy("cluster_id", "tick").agg(
        F.count_distinct("broker_id").cast("int").alias("brokers"),
        F.count_if(votes).cast("int").alias("volumes"),
        F.count_if(votes & (F.col("status") == "failed")).cast("int").alias("failed_volumes"),
        F.count_if(votes & F.col("latched")).cast("int").alias("latched_volumes"),
        total_bytes(F.when(known, F.col("capacity_bytes"))).alias("capacity_bytes"),
        total_bytes(F.when(known, F.col("consumed_bytes"))).alias("consumed_bytes"),
        F.min(F.when(known & (F.col("capacity_bytes") > 0), free_bytes / F.col("capacity_bytes"))).alias(
            "min_free_ratio"
        ),
        F.min(F.when(known, free_bytes)).alias("min_free_bytes"),
        F.max(F.when(known, F.col("consumed_bytes"))).alias("max_consumed_bytes"),
    )
    severity = F.create_map(*(F.lit(part) for pair in _SEVERITY.items() for part in pair))
    decided = decisions.groupBy("cluster_id", tick.alias("tick")).agg(
        F.max_by("state", severity[F.col("state")]).alias("decided_state"),
        F.min("factor").alias("decided_factor"),
        F.bool_or("fallback").alias("fallback"),
        F.count_distinct(F.when(F.col("mode") == "enforce", F.col("broker_id")))
        .cast("int")
        .alias("enforcing_brokers"),
    )
    return (
        volumes.join(decided, ["cluster_id", "tick"], "left")
        .withColumnRenamed("tick", "at")
        .withColumn("day", F.to_date("at"))
    )
