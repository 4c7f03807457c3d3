"""The bytes that topics held and clients wrote on each day (docs/chargeback.md)."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.forecast.series import VOLUME
from kquota_pipeline.tables import HOLDINGS

_HOUR_SECONDS = 3600
_DAY_HOURS = 24
# An hour without a look is divided as the nearest look before it says, or else as the one after it.
_LOOK_HOURS = 6
# More than the hours since 1970: those of two places are never mixed.
_HOURS_APART = 1 << 32
# Records bound no rate. Ten million windows of this size are still added up without an overflow.
_MOST_BYTES = 1e24
_BROKER = VOLUME[:2]
_PLACE = ("volume_name", "day")


def holdings_of(by_hour: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the rows of table `holdings` for whole days of the hours of volumes (forecast.series.hourly) and
    of table `topics`.
    """
    hour = F.col("hour").cast("long")
    day = F.to_date(F.timestamp_seconds(hour * _HOUR_SECONDS))
    hours = by_hour.select(*VOLUME, day.alias("day"), hour.alias("hour"), "mean_bytes")
    # In a steady topic as much leaves in an hour as will leave in the next one.
    left = F.col("leaving_soon_bytes") * F.col("span_seconds") / _HOUR_SECONDS
    looks = topics.select(
        *VOLUME,
        "day",
        F.unix_micros("at").alias("at"),
        "topic",
        F.col("bytes").cast("double").alias("bytes"),
        F.greatest(F.lit(0.0), F.col("grown_bytes") + F.coalesce(left, F.lit(0.0))).alias("inflow_bytes"),
    )
    # A group for each volume or day would cost more than its work.
    groups = hours.groupBy(*_BROKER).cogroup(looks.groupBy(*_BROKER))
    return groups.applyInPandas(_held_on_broker, HOLDINGS.schema)


def _held_on_broker(key: tuple[Any, ...], hours: pd.DataFrame, looks: pd.DataFrame) -> pd.DataFrame:
    found = held_by_topics(hours, looks).assign(**dict(zip(_BROKER, key, strict=True)))
    return found[HOLDINGS.schema.fieldNames()]


def held_by_topics(hours: pd.DataFrame, looks: pd.DataFrame) -> pd.DataFrame:
    """Return what each topic held on each volume of a broker on each day with samples, and None all that is
    in no topic that is named.

    The bytes of a volume are those of its samples. The looks of a day divide them among topics, and never add
    to them.

    Args:
        hours: volume_name, day, hour (epoch hours), mean_bytes; of the samples.
        looks: volume_name, day, at (epoch µs), topic (None: all others), bytes, inflow_bytes (since the look
            before).

    Columns: volume_name, day, topic, byte_days, hours (with samples), inflow_bytes.
    """
    # In one order: their sums would have other bits in another one.
    hours, looks = (
        rows.sort_values(order, ignore_index=True)
        for rows, order in (
            (hours, [*_PLACE, "hour"]),
            (looks, [*_PLACE, "at", "topic", "bytes", "inflow_bytes"]),
        )
    )
    known = hours[list(_PLACE)].drop_duplicates(ignore_index=True)
    places = pd.MultiIndex.from_frame(known)
    place, of_place = (
        places.get_indexer(pd.MultiIndex.from_frame(rows[list(_PLACE)])) for rows in (hours, looks)
    )
    looks, of_place = looks[of_place >= 0], of_place[of_place >= 0]
    moments, of_look = np.unique(
        np.column_stack([of_place, looks["at"].to_numpy(dtype=np.int64)]), axis=0, return_inverse=True
    )
    of_look = of_look.reshape(-1)
    bytes_ = looks["bytes"].to_numpy(dtype=float)
    whole = np.bincount(of_look, bytes_, minlength=len(moments)).astype(float)
    mean = hours["mean_bytes"].to_numpy(dtype=float)
    look = _nearest(
        place, hours["hour"].to_numpy(dtype=np.int64), moments[:, 0], moments[:, 1] // (_HOUR_SECONDS * 10**6)
    )
    seen = look >= 0
    held_then = np.minimum(mean[seen], whole[look[seen]])
    held = np.bincount(look[seen], held_then, minlength=len(moments)).astype(float)
    # The byte-days of one byte of a look.
    weight = np.divide(held, whole * _DAY_HOURS, out=np.zeros_like(held), where=whole > 0)
    rows = pd.DataFrame(
        {
            "place": of_place,
            "topic": looks["topic"].to_numpy(),
            "byte_days": bytes_ * weight[of_look],
            "inflow_bytes": np.nan_to_num(looks["inflow_bytes"].to_numpy(dtype=float)),
        }
    )
    sums = rows.groupby(["place", "topic"], sort=True).sum().reset_index()
    named = np.bincount(sums["place"], sums["byte_days"], minlength=len(known))
    unnamed = rows[rows["topic"].isna()]
    others = pd.DataFrame(
        {
            "place": np.arange(len(known)),
            "topic": None,
            "byte_days": np.maximum(0.0, np.bincount(place, mean, minlength=len(known)) / _DAY_HOURS - named),
            "inflow_bytes": np.bincount(unnamed["place"], unnamed["inflow_bytes"], minlength=len(known)),
        }
    )
    every = pd.concat([sums, others], ignore_index=True).sort_values(
        "place", ignore_index=True, kind="stable"
    )
    of_row = every.pop("place").to_numpy()
    hours_sampled = np.bincount(place, minlength=len(known)).astype(np.int32)[of_row]
    own = known.iloc[of_row].reset_index(drop=True).assign(hours=hours_sampled)
    return pd.concat([own, every], axis=1)


