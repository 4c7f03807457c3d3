"""How unevenly a cluster's volumes are filled, and what one move would gain."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.forecast.series import latest, total_bytes

_MOVED = ("broker_id", "volume_name", "capacity_bytes", "consumed_bytes", "used_ratio")


def volumes_now(usage: DataFrame) -> DataFrame:
    """Return the voting volumes as they stand: those of brokers heard of within the cluster's last hour.

    Columns: cluster_id, broker_id, volume_name, mount_point, capacity_bytes, consumed_bytes, used_ratio.
    """
    rows = latest(usage.where((F.col("role") == "data") & (F.col("status") == "ok")))
    cluster = Window.partitionBy("cluster_id")
    recent = F.col("at") >= F.max("at").over(cluster) - F.expr("INTERVAL 1 HOUR")
    return (
        rows.withColumn("_recent", recent)
        .where("_recent AND capacity_bytes > 0")
        .select(
            "cluster_id", "broker_id", "volume_name", "mount_point", "capacity_bytes", "consumed_bytes",
            (F.col("consumed_bytes") / F.col("capacity_bytes")).alias("used_ratio"),
        )
    )  # fmt: skip


def broker_skew(volumes: DataFrame) -> DataFrame:
    """Return for each broker how full it is and how uneven its volumes are (input: volumes_now).

    `spread_ratio` is the fullest less the emptiest volume. Columns: cluster_id, broker_id, volumes,
    capacity_bytes, consumed_bytes, used_ratio, fullest_ratio, emptiest_ratio, spread_ratio.
    """
    return (
        volumes.groupBy("cluster_id", "broker_id")
        .agg(
            F.count("*").alias("volumes"),
            total_bytes(F.col("capacity_bytes")).alias("capacity_bytes"),
            total_bytes(F.col("consumed_bytes")).alias("consumed_bytes"),
            F.max("used_ratio").alias("fullest_ratio"),
            F.min("used_ratio").alias("emptiest_ratio"),
        )
        .withColumn("used_ratio", F.col("consumed_bytes") / F.col("capacity_bytes"))
        .withColumn("spread_ratio", F.col("fullest_ratio") - F.col("emptiest_ratio"))
    )


def best_moves(volumes: DataFrame) -> DataFrame:
    """Return for each cluster the move that lowers its fullest volume most (input: volumes_now).

    Moving bytes from the fullest to the emptiest volume until both are equally full brings the cluster's
    fullest down to that ratio, or to the second fullest. `even_ratio` is what no number of moves can beat.

    Columns: cluster_id, volumes, even_ratio, fullest_ratio, spread_ratio, from_broker_id, from_volume,
    to_broker_id, to_volume, move_bytes, after_ratio, gain_ratio.
    """
    by_use = Window.partitionBy("cluster_id").orderBy(
        F.col("used_ratio").desc(), F.col("broker_id"), F.col("volume_name")
    )
    ranked = volumes.withColumn("rank", F.row_number().over(by_use)).withColumn(
        "last", F.count("*").over(Window.partitionBy("cluster_id"))
    )

    def of(rank: Column, column: str) -> Column:
        return F.max(F.when(F.col("rank").eqNullSafe(rank), F.col(column)))

    ends = ranked.groupBy("cluster_id").agg(
        F.count("*").alias("volumes"),
        (total_bytes(F.col("consumed_bytes")) / total_bytes(F.col("capacity_bytes"))).alias("even_ratio"),
        *[of(F.lit(1), column).alias(f"from_{column}") for column in _MOVED],
        *[of(F.col("last"), column).alias(f"to_{column}") for column in _MOVED],
        of(F.lit(2), "used_ratio").alias("second_ratio"),
    )
    consumed, capacity = (
        F.col(f"from_{name}").cast("double") + F.col(f"to_{name}")
        for name in ("consumed_bytes", "capacity_bytes")
    )
    both = consumed / capacity
    after = F.when(F.col("volumes") == 2, both).otherwise(F.greatest(both, F.col("second_ratio")))
    # Moving more than brings the fullest to where the second is gains nothing.
    moved = F.floor(F.col("from_consumed_bytes") - F.col("after_ratio") * F.col("from_capacity_bytes"))
    return (
        ends.where("volumes > 1")
        .withColumn("after_ratio", after)
        .select(
            "cluster_id",
            "volumes",
            "even_ratio",
            F.col("from_used_ratio").alias("fullest_ratio"),
            (F.col("from_used_ratio") - F.col("to_used_ratio")).alias("spread_ratio"),
            "from_broker_id",
            F.col("from_volume_name").alias("from_volume"),
            "to_broker_id",
            F.col("to_volume_name").alias("to_volume"),
            moved.cast("long").alias("move_bytes"),
            "after_ratio",
            (F.col("from_used_ratio") - F.col("after_ratio")).alias("gain_ratio"),
        )
    )
