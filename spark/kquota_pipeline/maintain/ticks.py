"""The cluster's state at each tick of 30 s."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

TICK_SECONDS = 30
_SEVERITY = {"OPEN": 0, "THROTTLE": 1, "PAUSE": 2}
_FIGURES = ("status", "role", "latched", "capacity_bytes", "consumed_bytes")


def tick_rows(usage: DataFrame, decisions: DataFrame) -> DataFrame:
    """Return the rows of table `ticks` for the usage and decision rows given: whole days of both.

    Of a volume the last row in a tick counts. Volumes that have no vote (offline, metadata) count nowhere,
    failed ones only as such: their figures are not known. A tick without a usage row has no row.
    """
    place = ("cluster_id", F.window("at", f"{TICK_SECONDS} seconds")["start"].alias("tick"))
    latest = (
        usage.groupBy(*place, "broker_id", "volume_name")
        .agg(F.max_by(F.struct(*_FIGURES), F.struct("at", "sequence")).alias("volume"))
        .select("cluster_id", "tick", "broker_id", "volume.*")
    )
    votes = (F.col("role") == "data") & (F.col("status") != "offline")
    known = votes & (F.col("status") == "ok")
    free_bytes = F.col("capacity_bytes") - F.col("consumed_bytes")
    volumes = latest.groupBy("cluster_id", "tick").agg(
        F.count_distinct("broker_id").cast("int").alias("brokers"),
        F.count_if(votes).cast("int").alias("volumes"),
        F.count_if(votes & (F.col("status") == "failed")).cast("int").alias("failed_volumes"),
        F.count_if(votes & F.col("latched")).cast("int").alias("latched_volumes"),
        F.sum(F.when(known, F.col("capacity_bytes"))).alias("capacity_bytes"),
        F.sum(F.when(known, F.col("consumed_bytes"))).alias("consumed_bytes"),
        F.min(F.when(known & (F.col("capacity_bytes") > 0), free_bytes / F.col("capacity_bytes"))).alias(
            "min_free_ratio"
        ),
        F.min(F.when(known, free_bytes)).alias("min_free_bytes"),
        F.max(F.when(known, F.col("consumed_bytes"))).alias("max_consumed_bytes"),
    )
    severity = F.create_map(*(F.lit(part) for pair in _SEVERITY.items() for part in pair))
    decided = decisions.groupBy(*place).agg(
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
