"""The ticks in which the history reports a broker as unknown or decommissioned, and who produced in each."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

UNKNOWN, DECOMMISSION, HELD, PRODUCERS = "unknown", "decommission", "held", "producers"
WHOLE_DAY_SECONDS = 86_400.0
"""Longer windows, of agents that were away, count with their last day."""
_HOLDING = "mode = 'enforce' AND state != 'OPEN'"


def broker_events(decisions: DataFrame, operators: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the ticks in which brokers were unknown or decommissioned, or held producers.

    Columns: cluster_id, event (UNKNOWN, DECOMMISSION or HELD), broker_id (null of HELD), at_micros (of a
    decommission; null otherwise), tick.
    """
    ended = operators.where("order_kind = 'decommission'").select(
        "cluster_id",
        F.lit(DECOMMISSION).alias("event"),
        F.col("subject_broker_id").alias("broker_id"),
        F.unix_micros("at").alias("at_micros"),
        tick_of("at", tick_seconds).alias("tick"),
    )
    standing = in_force(decisions, tick_seconds)
    return _unknown(standing).union(_held(standing)).union(ended).distinct()


def producers(clients: DataFrame, tick_seconds: int) -> DataFrame:
    """Return who produced in each tick: a client counts in all ticks that a window of its records is in.

    Columns: cluster_id, event (PRODUCERS), tick, producers (array of user, client_id and topics; null where
    not all are known), unlisted_clients (how many clients the records of the tick do not list).
    """
    micros = tick_seconds * 1_000_000
    window = F.least(F.col("window_seconds"), F.lit(WHOLE_DAY_SECONDS))
    begin = F.unix_micros("at") - (window * 1_000_000).cast("long")
    first = ((F.floor(begin / micros) + 1) * tick_seconds).cast("long")
    ticks = F.sequence(first, tick_of("at", tick_seconds), F.lit(tick_seconds).cast("long"))
    rows = clients.withColumn("tick", F.explode(ticks))
    figures = (F.col("produce_bytes_per_second") > 0) | (F.col("throttled_seconds") > 0)
    tick = ("cluster_id", "tick")
    by_client = (
        rows.where(figures | F.col("topics").isNotNull())
        .groupBy(*tick, "user", "client_id")
        .agg(
            F.array_distinct(F.flatten(F.collect_list("topics"))).alias("topics"),
            F.max(F.col("topics").isNull()).alias("unknown"),
        )
        .withColumn("topics", F.when(~F.col("unknown"), F.col("topics")))
        .groupBy(*tick)
        .agg(F.collect_list(F.struct("user", "client_id", "topics")).alias("producers"))
    )
    unlisted = (
        rows.groupBy(*tick, "broker_id")
        .agg(F.max("omitted_clients").alias("omitted"))
        .groupBy(*tick)
        .agg(F.coalesce(F.sum("omitted"), F.lit(0)).cast("int").alias("unlisted_clients"))
    )
    return unlisted.join(by_client, [*tick], "left").select(
        "cluster_id",
        F.lit(PRODUCERS).alias("event"),
        "tick",
        F.coalesce("producers", F.array()).alias("producers"),
        "unlisted_clients",
    )


def holding_brokers(decisions: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the ticks in which brokers held producers by their own decisions.

    Columns: cluster_id, broker_id, tick.
    """
    held = in_force(decisions, tick_seconds).where(_HOLDING)
    return held.select("cluster_id", "broker_id", F.explode("ticks").alias("tick")).distinct()


def with_named_topics(usage: DataFrame) -> DataFrame:
    """Return the usage with the topics of each volume, also where its record refers to another one's."""
    volume = ("cluster_id", "broker_id", "instance_id", "volume_name")
    names = usage.where(F.col("topics").isNotNull()).select(
        *volume, F.col("sequence").alias("topics_sequence"), F.col("topics").alias("named")
    )
    key = [*volume, "topics_sequence"]
    joined = usage.join(names.dropDuplicates(key), key, "left")
    return joined.withColumn("topics", F.coalesce("topics", "named")).drop("named")


def tick_of(at: str, tick_seconds: int) -> Column:
    """Return the end of the tick that a time is in, in epoch seconds."""
    return (F.ceil(F.unix_micros(at) / (tick_seconds * 1_000_000)) * tick_seconds).cast("long")


def in_force(decisions: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the decisions with their `ticks`: one is in force until the next one of the same reporter."""
    by_reporter = Window.partitionBy("cluster_id", "broker_id").orderBy("at", "sequence")
    until = F.coalesce(F.lead("at").over(by_reporter), F.col("at") + F.expr("INTERVAL 1 SECOND"))
    first = tick_of("at", tick_seconds)
    last = F.greatest(first, tick_of("until", tick_seconds) - tick_seconds)
    ticks = F.sequence(first, last, F.lit(tick_seconds).cast("long"))
    return decisions.withColumn("until", until).withColumn("ticks", ticks)


def _unknown(standing: DataFrame) -> DataFrame:
    """Return the ticks in which a decision named a broker that it could not determine, or only bound."""
    undetermined = F.coalesce("undetermined.broker_id", F.array())
    silent = F.concat(undetermined, F.coalesce("covered", F.array()))
    return (
        standing.where(F.size(silent) > 0)
        .withColumn("broker_id", F.explode(silent))
        .where("broker_id IS NOT NULL")
        .select(*_event(UNKNOWN, "broker_id"))
    )


def _held(standing: DataFrame) -> DataFrame:
    """Return the ticks in which a broker held producers."""
    return standing.where(_HOLDING).select(*_event(HELD, None))


def _event(event: str, broker_id: str | None) -> list[Column]:
    broker = F.lit(None) if broker_id is None else F.col(broker_id)
    return [
        F.col("cluster_id"),
        F.lit(event).alias("event"),
        broker.cast("int").alias("broker_id"),
        F.lit(None).cast("long").alias("at_micros"),
        F.explode("ticks").alias("tick"),
    ]
