"""The closed loop's input from the tables, as numbers: then a task holds a month of a large cluster.

Of each volume and tick there is a row of numbers, its last record. Texts are keys there, their 64-bit hashes;
`happenings` has the texts once, with the cluster's figures of each tick and its events.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.backtest.events import (
    WHOLE_DAY_SECONDS,
    broker_events,
    holding_brokers,
    producers,
    tick_of,
)
from kquota_pipeline.backtest.policy import LIMITS

VOLUME, TOPICS, PRODUCED = "volume", "topics", "produced"
"""Kinds of happenings next to the events of `events.py`."""
NO_KEY = 0
"""The key of what is not known."""
# Whether a record's window was in a hold is known to this long, whatever the length of a tick.
_HOLD_SECONDS = 30
# Of this many records before a hold the mean rate is what producers would have kept.
_FREE_RECORDS = 20


def samples(usage: DataFrame, tick_seconds: int, *, ceilings: bool, topics: bool) -> DataFrame:
    """Return a row of numbers per data volume and tick, as it last was; with fill ceilings and topics only if
    they are wanted.

    Columns: cluster_key, tick, volume_key, consumed_bytes, capacity_bytes, volume_id_key, terms_key,
    is_failed, is_offline, fill_ceiling (null where not reported), topics_key.
    """
    figures = {
        "consumed_bytes": F.col("consumed_bytes"),
        "capacity_bytes": F.col("capacity_bytes"),
        "volume_id_key": _key("volume_id"),
        "terms_key": _terms_key(),
        "is_failed": F.col("status") == "failed",
        "is_offline": F.col("status") == "offline",
    }
    if ceilings:
        figures["fill_ceiling"] = F.col("fill_ceiling_bytes_per_second")
    if topics:
        figures["topics_key"] = _key("topics")
    # A volume that is offline has no vote, but its record replaces the one with its last vote.
    numbers = _of_data(usage).select(
        cluster_key().alias("cluster_key"),
        tick_of("at", tick_seconds).alias("tick"),
        volume_key().alias("volume_key"),
        "at",
        *[column.alias(name) for name, column in figures.items()],
    )
    # Of numbers alone, Spark finds the last ones in a hash table. It sorts what does not fit into that.
    return numbers.groupBy("cluster_key", "tick", "volume_key").agg(
        *[F.max_by(name, "at").alias(name) for name in figures]
    )


def happenings(
    usage: DataFrame,
    decisions: DataFrame,
    clients: DataFrame,
    operators: DataFrame,
    tick_seconds: int,
    *,
    topics: bool,
) -> DataFrame:
    """Return what the keys of `samples` stand for, what producers sent, and the events of brokers and
    producers.

    Columns: cluster_id, event, and those of broker_events and producers; of a VOLUME its broker_id, name,
    key, terms_key, mount_point, limits, and the first_tick and last_tick with them; of TOPICS key and names;
    of a tick PRODUCED produced_bytes and offered_bytes.
    """
    terms = ("mount_point", *LIMITS)
    votes = _of_data(usage).where("status != 'offline'")
    tick = tick_of("at", tick_seconds)
    found = votes.groupBy("cluster_id", "broker_id", "volume_name", *terms).agg(
        F.min(tick).alias("first_tick"), F.max(tick).alias("last_tick")
    )
    parts = [
        found.select(
            "cluster_id",
            F.lit(VOLUME).alias("event"),
            "broker_id",
            F.col("volume_name").alias("name"),
            volume_key().alias("key"),
            _terms_key().alias("terms_key"),
            *terms,
            "first_tick",
            "last_tick",
        ),
        production(clients, decisions, tick_seconds).withColumn("event", F.lit(PRODUCED)),
        broker_events(decisions, operators, tick_seconds),
        producers(clients, tick_seconds),
    ]
    if topics:
        named = votes.where(F.col("topics").isNotNull()).select("cluster_id", F.col("topics").alias("names"))
        parts.append(
            named.distinct().withColumn("event", F.lit(TOPICS)).withColumn("key", F.xxhash64("names"))
        )
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionByName(part, allowMissingColumns=True)
    return whole


def longest_usual_window(clients: DataFrame) -> float | None:
    """Return the length of the clients' windows in seconds, the median of the cluster where it is longest;
    None without records.
    """
    windows = clients.groupBy("cluster_id").agg(F.percentile("window_seconds", F.lit(0.5)).alias("window"))
    found: float | None = windows.agg(F.max("window").alias("longest")).collect()[0].longest
    return found


def _of_data(usage: DataFrame) -> DataFrame:
    return usage.where("role = 'data'")


def cluster_key() -> Column:
    """Return the key of a row's cluster."""
    return F.xxhash64("cluster_id")


