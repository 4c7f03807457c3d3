"""A forecast as people read it in a terminal of 80 columns: percent and dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from kquota_pipeline.cli.results import console_for_people, table_of
from kquota_pipeline.forecast.probabilities import Outlook
from kquota_pipeline.report import figures

COLUMNS = (
    "broker_id",
    "volume",
    "used",
    "soft_limit_on",
    "hard_limit_on",
    "soft_in_30d",
    "hard_in_30d",
    "last_hour",
)
"""The columns of a forecast for people; JSON has those of forecast.job.FORECAST."""
_NUMBERS = frozenset(name for name in COLUMNS if name != "volume")
_HOUR_SECONDS, _DAY_SECONDS = 3600, 86_400
# A word where there is no date.
_WORDS = {
    Outlook.OVER: "over",
    Outlook.PERHAPS: "perhaps",
    Outlook.NOT_FILLING: figures.NONE,
    Outlook.UNKNOWN: "unknown",
    Outlook.UNKNOWN_LIMIT: "no limit known",
}


def for_people(row: Mapping[str, Any]) -> dict[str, object]:
    """Return a row of forecast.job.FORECAST as texts of COLUMNS. Times are UTC."""
    seconds = row["hour"] * _HOUR_SECONDS
    return {
        "broker_id": row["broker_id"],
        "volume": row["volume_name"],
        "used": figures.percent(row["consumed_bytes"] / max(row["capacity_bytes"], 1)),
        **{f"{limit}_limit_on": _date(row, limit, seconds) for limit in ("soft", "hard")},
        **{f"{limit}_in_30d": _percent(row[f"{limit}_within_30d"]) for limit in ("soft", "hard")},
        "last_hour": datetime.fromtimestamp(seconds, UTC).strftime("%-d %b %Hh"),
    }


def print_forecast(
    rows: Sequence[Mapping[str, Any]], console: Console | None = None, more: Sequence[str] = ()
) -> None:
    """Print a table for each cluster of rows of forecast.job.FORECAST, in their order, after `more` of their
    columns.
    """
    console = console or console_for_people()
    of_cluster: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        of_cluster.setdefault(row["cluster_id"], []).append(
            {name: row[name] for name in more} | for_people(row)
        )
    for name, own in sorted(of_cluster.items()):
        console.print(table_of((*more, *COLUMNS), own, f"Forecast: cluster {name}", console, _NUMBERS))


def _date(row: Mapping[str, Any], limit: str, seconds: float) -> str:
    outlook, days = Outlook(row[f"{limit}_outlook"]), row[f"{limit}_days"]
    if outlook is Outlook.FILLING and days is not None:
        return figures.day_of(seconds + days * _DAY_SECONDS)
    return _WORDS.get(outlook, figures.NONE)


def _percent(probability: float | None) -> str:
    return figures.NONE if probability is None else figures.percent(probability, 0)
