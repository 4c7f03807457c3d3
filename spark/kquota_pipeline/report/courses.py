"""The courses that the report plots, of all clusters at once: crests of volumes, and what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kquota_pipeline.forecast.series import VOLUME

_BLOCK_HOURS = 4
_HOUR_SECONDS = 3600
_STATES = ("OPEN", "THROTTLE", "PAUSE")
Course = dict[str, object]


def among(volumes: Sequence[Row]) -> Column:
    """Return whether a row is of one of these volumes."""
    of_cluster: dict[str, list[str]] = {}
    for row in volumes:
        of_cluster.setdefault(row.cluster_id, []).append(f"{row.broker_id}/{row.volume_name}")
    name = F.concat_ws("/", F.col("broker_id").cast("string"), "volume_name")
    each = [(F.col("cluster_id") == cluster) & name.isin(own) for cluster, own in of_cluster.items()]
    return reduce(Column.__or__, each, F.lit(False))


def courses(hours: DataFrame, volumes: Sequence[Row]) -> dict[str, list[Course]]:
    """Return for each cluster the crests of some volumes, in their order: broker_id, volume_name, and points
    of (epoch seconds, share of the capacity), one in four hours.
    """
    block = (F.floor(F.col("hour") / _BLOCK_HOURS) * _BLOCK_HOURS + _BLOCK_HOURS / 2).cast("double")
    points = (
        hours.where(among(volumes))
        .groupBy(*VOLUME, block.alias("hour"))
        .agg(F.max(F.col("crest_bytes") / F.col("capacity_bytes")).alias("ratio"))
        .orderBy("hour")
        .collect()
    )
    of_volume: dict[tuple[str, int, str], list[list[float]]] = {}
    for point in points:
        key = (point.cluster_id, point.broker_id, point.volume_name)
        of_volume.setdefault(key, []).append([point.hour * _HOUR_SECONDS, round(point.ratio, 5)])
    found: dict[str, list[Course]] = {}
    for row in volumes:
        own = of_volume.get((row.cluster_id, row.broker_id, row.volume_name), [])
        course: Course = {"broker_id": row.broker_id, "volume_name": row.volume_name, "points": own}
        found.setdefault(row.cluster_id, []).append(course)
    return found


def spans(decisions: DataFrame, tick_seconds: int) -> dict[str, list[list[object]]]:
    """Return for each cluster (from, to, state): the worst state that one of its brokers decided, until the
    next decision.
    """
    tick = (F.floor(F.unix_timestamp("at") / tick_seconds) * tick_seconds).cast("long")
    rank = F.when(F.col("state") == "PAUSE", 2).when(F.col("state") == "THROTTLE", 1).otherwise(0)
    ranks = decisions.groupBy("cluster_id", tick.alias("tick")).agg(F.max(rank).alias("rank"))
    found: dict[str, list[list[object]]] = {}
    for row in ranks.orderBy("cluster_id", "tick").collect():
        own, state = found.setdefault(row.cluster_id, []), _STATES[row.rank]
        if own and own[-1][2] == state:
            own[-1][1] = row.tick + tick_seconds
        else:
            if own:
                own[-1][1] = row.tick
            own.append([row.tick, row.tick + tick_seconds, state])
    return found