def volume_key() -> Column:
    """Return the key of a row's volume in its cluster."""
    return F.xxhash64("broker_id", "volume_name")


def _terms_key() -> Column:
    return F.xxhash64("mount_point", *LIMITS)


def _key(name: str) -> Column:
    return F.when(F.col(name).isNotNull(), F.xxhash64(name)).otherwise(F.lit(NO_KEY).cast("long"))


def production(clients: DataFrame, decisions: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the bytes that producers sent in each tick, and those they would have sent without a quota.

    While a broker held producers, they would have gone on at their rate before: the baseline of the record,
    or, of a broker with the fence, which gives none, its mean rate in the last records without a hold. A
    request that the fence refuses is not above any limit, so decisions show when that was.

    Columns: cluster_id, tick, produced_bytes, offered_bytes.
    """
    throttled = F.max(F.coalesce("throttled_seconds", F.lit(0.0))) > 0
    observed = F.coalesce(F.max("observed_bytes_per_second"), F.sum("produce_bytes_per_second"), F.lit(0.0))
    records = clients.groupBy("cluster_id", "broker_id", "instance_id", "sequence", "at").agg(
        F.max("window_seconds").alias("seconds"),
        observed.alias("observed"),
        F.max("baseline_bytes_per_second").alias("baseline"),
        throttled.alias("was_throttled"),
    )
    moment = min(tick_seconds, _HOLD_SECONDS)
    holding = (
        holding_brokers(decisions, moment)
        .withColumnRenamed("tick", "moment")
        .withColumn("holds", F.lit(True))
    )
    joined = records.withColumn("moment", tick_of("at", moment)).join(
        holding, ["cluster_id", "broker_id", "moment"], "left"
    )
    held = F.col("was_throttled") | F.col("holds").isNotNull()
    by_broker = Window.partitionBy("cluster_id", "broker_id").orderBy("at", "sequence")
    free = F.when(~held, F.col("observed"))
    recent = F.when(~held, F.avg(free).over(by_broker.rowsBetween(-_FREE_RECORDS, 0)))
    before = F.coalesce("baseline", F.last(recent, ignorenulls=True).over(by_broker), F.lit(0.0))
    wanted = F.when(held, F.greatest("observed", before)).otherwise(F.col("observed"))
    end, seconds = F.unix_micros("at") / 1e6, F.least(F.col("seconds"), F.lit(WHOLE_DAY_SECONDS))
    begin = end - seconds
    first = ((F.floor(begin / tick_seconds) + 1) * tick_seconds).cast("long")
    ticks = F.sequence(
        first, F.greatest(first, tick_of("at", tick_seconds)), F.lit(tick_seconds).cast("long")
    )
    # A window lies in several ticks by its time in each of them.
    inside = F.least(end, F.col("tick")) - F.greatest(begin, F.col("tick") - tick_seconds)
    return (
        joined.withColumn("wanted", wanted)
        .withColumn("tick", F.explode(ticks))
        .groupBy("cluster_id", "tick")
        .agg(
            F.sum(F.col("observed") * inside).alias("produced_bytes"),
            F.sum(F.col("wanted") * inside).alias("offered_bytes"),
        )
    )
