"""A forecast in words: with what probability a limit is reached, who fills the volume, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kquota_pipeline.forecast.probabilities import LIKELY, POSSIBLE, WITHIN_DAYS, Outlook
from kquota_pipeline.report import figures

Row = Mapping[str, Any]
_ALMOST_SURE = 0.8
_RARE = 0.01
_SOON_DAYS, _LAST_DAYS = 7, WITHIN_DAYS[-1]


def chances(row: Row, limit: str) -> str:
    """Return two probabilities that a limit is reached: soon, and later; or why there is none."""
    if row[f"{limit}_outlook"] in {Outlook.OVER, Outlook.UNKNOWN}:
        return str(row[f"{limit}_outlook"])
    found = [(days, row[f"{limit}_within_{days}d"]) for days in WITHIN_DAYS]
    if found[-1][1] < _RARE:
        return f"less than 1\N{NO-BREAK SPACE}% within {_LAST_DAYS} days"
    first = next((one for one in found if one[1] >= POSSIBLE), found[-1])
    second = next((one for one in found if one[1] >= _ALMOST_SURE), found[-1])
    pair = [first] if second[0] <= first[0] or second[1] < first[1] + 0.05 else [first, second]
    return ", ".join(
        f"{figures.percent(share, 0)} within {days} {'day' if days == 1 else 'days'}" for days, share in pair
    )


def who(row: Row, clients: list[Row]) -> str:
    """Return the topic that grows fastest on the volume, or else the client that writes most."""
    if row["fastest_topic"] is not None:
        rate = figures.size(row["fastest_topic_bytes_per_day"])
        return f"topic {row['fastest_topic']}: {rate} more than a day before"
    if clients:
        name = clients[0]["user"] or clients[0]["client_id"] or "(no user)"
        return f"{name} writes most to the cluster"
    return figures.NONE


def advice(row: Row) -> str:
    """Return what to do about the volume that fills first."""
    broker = row["broker_id"]
    leaving = row["leaving_1d_bytes"]
    over_bytes = row["consumed_bytes"] - row["soft_bytes"]
    if row["soft_outlook"] == Outlook.OVER:
        if leaving is not None and leaving >= over_bytes:
            return f"Wait: {figures.size(leaving)} leave by themselves within a day"
        return f"Make room: kquota relief on broker {broker}"
    if row["soft_outlook"] == Outlook.UNKNOWN:
        return "Wait for two days of history"
    if row[f"soft_within_{_SOON_DAYS}d"] >= LIKELY:
        return f"Make room this week: kquota relief on broker {broker}"
    if row[f"soft_within_{_LAST_DAYS}d"] >= LIKELY:
        return "Plan room: a shorter retention, other brokers, or a larger disk"
    if row[f"soft_within_{_LAST_DAYS}d"] >= POSSIBLE:
        return "Look again in a few days"
    return "Nothing"
