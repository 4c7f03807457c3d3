"""The bytes that topics held and clients wrote on each day (docs/chargeback.md)."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.forecast.series import VOLUME, hourly
from kquota_pipeline.tables import HOLDINGS

_HOUR_SECONDS = 3600
_DAY_HOURS = 24
# An hour without a look is divided as the nearest look before it says, or else as the one after it.
_LOOK_HOURS = 6
_PLACE = (*VOLUME, "day")
_OF_TOPIC = ("topic", "byte_days", "hours", "inflow_bytes")


def holding_rows(usage: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the rows of table `holdings` for whole days of the tables `usage` and `topics`."""
    return holdings_of(hourly(usage), topics)


def holdings_of(by_hour: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the same for the hours of volumes (forecast.series.hourly)."""
    hour = F.col("hour").cast("long")
    day = F.to_date(F.timestamp_seconds(hour * _HOUR_SECONDS))
    hours = by_hour.select(*VOLUME, day.alias("day"), hour.alias("hour"), "mean_bytes")
    # In a steady topic as much leaves in an hour as will leave in the next one.
    left = F.col("leaving_soon_bytes") * F.col("span_seconds") / _HOUR_SECONDS
    looks = topics.select(
        *_PLACE,
        F.unix_micros("at").alias("at"),
        "topic",
        F.col("bytes").cast("double").alias("bytes"),
        F.greatest(F.lit(0.0), F.col("grown_bytes") + F.coalesce(left, F.lit(0.0))).alias("inflow_bytes"),
    )
    # A group for each day, too, would cost more than its work.
    groups = hours.groupBy(*VOLUME).cogroup(looks.groupBy(*VOLUME))
    return groups.applyInPandas(held_by_day, HOLDINGS.schema)


def held_by_day(key: tuple[Any, ...], hours: pd.DataFrame, looks: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of table `holdings` of one volume (`key`): held_by_topics of each day with samples."""
    of_day, nothing = dict(iter(looks.groupby("day"))), looks.iloc[:0]
    days = [
        held_by_topics(own, of_day.get(day, nothing)).assign(day=day) for day, own in hours.groupby("day")
    ]
    columns = HOLDINGS.schema.fieldNames()
    found = pd.concat(days, ignore_index=True) if days else pd.DataFrame(columns=columns)
    return found.assign(**dict(zip(VOLUME, key, strict=True)))[columns]


def held_by_topics(hours: pd.DataFrame, looks: pd.DataFrame) -> pd.DataFrame:
    """Return what each topic held on a volume in a day, and None all that is in no topic that is named.

    The bytes of the volume are those of its samples. Looks divide them among topics, and never add to them.

    Args:
        hours: hour (epoch hours), mean_bytes; of the volume's samples.
        looks: at (epoch µs), topic (None: all others), bytes, inflow_bytes (since the look before).

    Columns: topic, byte_days, hours (with samples), inflow_bytes.
    """
    if hours.empty:
        return pd.DataFrame(columns=list(_OF_TOPIC))
    at, of_look = np.unique(looks["at"].to_numpy(dtype=np.int64), return_inverse=True)
    bytes_ = looks["bytes"].to_numpy(dtype=float)
    whole = np.bincount(of_look, bytes_, minlength=len(at)).astype(float)
    mean = hours["mean_bytes"].to_numpy(dtype=float)
    look = _nearest(hours["hour"].to_numpy(dtype=np.int64), at // (_HOUR_SECONDS * 10**6))
    seen = look >= 0
    held = np.bincount(look[seen], np.minimum(mean[seen], whole[look[seen]]), minlength=len(at)).astype(float)
    # The byte-days of one byte of a look.
    weight = np.divide(held, whole * _DAY_HOURS, out=np.zeros_like(held), where=whole > 0)
    byte_days = bytes_ * weight[of_look]
    inflow = looks["inflow_bytes"].fillna(0.0).to_numpy(dtype=float)
    of_topic, topics = pd.factorize(looks["topic"], sort=True)
    named = of_topic >= 0

    def sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(of_topic[named], values[named], minlength=len(topics)).astype(float)

    others = max(0.0, mean.sum() / _DAY_HOURS - byte_days[named].sum())
    return pd.DataFrame(
        {
            "topic": np.array([*topics, None], dtype=object),
            "byte_days": np.append(sums(byte_days), others),
            "hours": np.int32(len(mean)),
            "inflow_bytes": np.append(sums(inflow), inflow[~named].sum()),
        }
    )


def _nearest(hours: np.ndarray, look_hours: np.ndarray) -> np.ndarray:
    """Return for each hour its look: the last one up to its end, or else the first one after; -1 for none.

    `look_hours` are sorted.
    """
    if not len(look_hours):
        return np.full(len(hours), -1)
    before = np.searchsorted(look_hours, hours, side="right") - 1
    after = np.minimum(before + 1, len(look_hours) - 1)
    found = np.where((before >= 0) & (hours - look_hours[before] <= _LOOK_HOURS), before, after)
    return np.where(np.abs(look_hours[found] - hours) <= _LOOK_HOURS, found, -1)


def writing_rows(clients: DataFrame) -> DataFrame:
    """Return the rows of table `writings` for whole days of the table `clients`.

    A window that names several topics counts for each of them evenly. The topics that a client reads are not
    known.
    """
    window, nobody = F.col("window_seconds"), F.lit(None).cast("string")
    sent = F.col("produce_bytes_per_second") * window
    # Null and empty are the same here: not all topics are known.
    topics = F.when(F.size("topics") > 0, F.col("topics")).otherwise(F.array(nobody))
    known = clients.where(F.col("user").isNotNull() & F.col("client_id").isNotNull())
    wrote = known.select(
        "cluster_id",
        "user",
        "client_id",
        "day",
        F.explode(topics).alias("topic"),
        (sent / F.size(topics)).alias("written_bytes"),
    )
    read = known.where("fetch_bytes_per_second > 0").select(
        "cluster_id",
        "user",
        "client_id",
        "day",
        nobody.alias("topic"),
        F.lit(0.0).alias("written_bytes"),
        (F.col("fetch_bytes_per_second") * window).alias("read_bytes"),
    )
    unlisted = (
        clients.where("omitted_clients > 0")
        .groupBy("cluster_id", "broker_id", "instance_id", "sequence", "day")
        .agg((F.max(F.col("observed_bytes_per_second") * window) - F.sum(sent)).alias("written_bytes"))
        .where("written_bytes > 0")
        .select("cluster_id", nobody.alias("user"), nobody.alias("client_id"), "day",
                nobody.alias("topic"), "written_bytes")
    )  # fmt: skip
    every = wrote.unionByName(unlisted).unionByName(read, allowMissingColumns=True)
    sums = every.groupBy("cluster_id", "user", "client_id", "topic", "day")
    return sums.agg(F.sum("written_bytes").alias("written_bytes"), F.sum("read_bytes").alias("read_bytes"))


def by_topic(holdings: DataFrame, first: date, last: date) -> DataFrame:
    """Return what each topic of a cluster held on each day, on all volumes together.

    A volume that held some of a topic between `first` and `last` says nothing of it on a day without samples,
    nor, of a topic with a name, on a day without a look at its segments.

    Columns: cluster_id, topic, day, byte_days, mean_bytes (while there were samples), inflow_bytes, has_held
    and has_growth. The last two ask the volumes that hold some of the topic on this day, and are null if none
    does. `has_held`: at least one of them reports the last day. `has_growth`: each of them reports both ends.
    """
    mean = F.col("byte_days") * _DAY_HOURS / F.col("hours")
    volume = Window.partitionBy(*VOLUME)

    def has(day: date, rows: Column) -> Column:
        return F.max((F.col("day") == F.lit(day)) & rows).over(volume)

    is_named, every = F.col("topic").isNotNull(), F.lit(True)
    ends = holdings.select(
        "*",
        *(
            has(day, rows).alias(f"{what}_{end}")
            for end, day in (("first", first), ("last", last))
            for what, rows in (("sampled", every), ("looked", is_named))
        ),
    )
    # Without looks all bytes have no topic: that is no change as long as it is so at both ends.
    alike = F.expr("sampled_first AND sampled_last AND looked_first = looked_last")
    holds = F.col("day").between(F.lit(first), F.lit(last)) & (F.col("byte_days") > 0)
    has_held = F.when(is_named, F.col("looked_last")).otherwise(F.col("sampled_last"))
    has_growth = F.when(is_named, F.expr("looked_first AND looked_last")).otherwise(alike)
    return ends.groupBy("cluster_id", "topic", "day").agg(
        F.sum("byte_days").alias("byte_days"),
        F.sum(mean).alias("mean_bytes"),
        F.sum("inflow_bytes").alias("inflow_bytes"),
        F.max(F.when(holds, has_held)).alias("has_held"),
        F.min(F.when(holds, has_growth)).alias("has_growth"),
    )
