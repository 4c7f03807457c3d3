"""The end of a history: when each broker was last heard of, and the samples of the newest days alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota_pipeline.history import History

_HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Reach:
    """The first and the last hour (since the epoch) of a broker with a sample that could be read."""

    cluster_id: str
    broker_id: int
    first_hour: int
    last_hour: int


def reaches(hours: DataFrame) -> list[Reach]:
    """Return the reach of every broker (input: forecast.series.hourly)."""
    rows = hours.groupBy("cluster_id", "broker_id").agg(
        F.min("hour").alias("first_hour"), F.max("hour").alias("last_hour")
    )
    return [
        Reach(row.cluster_id, row.broker_id, row.first_hour, row.last_hour)
        for row in rows.orderBy("cluster_id", "broker_id").collect()
    ]


def newest_days(found: Sequence[Reach]) -> Mapping[str, Sequence[date]]:
    """Return of each cluster the UTC days of its last hour and of the hour before it: whatever stands now was
    sampled in them.
    """
    last: dict[str, int] = {}
    for one in found:
        last[one.cluster_id] = max(one.last_hour, last.get(one.cluster_id, one.last_hour))
    return {name: sorted({_day_of(hour - 1), _day_of(hour)}) for name, hour in last.items()}


def newest_samples(usage: DataFrame, found: Sequence[Reach]) -> DataFrame:
    """Return the samples of each cluster in its newest days; files of other days are not read."""
    of_day: dict[date, list[str]] = {}
    for name, days in newest_days(found).items():
        for day in days:
            of_day.setdefault(day, []).append(name)
    wanted = F.lit(False)
    for day, names in of_day.items():
        wanted = wanted | ((F.col("day") == F.lit(day)) & F.col("cluster_id").isin(names))
    return usage.where(F.col("day").isin(sorted(of_day)) & wanted)


def without_samples(history: History, found: Sequence[Reach]) -> History:
    """Return the history with no more samples than those of the newest days: all before is in its hours."""
    return replace(history, hours=history.by_hour, usage=newest_samples(history.usage, found))


def _day_of(hour: int) -> date:
    return datetime.fromtimestamp(hour * _HOUR_SECONDS, UTC).date()
