"""Thresholds of topics that add up, in the sense of "Broker-side quota V1".

A broker has a total; a topic may have a threshold of its own, and the others share the rest evenly.
The explicit ones may never add up to more than the total.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

# The brokers' input by topic. The history topic has no figures of topics: operators bring their own, for
# instance from the brokers' BytesInPerSec metrics.
TOPIC_RATES = StructType(
    [
        StructField("cluster_id", StringType()),
        StructField("broker_id", IntegerType()),
        StructField("at", TimestampType()),
        StructField("window_seconds", DoubleType()),
        StructField("topic", StringType()),
        StructField("bytes_in_per_second", DoubleType()),
    ]
)
# The room of a broker above its usual peak, and of a topic above its own.
_ROOM = 1.25
_ROUND_BYTES = 100_000


def topic_thresholds(rates: DataFrame) -> DataFrame:
    """Return for each broker and topic a recommended threshold, in bytes per second.

    A topic gets one of its own where its usual peak (99 % of the time below) is above the even share of its
    broker's total. With that, `total_bytes_per_second` is never below the sum of the explicit thresholds, and
    `share_bytes_per_second` is what each of the others gets.

    Columns: cluster_id, broker_id, topic, mean_bytes_per_second, peak_bytes_per_second,
    threshold_bytes_per_second (null: shares the rest), total_bytes_per_second, share_bytes_per_second.
    """
    broker = ["cluster_id", "broker_id"]
    at_once = rates.groupBy(*broker, "at").agg(F.sum("bytes_in_per_second").alias("rate"))
    totals = at_once.groupBy(*broker).agg(
        _rounded_up(F.percentile("rate", F.lit(0.99)) * _ROOM).alias("wanted")
    )
    topics = rates.groupBy(*broker, "topic").agg(
        (F.sum(F.col("bytes_in_per_second") * F.col("window_seconds")) / F.sum("window_seconds")).alias(
            "mean_bytes_per_second"
        ),
        F.percentile("bytes_in_per_second", F.lit(0.99)).alias("peak_bytes_per_second"),
    )
    of_broker = Window.partitionBy(*broker)
    explicit = F.col("peak_bytes_per_second") > F.col("wanted") / F.count("*").over(of_broker)
    judged = topics.join(totals, broker).withColumn(
        "threshold_bytes_per_second", F.when(explicit, _rounded_up(F.col("peak_bytes_per_second") * _ROOM))
    )
    # The peaks of topics need not coincide: their sum can be above the broker's own usual peak.
    claimed = F.coalesce(F.sum("threshold_bytes_per_second").over(of_broker), F.lit(0))
    left = F.when(F.col("threshold_bytes_per_second").isNull(), F.col("peak_bytes_per_second"))
    others = F.count(left).over(of_broker)
    for_others = others * _rounded_up(F.coalesce(F.max(left).over(of_broker), F.lit(0.0)) * _ROOM)
    total = F.greatest(F.col("wanted"), claimed + for_others)
    return judged.select(
        *broker,
        "topic",
        "mean_bytes_per_second",
        "peak_bytes_per_second",
        "threshold_bytes_per_second",
        total.alias("total_bytes_per_second"),
        F.when(others > 0, (total - claimed) / others).alias("share_bytes_per_second"),
    )


def _rounded_up(rate: Column) -> Column:
    return (F.ceil(rate / _ROUND_BYTES) * _ROUND_BYTES).cast("long")
