"""Bytes and throttle time by client and by group, and the clients that deserve a quota of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

CLIENT = ("cluster_id", "user", "client_id")
# A client is an outlier if its usual peak is this many times the median client's,
OUTLIER_RATIO = 5.0
# and where it makes so much of the cluster's bytes that a limit on it is felt.
OUTLIER_SHARE = 0.1
# A quota leaves this much room above the usual peak (99 % of the time below): it stops unusual peaks.
QUOTA_ROOM = 1.25
_ROUND_BYTES = 100_000
_MOST = 2**63 - 1


def by_client(clients: DataFrame) -> DataFrame:
    """Return what each user and client id produced, and how long it was made to wait.

    `peak_bytes_per_second` is the rate that it stays below on its busiest broker for 99 % of the time while
    no client is held back. Columns: cluster_id, user, client_id, bytes, share_ratio, mean_bytes_per_second,
    peak_bytes_per_second, throttled_seconds, brokers.
    """
    known = clients.where(F.col("client_id").isNotNull() & F.col("user").isNotNull())
    rate, window = F.col("produce_bytes_per_second"), F.col("window_seconds")
    free = F.when(F.col("throttled_seconds") == 0, rate)
    on_broker = known.groupBy(*CLIENT, "broker_id").agg(
        F.sum(rate * window).alias("bytes"),
        F.sum(window).alias("seconds"),
        F.sum("throttled_seconds").alias("throttled_seconds"),
        F.coalesce(F.percentile(free, F.lit(0.99)), F.percentile(rate, F.lit(0.99))).alias("peak"),
    )
    total = F.sum("bytes").over(Window.partitionBy("cluster_id"))
    return (
        on_broker.groupBy(*CLIENT)
        .agg(
            F.sum("bytes").alias("bytes"),
            F.sum(_ratio(F.col("bytes"), F.col("seconds"))).alias("mean_bytes_per_second"),
            F.max("peak").alias("peak_bytes_per_second"),
            F.sum("throttled_seconds").alias("throttled_seconds"),
            F.count("*").alias("brokers"),
        )
        .withColumn("share_ratio", _ratio(F.col("bytes"), total))
    )


def by_group(clients: DataFrame, groups: Mapping[str, Iterable[str]]) -> DataFrame:
    """Return what groups of users produced together (input: by_client).

    Args:
        clients: the result of by_client.
        groups: group → users, as in `kquota.quota.*` of the brokers; a user is a group of its own without.

    Columns: cluster_id, group, bytes, share_ratio, throttled_seconds, clients.
    """
    pairs = [(F.lit(user), F.lit(group)) for group, users in groups.items() for user in users]
    group: Column = F.col("user")
    for user, name in pairs:
        group = F.when(F.col("user") == user, name).otherwise(group)
    return clients.groupBy("cluster_id", group.alias("group")).agg(
        F.sum("bytes").alias("bytes"),
        F.sum("share_ratio").alias("share_ratio"),
        F.sum("throttled_seconds").alias("throttled_seconds"),
        F.count("*").alias("clients"),
    )


def by_quota_group(groups: DataFrame) -> DataFrame:
    """Return what the quota groups of the brokers used, as the brokers measured it (input: table `groups`).

    Columns: cluster_id, group, bytes, mean_bytes_per_second, throttled_seconds, refused_requests, brokers.
    """
    window = F.col("window_seconds")
    on_broker = groups.groupBy("cluster_id", "group", "broker_id").agg(
        F.sum(F.col("produce_bytes_per_second") * window).alias("bytes"),
        F.sum(window).alias("seconds"),
        F.sum("throttled_seconds").alias("throttled_seconds"),
        _count("refused_requests").alias("refused_requests"),
    )
    return on_broker.groupBy("cluster_id", "group").agg(
        F.sum("bytes").alias("bytes"),
        F.sum(_ratio(F.col("bytes"), F.col("seconds"))).alias("mean_bytes_per_second"),
        F.sum("throttled_seconds").alias("throttled_seconds"),
        _count("refused_requests").alias("refused_requests"),
        F.count("*").alias("brokers"),
    )


def refused(refusals: DataFrame) -> DataFrame:
    """Return whose produce requests were refused, and how often (input: table `refusals`).

    Columns: cluster_id, principal, client_id, requests, brokers, last_at.
    """
    return refusals.groupBy("cluster_id", "principal", "client_id").agg(
        _count("requests").alias("requests"),
        F.count_distinct("broker_id").alias("brokers"),
        F.max("at").alias("last_at"),
    )


def quotas(clients: DataFrame) -> DataFrame:
    """Return the clients that stand out so far that a quota of their own is justified (input: by_client).

    A quota in the sense of KIP-13 holds on each broker by itself, so it is set by the broker where the
    client is busiest. Columns: those of by_client, median_bytes_per_second, quota_bytes_per_second.
    """
    cluster = Window.partitionBy("cluster_id")
    median = F.percentile("peak_bytes_per_second", F.lit(0.5)).over(cluster)
    quota = F.ceil(F.col("peak_bytes_per_second") * QUOTA_ROOM / _ROUND_BYTES) * _ROUND_BYTES
    return (
        clients.withColumn("median_bytes_per_second", median)
        .where(
            (F.col("peak_bytes_per_second") > OUTLIER_RATIO * F.col("median_bytes_per_second"))
            & (F.col("share_ratio") > OUTLIER_SHARE)
        )
        .withColumn("quota_bytes_per_second", quota.cast("long"))
    )


def _count(name: str) -> Column:
    """Return the sum of counts, at most the largest long: a record may say any number."""
    return F.least(F.sum(F.col(name).cast("decimal(38,0)")), F.lit(_MOST)).cast("long")


def _ratio(part: Column, whole: Column) -> Column:
    return F.when(whole > 0, part / whole).otherwise(0.0)
