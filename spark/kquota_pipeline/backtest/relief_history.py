"""The topics and volumes of a relief plan in a history, and its forecasts with the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kquota.retention.relief_moves import MOVES
from kquota.retention.relief_plan import Plan
from kquota_pipeline.backtest.relief import (
    Relief,
    UnplayablePlan,
    relief_bytes,
    relief_of,
    target_of,
    topics_of,
)
from kquota_pipeline.backtest.scene import VolumePlace
from kquota_pipeline.forecast.job import FORECAST, forecast
from kquota_pipeline.forecast.series import VOLUME
from kquota_pipeline.history import History

LIMIT_COLUMNS = ("soft_bytes", "hard_bytes")
_OF_CRESTS = ("crest_bytes", "low_bytes", "high_bytes")


def known_relief(plan: Plan, usage: DataFrame, topics: DataFrame) -> Relief:
    """Return a plan as the history of its cluster can play it.

    Raises:
        UnplayablePlan: it is of another cluster, its volume, topics or targets are not in the history, or it
            has begun.
    """
    names = topics_of(plan)
    known = _volumes(usage)
    volumes = [row for row in known if row.cluster_id == plan.cluster]
    if not volumes:
        clusters = ", ".join(sorted({row.cluster_id for row in known}))
        raise UnplayablePlan(f"it is of cluster {plan.cluster}, and the history of {clusters}")
    place = VolumePlace(plan.broker_id, plan.volume)
    if all(VolumePlace(row.broker_id, row.volume_name) != place for row in volumes):
        raise UnplayablePlan(f"the history has no volume {plan.volume} of broker {plan.broker_id}")
    of_topics = topics.where(F.col("cluster_id") == plan.cluster).where(F.col("topic").isin(*names))
    held = _bytes_at(of_topics, place, plan.created)
    wanted = [target_of(step, plan) for step in plan.steps if step.kind in MOVES]
    return relief_of(plan, held, _targets(wanted, volumes, plan.broker_id))


def forecast_with(relief: Relief, history: History) -> DataFrame:
    """Return the forecast of every volume of a plan's cluster (FORECAST), as if the plan had been applied.

    Each day to come lacks the bytes that the plan takes off a volume at the end of the history, so its limits
    are that much further away.
    """
    own = history.of_cluster(relief.cluster_id)
    added = added_at_end(relief, own)
    shift = own.usage.sparkSession.createDataFrame(
        [(place.broker_id, place.name, float(more)) for place, more in added.items()],
        "broker_id int, volume_name string, added double",
    )
    by_volume = [name for name in VOLUME if name != "cluster_id"]

    more = F.coalesce("added", F.lit(0.0))
    joined = own.by_hour.join(F.broadcast(shift), by_volume, "left")
    # A limit may lie beyond the disk then: it can't be reached.
    further = {name: F.col(name) - more for name in LIMIT_COLUMNS}
    found = forecast(joined.withColumns(further).drop("added"), own.seen)

    def held(value: Column) -> Column:
        within = F.least(value + more, F.col("capacity_bytes").cast("double"))
        return F.greatest(within, F.lit(0.0))

    back = {name: F.col(name) + more for name in LIMIT_COLUMNS}
    back |= {name: F.transform(name, held) for name in _OF_CRESTS}
    back["consumed_bytes"] = held(F.col("consumed_bytes").cast("double")).cast("long")
    whole = found.join(F.broadcast(shift), by_volume, "left").withColumns(back)
    return whole.select(*FORECAST.fieldNames())


def added_at_end(relief: Relief, history: History) -> Mapping[VolumePlace, float]:
    """Return how many bytes more each volume of a plan would have at the end of the history."""
    assert history.topics is not None
    place = ("broker_id", "volume_name")
    # A topic that the last record of a volume does not name has gone.
    named = F.when(F.col("topic").isin(*relief.topics), F.struct("topic", "bytes"))
    records = history.topics.groupBy(*place, "at").agg(F.collect_list(named).alias("named"))
    last = records.groupBy(*place).agg(F.max_by("named", "at").alias("named"))
    rows = last.select(*place, F.explode("named").alias("one")).select(*place, "one.*").collect()
    places = {VolumePlace(row.broker_id, row.volume_name) for row in rows}
    ends = {place for step in relief.steps for place in (step.source, step.target) if place is not None}
    volumes = sorted(places | ends, key=lambda place: (place.broker_id, place.name))
    column = {volume: number for number, volume in enumerate(volumes)}
    held = {topic: np.zeros((1, len(volumes))) for topic in relief.topics}
    for row in rows:
        held[row.topic][0, column[VolumePlace(row.broker_id, row.volume_name)]] = row.bytes
    added = relief_bytes(relief, volumes, held, np.array([np.inf]))
    return dict(zip(volumes, added[0], strict=True))


def _volumes(usage: DataFrame) -> list[Row]:
    """Return the last figures of the data volumes of all clusters."""
    last = F.struct("log_dirs", "consumed_bytes", "capacity_bytes")
    found: list[Row] = (
        usage.where((F.col("role") == "data") & (F.col("status") != "offline"))
        .groupBy(*VOLUME)
        .agg(F.max_by(last, "at").alias("last"))
        .select(*VOLUME, "last.*")
        .collect()
    )
    return found


def _bytes_at(topics: DataFrame, place: VolumePlace, moment: datetime) -> dict[str, float]:
    """Return what a volume had of each topic at the last record before a moment, or else at the first."""
    own = topics.where((F.col("broker_id") == place.broker_id) & (F.col("volume_name") == place.name))
    before = F.when(F.col("at") <= F.lit(moment), F.col("at"))
    last, first = F.max_by("bytes", before), F.min_by("bytes", "at")
    rows = own.groupBy("topic").agg(F.coalesce(last, first).alias("bytes")).collect()
    return {row.topic: float(row.bytes) for row in rows}


def _targets(
    wanted: Iterable[int | str], volumes: Iterable[Row], broker_id: int
) -> dict[int | str, VolumePlace]:
    """Return the volume of each place: of a log dir its own, of a broker the fullest: Kafka chooses."""
    found: dict[int | str, VolumePlace] = {}
    fullest_first = sorted(volumes, key=lambda row: -row.consumed_bytes / max(row.capacity_bytes, 1))
    for place in set(wanted):
        for row in fullest_first:
            is_there = (
                row.broker_id == place
                if isinstance(place, int)
                else row.broker_id == broker_id and place in (row.log_dirs or ())
            )
            if is_there:
                found[place] = VolumePlace(row.broker_id, row.volume_name)
                break
    return found
