"""The content of the report, as one document of plain values: the JSON is this, and the page shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kquota_pipeline.accounting.clients import by_client, quotas
from kquota_pipeline.accounting.topics import topic_thresholds
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.forecast.accuracy import accuracy, forecast_errors
from kquota_pipeline.forecast.job import forecast
from kquota_pipeline.forecast.probabilities import Outlook
from kquota_pipeline.history import History
from kquota_pipeline.recommend.judge import recommend_limits
from kquota_pipeline.recommend.reserve import Sizing
from kquota_pipeline.recommend.write import quota_commands
from kquota_pipeline.report.chances import lacks_a_limit
from kquota_pipeline.report.courses import courses, spans
from kquota_pipeline.report.holders import DAYS, PLOTTED, holders_of
from kquota_pipeline.report.missing import decommissions, last_samples, quarantined, silent_brokers
from kquota_pipeline.report.newest import reaches, without_samples
from kquota_pipeline.skew import best_moves, volumes_now

Document = dict[str, object]
# This many clients get a bar.
_LISTED_CLIENTS = 10
_HOUR_SECONDS = 3600
_TOPIC = ("cluster_id", "broker_id", "topic")


class NoSamples(Exception):
    """There is nothing to report; the message says what is missing."""


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
    quarantine: DataFrame | None = None,
) -> Analysis:
    """Run all jobs over a history and gather their results; `progress` is called with each step. The table
    `quarantine` is of no cluster, and None where there is no such table.

    Raises:
        NoSamples: it has no sample to start from.
    """
    progress("forecasting every volume")
    # Most jobs read the hours of the volumes.
    by_hour = history.by_hour.cache()
    reach = reaches(by_hour)
    if not reach:
        raise NoSamples("the history has no sample of a volume that could be read")
    history = replace(history, hours=by_hour)
    # Policies are tried on all samples. All else is made of hours and days, and of the newest samples.
    recent = without_samples(history, reach)
    first = min(one.first_hour for one in reach) * _HOUR_SECONDS
    last_of_broker = last_samples(reach, recent.usage)
    last = max(last_of_broker.values())
    silent = silent_brokers(last_of_broker, decommissions(recent.operators), last)
    last_day = datetime.fromtimestamp(last, UTC).date()
    refused = [] if quarantine is None else quarantined(quarantine, last_day - timedelta(days=DAYS - 1))
    known = (recent.by_hour, recent.seen)
    forecasts = sorted(forecast(*known).collect(), key=urgency)
    progress("comparing earlier forecasts with the history")
    methods = accuracy(forecast_errors(*known)).orderBy("mean_error_ratio").collect()
    progress("dividing the bytes on the disks among those who wrote them")
    holders = holders_of(recent, last_day, forecasts, groups)
    progress("adding up bytes by client")
    client_rows = by_client(recent.clients).cache()
    clients = client_rows.orderBy(F.col("bytes").desc()).collect()
    quota_rows = quotas(client_rows).collect()
    rates = [] if recent.rates is None else topic_thresholds(recent.rates).orderBy(*_TOPIC).collect()
    progress("comparing how full the disks are")
    now_rows = volumes_now(recent.usage).cache()
    volumes = now_rows.orderBy("cluster_id", "broker_id", "volume_name").collect()
    moves = {row.cluster_id: row for row in best_moves(now_rows).collect()}
    progress(f"simulating {len(policies)} policies and those to recommend in closed loop")
    found = recommend_limits(history, tick_seconds, Sizing(replication_factor=replication_factor), policies)
    shown: dict[str, list[Row]] = {}
    for row in forecasts:
        shown.setdefault(row.cluster_id, []).append(row)
    plotted = courses(recent.by_hour, [row for own in shown.values() for row in own[:PLOTTED]])
    decided = spans(recent.decisions, tick_seconds)
    clusters = []
    ids = {one.cluster_id for one in reach}
    readable = [one for one in found if one.cluster_id in ids]
    for one in readable:
        of_cluster = _Filter(one.cluster_id)
        clusters.append(
            {
                "cluster_id": one.cluster_id,
                "silent_brokers": silent.get(one.cluster_id, []),
                "spans": decided.get(one.cluster_id, []),
                "forecasts": [_plain(row) for row in shown.get(one.cluster_id, [])],
                "series": plotted.get(one.cluster_id, []),
                "outcomes": [_plain(row) for row in _ordered(one.outcomes, policies, one.tried)],
                "tried": list(one.tried),
                "recommendation": one.document(),
                "holders": holders[one.cluster_id],
                "clients": [_plain(row) for row in of_cluster(clients)][:_LISTED_CLIENTS],
                "quotas": [_plain(row) for row in of_cluster(quota_rows)],
                "quota_commands": quota_commands(of_cluster(quota_rows)),
                "topics": [_plain(row) for row in of_cluster(rates)],
                "volumes": [_plain(row) for row in of_cluster(volumes)],
                "move": _plain(moves[one.cluster_id]) if one.cluster_id in moves else None,
            }
        )
    client_rows.unpersist()
    by_hour.unpersist()
    document: Document = {
        "made_at": now.astimezone(UTC).isoformat(timespec="seconds"),
        "from_seconds": first,
        "until_seconds": last,
        "tick_seconds": tick_seconds,
        "replication_factor": replication_factor,
        "quarantine": refused,
        "accuracy": [_plain(row) for row in methods],
        "unreadable_clusters": sorted({one.cluster_id for one in found} - ids),
        "clusters": clusters,
    }
    return Analysis(document, {one.cluster_id: one.policy for one in found if one.policy is not None})


class _Filter:
    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id

    def __call__(self, rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row.cluster_id == self._cluster_id]


def _ordered(outcomes: Sequence[Row], policies: Sequence[Policy], tried: Sequence[str]) -> list[Row]:
    order = {name: number for number, name in enumerate((*(policy.name for policy in policies), *tried))}
    return sorted(outcomes, key=lambda row: order[row.policy])


def urgency(row: Row) -> tuple[bool, bool, float, float, float]:
    """Order volumes: over the soft limit or with one that is not known, then with a day on which they reach
    it, the first one first; then by how likely they do within a month, and by how full they are; those
    without a forecast are last.
    """
    over = row.soft_outlook == Outlook.OVER or lacks_a_limit(row.asDict())
    unknown = row.soft_outlook == Outlook.UNKNOWN
    day = math.inf if row.soft_days is None else row.soft_days
    return (
        not over,
        unknown,
        day,
        -(row.soft_within_30d or 0.0),
        -row.consumed_bytes / max(row.capacity_bytes, 1),
    )


def _plain(row: Row) -> Document:
    return dict(row.asDict(recursive=True))
