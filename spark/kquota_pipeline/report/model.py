"""The content of the report, as one document of plain values: the JSON is this, and the page shows it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kquota_pipeline.accounting.clients import by_client, by_group, quotas
from kquota_pipeline.accounting.topics import topic_thresholds
from kquota_pipeline.backtest.job import closed_loop, closed_loop_summary
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.forecast.accuracy import accuracy, forecast_errors
from kquota_pipeline.forecast.job import forecast
from kquota_pipeline.forecast.probabilities import Outlook
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.recommend.limits import NoSafeLimits, candidates, choose, needs, read_needs
from kquota_pipeline.recommend.write import quota_commands
from kquota_pipeline.skew import best_moves, volumes_now

Document = dict[str, object]
# This many volumes get a plot, this many clients a bar.
_PLOTTED = 6
_LISTED_CLIENTS = 10
_SERIES_HOURS = 4
_HOUR_SECONDS = 3600
_STATES = ("OPEN", "THROTTLE", "PAUSE")


@dataclass(frozen=True, slots=True)
class History:
    """The tables that a report is made from; `topics` (TOPIC_RATES) where an operator has them; `hours`
    (forecast.series.hourly) if they need not be made of all samples; and of agents that look at segments the
    tables `topics` and `expiry`.
    """

    usage: DataFrame
    decisions: DataFrame
    clients: DataFrame
    operators: DataFrame
    topics: DataFrame | None = None
    hours: DataFrame | None = None
    topics_on_disk: DataFrame | None = None
    expiry: DataFrame | None = None

    @property
    def by_hour(self) -> DataFrame:
        """The hours of each volume."""
        return hourly(self.usage) if self.hours is None else self.hours


@dataclass(frozen=True, slots=True)
class Analysis:
    """The report's document, and the recommended policy of each cluster that has one."""

    document: Document
    recommended: Mapping[str, Policy]


def analyse(
    history: History,
    policies: Sequence[Policy],
    groups: Mapping[str, Sequence[str]],
    *,
    tick_seconds: int = 600,
    replication_factor: float = 3.0,
    now: datetime,
    progress: Callable[[str], None],
) -> Analysis:
    """Run all jobs over a history and gather their results; `progress` is called with each step."""
    progress("forecasting every volume")
    known = (history.by_hour, history.topics_on_disk, history.expiry)
    forecasts = forecast(*known).collect()
    progress("comparing earlier forecasts with the history")
    methods = accuracy(forecast_errors(*known)).orderBy("mean_error_ratio").collect()
    progress("adding up bytes by client")
    client_rows = by_client(history.clients).cache()
    clients = client_rows.orderBy(F.col("bytes").desc()).collect()
    group_rows = by_group(client_rows, groups).orderBy(F.col("bytes").desc()).collect()
    quota_rows = quotas(client_rows).collect()
    topics = [] if history.topics is None else topic_thresholds(history.topics).collect()
    progress("comparing how full the disks are")
    volumes = volumes_now(history.usage).orderBy("cluster_id", "broker_id", "volume_name").collect()
    moves = {row.cluster_id: row for row in best_moves(volumes_now(history.usage)).collect()}
    clusters, recommended = [], {}
    for cluster_id in sorted({row.cluster_id for row in forecasts}):
        own = _of_cluster(history, cluster_id)
        wanted = candidates(read_needs(needs(own.by_hour).collect()))
        progress(f"simulating {len(policies) + len(wanted)} policies for {cluster_id} in closed loop")
        course = closed_loop(
            own.usage,
            own.decisions,
            own.clients,
            own.operators,
            [*policies, *wanted],
            tick_seconds,
            replication_factor,
        )
        outcomes = closed_loop_summary(course, tick_seconds).collect()
        # A broker that has not been heard of for a day has no forecast, and gets no limits.
        present = {row.broker_id for row in forecasts if row.cluster_id == cluster_id}
        recommendation, chosen = _recommendation(wanted, outcomes, present)
        if chosen is not None:
            recommended[cluster_id] = chosen
        of_cluster = _Filter(cluster_id)
        rows = sorted(of_cluster(forecasts), key=_urgency)
        clusters.append(
            {
                "cluster_id": cluster_id,
                "spans": _spans(own.decisions, tick_seconds),
                "forecasts": [_plain(row) for row in rows],
                "series": _series(own.by_hour, rows[:_PLOTTED]),
                "outcomes": [_plain(row) for row in _ordered(outcomes, policies, wanted)],
                "tried": [policy.name for policy in wanted],
                "recommendation": recommendation,
                "clients": [_plain(row) for row in of_cluster(clients)][:_LISTED_CLIENTS],
                "groups": [_plain(row) for row in of_cluster(group_rows)],
                "quotas": [_plain(row) for row in of_cluster(quota_rows)],
                "quota_commands": quota_commands(of_cluster(quota_rows)),
                "topics": [_plain(row) for row in of_cluster(topics)],
                "volumes": [_plain(row) for row in of_cluster(volumes)],
                "move": _plain(moves[cluster_id]) if cluster_id in moves else None,
            }
        )
    client_rows.unpersist()
    first, last = history.usage.agg(
        F.min(F.unix_timestamp("at")).alias("first"), F.max(F.unix_timestamp("at")).alias("last")
    ).collect()[0]
    document: Document = {
        "made_at": now.astimezone(UTC).isoformat(timespec="seconds"),
        "from_seconds": first,
        "until_seconds": last,
        "tick_seconds": tick_seconds,
        "replication_factor": replication_factor,
        "accuracy": [_plain(row) for row in methods],
        "clusters": clusters,
    }
    return Analysis(document, recommended)


