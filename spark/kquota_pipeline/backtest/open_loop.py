"""Open loop: the decisions of policies, tick by tick, over the recorded past. Column expressions only.

At the end of every tick each broker's last record counts. It is fresh up to the policy's staleness. A broker
without a fresh record is undetermined if the decisions of the time name it as active and unknown;
otherwise it was away, and its last verdict stands until it is back or decommissioned. Operators' holds and
quarantines are left out: they answered another policy.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, StringType, StructField, StructType

from kquota.core.decision import FallbackAction
from kquota_pipeline.backtest.bounds import with_bounds
from kquota_pipeline.backtest.policy import Policy

BROKER = ("cluster_id", "broker_id")
_SETTINGS = StructType(
    [
        StructField("policy", StringType()),
        StructField("staleness_seconds", DoubleType()),
        StructField("fallback_pauses", BooleanType()),
    ]
)


def replay(
    usage: DataFrame,
    decisions: DataFrame,
    operators: DataFrame,
    policies: Sequence[Policy],
    tick_seconds: int = 30,
) -> DataFrame:
    """Return what each policy would have decided at the end of every tick.

    A record of the history stands for the time until the next sample of an unbroken history, so a staleness
    below two samples has the same result: choose `tick_seconds` no shorter than the history's samples.

    Columns: policy, cluster_id, tick (epoch seconds of its end), headroom (0 to 1), state, undetermined
    (how many brokers), worst_broker_id (the one with the smallest headroom; null in OPEN or by fallback).
    """
    spark = usage.sparkSession
    verdicts = broker_verdicts(with_latches(with_bounds(usage, policies)), tick_seconds)
    present = _at_ticks(
        verdicts, _settings(spark, policies, tick_seconds), decisions, operators, tick_seconds
    )
    return _decide(present)


def with_latches(rows: DataFrame) -> DataFrame:
    """Add `is_latched`: the hard breach that holds on until there is room again, as the volume's owner
    keeps it.

    A latch belongs to a volume id (a name where there is none) and to a pair of limits. A volume that can't
    be read proves nothing, so its latch stays.
    """
    event = (
        F.when(F.col("invalid") | (F.col("status") != "ok"), F.lit(None))
        .when(F.col("consumed_bytes") >= F.col("hard_min_bytes"), True)
        .when(F.col("consumed_bytes") <= F.col("release_max_bytes"), False)
    )
    volume = F.coalesce(F.concat(F.lit("id:"), "volume_id"), F.concat(F.lit("name:"), "volume_name"))
    past = (
        Window.partitionBy("policy", *BROKER, volume, "limits")
        .orderBy("at", "sequence")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return rows.withColumn("is_latched", F.coalesce(F.last(event, ignorenulls=True).over(past), F.lit(False)))


def headroom() -> Column:
    """Return the headroom of a row with bounds by its figures alone: 0 from hard on, 1 where OPEN."""
    consumed = F.col("consumed_bytes")
    between = (F.col("hard_bytes") - consumed) / F.nullif(F.col("zone_bytes"), F.lit(0.0))
    # Where it ends is decided by whole numbers; rounding must not reach the ends from inside.
    inside = F.least(F.greatest(between, F.lit(1e-9)), F.lit(1 - 1e-9))
    return (
        F.when(F.col("invalid"), F.lit(None))
        .when(consumed >= F.col("hard_min_bytes"), 0.0)
        .when(consumed <= F.col("open_max_bytes"), 1.0)
        .otherwise(inside)
    )


def broker_verdicts(rows: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the verdicts of the last record of each broker in each tick (input: with_latches).

    Columns: policy, cluster_id, broker_id, at, tick (epoch seconds), smallest (headroom of the volumes that
    vote), breached (whether one of them stands at 0), unreadable (whether the broker is undetermined).
    """
    votes = (F.col("role") == "data") & (F.col("status") != "offline")
    counted = F.when(F.col("is_latched"), 0.0).otherwise(headroom())
    failed = F.col("status") == "failed"
    # Old figures of an unreadable volume must not count, except as a breach.
    of_failed = F.when((counted == 0) & (F.col("is_latched") | (F.col("capacity_bytes") > 0)), 0.0)
    vote = F.when(votes & failed, of_failed).when(votes, counted)
    at_once = rows.groupBy("policy", *BROKER, "at", "sequence").agg(
        F.coalesce(F.min(vote), F.lit(1.0)).alias("smallest"),
        F.max(F.coalesce(vote == 0, F.lit(False))).alias("breached"),
        F.max((failed & (F.col("role") == "data")) | F.col("invalid")).alias("unreadable"),
    )
    tick = (F.ceil(F.unix_micros("at") / (tick_seconds * 1_000_000)) * tick_seconds).cast("long")
    newest = Window.partitionBy("policy", *BROKER, "tick").orderBy(
        F.col("at").desc(), F.col("sequence").desc()
    )
    return (
        at_once.withColumn("tick", tick)
        .withColumn("_rank", F.row_number().over(newest))
        .where("_rank = 1")
        .drop("_rank", "sequence")
    )


def _settings(spark: SparkSession, policies: Sequence[Policy], tick_seconds: int) -> DataFrame:
    rows = [
        (p.name, max(p.staleness_seconds, float(tick_seconds)), p.fallback_action is FallbackAction.PAUSE)
        for p in policies
    ]
    return F.broadcast(spark.createDataFrame(rows, _SETTINGS))