def _nearest(
    place: NDArray[np.int64],
    hour: NDArray[np.int64],
    look_place: NDArray[np.int64],
    look_hour: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return for each hour of a place its look: the last one up to its end, or else the first one after; -1
    for none.

    Looks are sorted by place and hour.
    """
    if not len(look_hour):
        return np.full(len(hour), -1)
    after = np.searchsorted(look_place * _HOURS_APART + look_hour, place * _HOURS_APART + hour, side="right")

    def is_near(look: NDArray[np.int64]) -> NDArray[np.bool_]:
        near: NDArray[np.bool_] = np.abs(look_hour[look] - hour) <= _LOOK_HOURS
        return near & np.equal(look_place[look], place)

    before, after = np.maximum(after - 1, 0), np.minimum(after, len(look_hour) - 1)
    return np.where(is_near(before), before, np.where(is_near(after), after, -1))


def writing_rows(clients: DataFrame) -> DataFrame:
    """Return the rows of table `writings` for whole days of the table `clients`.

    A window that names several topics counts for each of them evenly. The topics that a client reads are not
    known.
    """
    window, nobody = F.col("window_seconds"), F.lit(None).cast("string")
    sent = F.col("produce_bytes_per_second") * window
    observed = F.col("observed_bytes_per_second") * window
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
        .agg((F.max(observed) - _exact_sum(sent)).alias("written_bytes"))
        .where("written_bytes > 0")
        .select("cluster_id", nobody.alias("user"), nobody.alias("client_id"), "day",
                nobody.alias("topic"), "written_bytes")
    )  # fmt: skip
    every = wrote.unionByName(unlisted).unionByName(read, allowMissingColumns=True)
    sums = every.groupBy("cluster_id", "user", "client_id", "topic", "day")
    return sums.agg(*(_exact_sum(F.col(name)).alias(name) for name in ("written_bytes", "read_bytes")))


def _exact_sum(bytes_: Column) -> Column:
    """Return the sum, the same in whatever order the rows come: a sum of floating-point numbers is not."""
    bounded = F.when(bytes_ > _MOST_BYTES, F.lit(_MOST_BYTES)).otherwise(bytes_)
    return F.sum(bounded.cast("decimal(38, 6)")).cast("double")


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
