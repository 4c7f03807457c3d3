"""Gaps of a report: brokers whose last sample is old, and records that are in quarantine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota_pipeline.report.newest import Reach

OLD_SECONDS = 3600
"""A broker is silent if its last sample is this much older than the newest one of all."""
_HOUR_SECONDS = 3600
_BROKER_ID = "^[0-9]{1,10}$"
Broker = tuple[str, int]


def last_samples(found: Sequence[Reach], newest: DataFrame) -> dict[Broker, int]:
    """Return the epoch second of each broker's last sample; of a broker without samples in the newest days
    it is the beginning of its last hour.

    Args:
        found: of newest.reaches.
        newest: the samples of the newest days.
    """
    last = {(one.cluster_id, one.broker_id): one.last_hour * _HOUR_SECONDS for one in found}
    return last | _last(newest, "broker_id")


def decommissions(operators: DataFrame) -> dict[Broker, int]:
    """Return the epoch second of the last decommission of each broker that had one."""
    return _last(operators.where("order_kind = 'decommission'"), "subject_broker_id")


def silent_brokers(
    last: Mapping[Broker, int], decommissioned: Mapping[Broker, int], until: int
) -> dict[str, list[dict[str, object]]]:
    """Return for each cluster its brokers whose last sample is old at `until` and that are not
    decommissioned: broker_id, last_seconds.
    """
    found: dict[str, list[dict[str, object]]] = {}
    for broker, seconds in sorted(last.items()):
        # The last sample may be an hour later than it is noted to be, and an agent's last record comes after
        # the order.
        is_gone = decommissioned.get(broker, -OLD_SECONDS) >= seconds - OLD_SECONDS
        if until - seconds > OLD_SECONDS and not is_gone:
            found.setdefault(broker[0], []).append({"broker_id": broker[1], "last_seconds": seconds})
    return found


def quarantined(quarantine: DataFrame, first: date) -> list[dict[str, object]]:
    """Return how many records are in quarantine since a day, the most frequent reason first.

    Keys: reason, records, brokers (the ids that are keys of the records), last_seconds.
    """
    key = F.col("key").cast("string")
    broker = F.when(key.rlike(_BROKER_ID), key.cast("long"))
    rows = quarantine.where(F.col("day") >= F.lit(first)).groupBy("reason").agg(
        F.count("*").alias("records"),
        F.sort_array(F.collect_set(broker)).alias("brokers"),
        F.max(F.unix_timestamp("kafka_timestamp")).alias("last_seconds"),
    )  # fmt: skip
    return [row.asDict() for row in rows.orderBy(F.col("records").desc(), "reason").collect()]


def _last(rows: DataFrame, broker: str) -> dict[Broker, int]:
    last = rows.where(F.col(broker).isNotNull()).groupBy("cluster_id", F.col(broker).alias("broker_id"))
    found = last.agg(F.max(F.unix_timestamp("at")).alias("seconds")).collect()
    return {(row.cluster_id, row.broker_id): row.seconds for row in found}