def _at_ticks(
    verdicts: DataFrame, settings: DataFrame, decisions: DataFrame, operators: DataFrame, tick_seconds: int
) -> DataFrame:
    """Repeat each broker's verdict at every tick until its next one, and add its weight there."""
    following = Window.partitionBy("policy", *BROKER).orderBy("tick")
    end = F.max("tick").over(Window.partitionBy("policy", "cluster_id"))
    until = F.coalesce(F.lead("tick").over(following), end + tick_seconds)
    ticks = F.sequence(F.col("tick"), F.col("until") - tick_seconds, F.lit(tick_seconds).cast("long"))
    repeated = (
        verdicts.withColumn("until", until)
        .withColumn("now", F.explode(ticks))
        .join(settings, "policy")
        .withColumn("age_seconds", F.col("now") - F.unix_micros("at") / 1_000_000)
        .withColumn("fresh", F.col("age_seconds") <= F.col("staleness_seconds"))
    )
    gone = _decommissions(operators)
    unknown = _unknown(decisions, tick_seconds)
    return (
        repeated.alias("r")
        .join(
            F.broadcast(gone).alias("g"),
            (F.col("r.cluster_id") == F.col("g.cluster_id"))
            & (F.col("r.broker_id") == F.col("g.broker_id"))
            & (F.col("r.at") <= F.col("g.gone_at"))
            & (F.unix_micros("g.gone_at") <= F.col("r.now") * 1_000_000),
            "left_anti",
        )
        .join(
            unknown.alias("k"),
            ~F.col("r.fresh")
            & (F.col("r.cluster_id") == F.col("k.cluster_id"))
            & (F.col("r.broker_id") == F.col("k.broker_id"))
            & (F.col("r.now") == F.col("k.unknown_tick")),
            "left",
        )
        .select("r.*", F.col("k.unknown_tick").isNotNull().alias("stale"))
    )


def _decommissions(operators: DataFrame) -> DataFrame:
    return operators.where("order_kind = 'decommission'").select(
        "cluster_id", F.col("subject_broker_id").alias("broker_id"), F.col("at").alias("gone_at")
    )


def _unknown(decisions: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the ticks in which a decision named a broker that it could not determine."""
    by_reporter = Window.partitionBy(*BROKER).orderBy("at", "sequence")
    until = F.coalesce(F.lead("at").over(by_reporter), F.col("at") + F.expr("INTERVAL 1 SECOND"))
    named = decisions.withColumn("until", until).where(F.size("undetermined") > 0)
    first = F.ceil(F.unix_micros("at") / (tick_seconds * 1_000_000)) * tick_seconds
    last = F.ceil(F.unix_micros("until") / (tick_seconds * 1_000_000)) * tick_seconds
    ticks = F.sequence(
        first.cast("long"),
        F.greatest(first, last - tick_seconds).cast("long"),
        F.lit(tick_seconds).cast("long"),
    )
    return (
        named.select("cluster_id", F.explode("undetermined").alias("entry"), ticks.alias("ticks"))
        .where(F.col("entry.broker_id").isNotNull())
        .select(
            "cluster_id",
            F.col("entry.broker_id").alias("broker_id"),
            F.explode("ticks").alias("unknown_tick"),
        )
        .distinct()
    )


def _decide(present: DataFrame) -> DataFrame:
    """Return the cluster's decision at each tick: the worst known state and the fallback."""
    must_be_known = F.col("fresh") | F.col("stale")
    undetermined = must_be_known & (F.col("stale") | F.col("unreadable"))
    # Silence never releases: of a stale record only what stood at 0 goes on counting.
    vote = F.when(F.col("stale"), F.when(F.col("breached"), 0.0)).otherwise(F.col("smallest"))
    known = F.least(F.coalesce(F.min(vote), F.lit(1.0)), F.lit(1.0))
    fallback = F.when((F.sum(undetermined.cast("int")) > 0) & F.first("fallback_pauses"), 0.0).otherwise(1.0)
    decided = present.groupBy("policy", "cluster_id", F.col("now").alias("tick")).agg(
        F.least(known, fallback).alias("headroom"),
        F.sum(undetermined.cast("int")).alias("undetermined"),
        F.min_by(F.when(vote < 1, F.col("broker_id")), F.coalesce(vote, F.lit(2.0))).alias("worst_broker_id"),
    )
    return decided.withColumn("state", state(F.col("headroom")))


def state(headroom_column: Column) -> Column:
    """Return the state's name for a headroom."""
    return F.when(headroom_column >= 1, "OPEN").when(headroom_column > 0, "THROTTLE").otherwise("PAUSE")


def summary(ticks: DataFrame, tick_seconds: int) -> DataFrame:
    """Return how long each policy would have spent in each state (input: replay).

    Columns: policy, cluster_id, open_seconds, throttle_seconds, pause_seconds, undetermined_seconds,
    transitions, mean_factor.
    """
    before = F.lag("state").over(Window.partitionBy("policy", "cluster_id").orderBy("tick"))
    changed = F.col("before").isNotNull() & (F.col("before") != F.col("state"))

    def seconds(condition: Column) -> Column:
        return F.sum(F.when(condition, tick_seconds).otherwise(0))

    return (
        ticks.withColumn("before", before)
        .groupBy("policy", "cluster_id")
        .agg(
            seconds(F.col("state") == "OPEN").alias("open_seconds"),
            seconds(F.col("state") == "THROTTLE").alias("throttle_seconds"),
            seconds(F.col("state") == "PAUSE").alias("pause_seconds"),
            seconds(F.col("undetermined") > 0).alias("undetermined_seconds"),
            F.sum(changed.cast("int")).alias("transitions"),
            F.avg("headroom").alias("mean_factor"),
        )
    )
