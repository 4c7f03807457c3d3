"""A forecast in words: with what probability a limit is reached, who fills the volume, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kquota_pipeline.forecast.probabilities import LIKELY, POSSIBLE, WITHIN_DAYS, Outlook
from kquota_pipeline.report import figures

Row = Mapping[str, Any]
_ALMOST_SURE = 0.8
_RARE = 0.01
# An operator who waits should not have to make room a day later.
_BELOW_DAYS = 3
_SOON_DAYS, _LAST_DAYS = 7, WITHIN_DAYS[-1]


def chances(row: Row, limit: str) -> str:
    """Return two probabilities that a limit is reached: soon, and later; or why there is none."""
    if row[f"{limit}_outlook"] in {Outlook.OVER, Outlook.UNKNOWN, Outlook.UNKNOWN_LIMIT}:
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


def who(filled_by: Row | None) -> tuple[str, str | None]:
    """Return who makes the volume grow and by how much, and the topics; as far as the history knows it.

    Args:
        filled_by: accounting.attribution.fillers of the volume.
    """
    parts = [] if filled_by is None else filled_by["parts"]
    if filled_by is None or not parts or (len(parts) == 1 and parts[0]["topic"] is None):
        return ("not known", "agents have not looked at its segments")
    first, whole = parts[0], filled_by["bytes"]
    if first["topic"] is None and len(parts) > 1:
        first = parts[1]
    name = f"topic {first['topic']}" if first["user"] is None else first["user"] or "ANONYMOUS"
    share = figures.percent(first["bytes"] / whole, 0) if whole > 0 else figures.NONE
    what = f"of {figures.size(whole)} {'more in a week' if filled_by['has_grown'] else 'on it'}"
    unknown = "; its writers are not known" if first["user"] is None else f" (topic {first['topic']})"
    return (f"{name}: {share}", f"{what}{unknown}")


def comes_below(row: Row) -> bool:
    """Return whether a volume over its soft limit will be below it from tomorrow on by what expires, although
    more flows in: by the crests of its forecast after the next 24 hours.
    """
    leaving, crests = row["leaving_1d_bytes"], row["crest_bytes"]
    if leaving is None or crests is None or leaving < row["consumed_bytes"] - row["soft_bytes"]:
        return False
    # The crest of the next 24 hours is at least what is there now.
    return all(crest < row["soft_bytes"] for crest in crests[1:_BELOW_DAYS])


def lacks_a_limit(row: Row) -> bool:
    """Return whether nothing can be foretold of one of the limits, because its type is not known here."""
    return Outlook.UNKNOWN_LIMIT in (row["soft_outlook"], row["hard_outlook"])


def advice(row: Row) -> str:
    """Return what to do about the volume that fills first."""
    broker = row["broker_id"]
    if row["soft_outlook"] == Outlook.OVER:
        if comes_below(row):
            return f"Wait: {figures.size(row['leaving_1d_bytes'])} leave by themselves within a day"
        return f"Make room: kquota relief on broker {broker}"
    if lacks_a_limit(row):
        return f"Upgrade the pipeline: broker {broker} has a type of limit that it does not know"
    if row["soft_outlook"] == Outlook.UNKNOWN:
        return "Wait for two days of history"
    if row[f"soft_within_{_SOON_DAYS}d"] >= LIKELY:
        return f"Make room this week: kquota relief on broker {broker}"
    if row[f"soft_within_{_LAST_DAYS}d"] >= LIKELY:
        return "Plan room: a shorter retention, other brokers, or a larger disk"
    if row[f"soft_within_{_LAST_DAYS}d"] >= POSSIBLE:
        return "Look again in a few days"
    return "Nothing"
