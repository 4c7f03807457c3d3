"""The ticks in which the history reports a broker as unknown, or as decommissioned."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.backtest.policy import Policy

UNKNOWN, DECOMMISSION = "unknown", "decommission"


def broker_events(decisions: DataFrame, operators: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the ticks in which brokers were unknown or decommissioned.

    Columns: cluster_id, event (UNKNOWN or DECOMMISSION), broker_id, at_micros (of a decommission; null
    otherwise), tick.
    """
    ended = operators.where("order_kind = 'decommission'").select(
        "cluster_id",
        F.lit(DECOMMISSION).alias("event"),
        F.col("subject_broker_id").alias("broker_id"),
        F.unix_micros("at").alias("at_micros"),
        tick_of("at", tick_seconds).alias("tick"),
    )
    return _unknown(decisions, tick_seconds).union(ended).distinct()


def for_each(policies: Sequence[Policy], rows: DataFrame) -> DataFrame:
    """Return each row once per policy, with the policy's name in the column `policy`."""
    names = F.array(*[F.lit(policy.name) for policy in policies])
    return rows.withColumn("policy", F.explode(names))


def tick_of(at: str, tick_seconds: int) -> Column:
    """Return the end of the tick that a time is in, in epoch seconds."""
    return (F.ceil(F.unix_micros(at) / (tick_seconds * 1_000_000)) * tick_seconds).cast("long")


def _unknown(decisions: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the ticks in which a decision named a broker that it could not determine.

    A decision is in force until the next one of the same reporter.
    """
    by_reporter = Window.partitionBy("cluster_id", "broker_id").orderBy("at", "sequence")
    until = F.coalesce(F.lead("at").over(by_reporter), F.col("at") + F.expr("INTERVAL 1 SECOND"))
    named = decisions.withColumn("until", until).where(F.size("undetermined") > 0)
    first = tick_of("at", tick_seconds)
    last = F.greatest(first, tick_of("until", tick_seconds) - tick_seconds)
    return (
        named.select(
            "cluster_id",
            F.explode("undetermined.broker_id").alias("broker_id"),
            F.sequence(first, last, F.lit(tick_seconds).cast("long")).alias("ticks"),
        )
        .where("broker_id IS NOT NULL")
        .select(
            "cluster_id",
            F.lit(UNKNOWN).alias("event"),
            "broker_id",
            F.lit(None).cast("long").alias("at_micros"),
            F.explode("ticks").alias("tick"),
        )
    )