class _Filter:
    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id

    def __call__(self, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row.cluster_id == self._cluster_id]


def _of_cluster(history: History, cluster_id: str) -> History:
    own = F.col("cluster_id") == cluster_id
    return History(
        history.usage.where(own),
        history.decisions.where(own),
        history.clients.where(own),
        history.operators.where(own),
        hours=history.by_hour.where(own),
    )


def _recommendation(
    wanted: Sequence[Policy], outcomes: Sequence[Row], present: Collection[int]
) -> tuple[Document, Policy | None]:
    names = {policy.name for policy in wanted}
    try:
        chosen = choose(wanted, [row for row in outcomes if row.policy in names])
    except NoSafeLimits as error:
        return {"policy": None, "problem": str(error), "limits": {}}, None
    chosen = replace(
        chosen, brokers={broker: own for broker, own in chosen.brokers.items() if broker in present}
    )
    limits = {str(broker): own.to_document() for broker, own in chosen.brokers.items()}
    return {"policy": chosen.name, "problem": None, "limits": limits}, chosen


def _ordered(outcomes: Sequence[Row], policies: Sequence[Policy], wanted: Sequence[Policy]) -> list[Row]:
    order = {policy.name: number for number, policy in enumerate((*policies, *wanted))}
    return sorted(outcomes, key=lambda row: order[row.policy])


def _urgency(row: Row) -> tuple[bool, float, float, float]:
    """Order volumes by how likely they reach their soft limit, within a week first; then by how full they
    are.
    """
    over = row.soft_outlook == Outlook.OVER
    within_week, within_month = row.soft_within_7d or 0.0, row.soft_within_30d or 0.0
    return (not over, -within_week, -within_month, -row.consumed_bytes / max(row.capacity_bytes, 1))


def _series(hours: DataFrame, rows: Sequence[Row]) -> list[Document]:
    """Return the crests of some volumes, as (epoch seconds, share of the capacity)."""
    wanted = {(row.broker_id, row.volume_name) for row in rows}
    if not wanted:
        return []
    names = F.concat_ws("/", F.col("broker_id").cast("string"), "volume_name")
    block = (F.floor(F.col("hour") / _SERIES_HOURS) * _SERIES_HOURS + _SERIES_HOURS / 2).cast("double")
    points = (
        hours.where(names.isin([f"{broker}/{volume}" for broker, volume in wanted]))
        .groupBy("broker_id", "volume_name", block.alias("hour"))
        .agg(F.max(F.col("crest_bytes") / F.col("capacity_bytes")).alias("ratio"))
        .orderBy("hour")
        .collect()
    )
    return [
        {
            "broker_id": broker,
            "volume_name": volume,
            "points": [
                [point.hour * _HOUR_SECONDS, round(point.ratio, 5)]
                for point in points
                if (point.broker_id, point.volume_name) == (broker, volume)
            ],
        }
        for broker, volume in ((row.broker_id, row.volume_name) for row in rows)
    ]


def _spans(decisions: DataFrame, tick_seconds: int) -> list[list[object]]:
    """Return (from, to, state): the worst state that a broker of the cluster decided, until the next
    decision.
    """
    tick = (F.floor(F.unix_timestamp("at") / tick_seconds) * tick_seconds).cast("long")
    rank = F.when(F.col("state") == "PAUSE", 2).when(F.col("state") == "THROTTLE", 1).otherwise(0)
    rows = decisions.groupBy(tick.alias("tick")).agg(F.max(rank).alias("rank")).orderBy("tick").collect()
    spans: list[list[object]] = []
    for row in rows:
        state = _STATES[row.rank]
        if spans and spans[-1][2] == state:
            spans[-1][1] = row.tick + tick_seconds
        else:
            if spans:
                spans[-1][1] = row.tick
            spans.append([row.tick, row.tick + tick_seconds, state])
    return spans


def _plain(row: Row) -> Document:
    return dict(row.asDict(recursive=True))
