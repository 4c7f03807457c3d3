"""The owners of the bytes in the report: the account of the last week (docs/chargeback.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import pandas as pd
from pyspark.sql import Row
from pyspark.sql import functions as F

from kquota_pipeline.accounting.attribution import (
    BEFORE_DAYS,
    FIGURES,
    fillers,
    known_ratios,
    or_none,
    owners,
    with_groups,
)
from kquota_pipeline.accounting.job import accounted
from kquota_pipeline.history import History
from kquota_pipeline.report.courses import among

PLOTTED = 6
"""How many volumes get a plot, and what fills them."""
DAYS = 7
"""The days of the account in the report."""
_LISTED = 12


def holders_of(
    history: History, last: date, forecasts: Sequence[Row], groups: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, object]]:
    """Return for each cluster who held what in the seven days up to `last`, by principal and group, and who
    fills the volumes that fill first (`forecasts` are in that order).
    """
    first = last - timedelta(days=DAYS - 1)
    days = F.col("day").between(F.lit(first - timedelta(days=BEFORE_DAYS)), F.lit(last))
    held = history.held.where(days).cache()
    found = accounted(held, history.written.where(days), first, last)
    wanted: dict[str, list[Row]] = {}
    for row in forecasts:
        wanted.setdefault(row.cluster_id, []).append(row)
    shown = [row for own in wanted.values() for row in own[:PLOTTED]]
    ends = held.where(F.col("day").isin([first, last]) & among(shown)).toPandas()
    held.unpersist()
    rows = with_groups(found.rows, groups)
    known = {name: ratios for name, *ratios in known_ratios(rows)}
    answer: dict[str, dict[str, object]] = {}
    for name, own in wanted.items():
        of_cluster, shares = (
            rows[rows["cluster_id"] == name],
            found.shares[found.shares["cluster_id"] == name],
        )
        of_user, of_topic = known.get(name, (0.0, 0.0))
        answer[name] = {
            "from": first.isoformat(),
            "to": last.isoformat(),
            "known_principal_ratio": float(of_user),
            "known_topic_ratio": float(of_topic),
            "principals": _records(owners(of_cluster, ["user"])),
            "groups": _records(owners(of_cluster, ["group"])) if groups else [],
            "fillers": [
                {
                    "broker_id": row.broker_id,
                    "volume_name": row.volume_name,
                    **fillers(*_of_ends(ends, row, first, last), shares),
                }
                for row in own[:PLOTTED]
            ],
        }
    return answer


def _of_ends(
    ends: pd.DataFrame, row: Row, first: date, last: date
) -> tuple[dict[str | None, float] | None, dict[str | None, float]]:
    """Return the mean bytes of each topic on a volume on both days; None of the first one if they can't be
    compared: there were no samples, or looks at one end alone.
    """
    before, after = (_of_volume(ends, row, day) for day in (first, last))
    looked = [any(topic is not None for topic in own) for own in (before, after)]
    return (before if before and after and looked[0] == looked[1] else None), after


def _of_volume(ends: pd.DataFrame, row: Row, day: date) -> dict[str | None, float]:
    """Return the mean bytes of each topic on a volume in a day."""
    own = ends[
        (ends["cluster_id"] == row.cluster_id)
        & (ends["broker_id"] == row.broker_id)
        & (ends["volume_name"] == row.volume_name)
        & (ends["day"] == day)
    ]
    topics = [None if pd.isna(topic) else str(topic) for topic in own["topic"]]
    return dict(zip(topics, own["byte_days"] * 24 / own["hours"], strict=True))


def _records(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return the largest owners, and always what is not known, as plain values."""
    owner_name = next(column for column in rows.columns if column not in FIGURES)
    kept = rows[(rows.index < _LISTED) | rows[owner_name].isna()]
    return [
        {"owner": owner, **{name: or_none(value) for name, value in zip(FIGURES, values, strict=True)}}
        for owner, *values in kept[[owner_name, *FIGURES]].itertuples(index=False)
    ]
