"""The forecast of every volume: DataFrame → DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kquota_pipeline.forecast.conformal import TABLE_DAYS, Spread, spread_of, thinned, within_disk
from kquota_pipeline.forecast.history import DAY_HOURS, Looks
from kquota_pipeline.forecast.looks import looks_of, series_of
from kquota_pipeline.forecast.places import followed, of_one
from kquota_pipeline.forecast.probabilities import (
    WITHIN_DAYS,
    Outlook,
    days_until,
    outlook,
    reached_by_day,
    within,
)
from kquota_pipeline.forecast.series import VOLUME
from kquota_pipeline.forecast.volume import volume_forecast

LIMITS = ("soft", "hard")
_NUMBERS = ArrayType(DoubleType())
_VOLUME_FIELDS: Mapping[str, DataType] = {
    "cluster_id": StringType(),
    "broker_id": IntegerType(),
    "volume_name": StringType(),
    "mount_point": StringType(),
    "hour": LongType(),  # the last hour of the history, since the epoch
    "capacity_bytes": LongType(),
    "consumed_bytes": LongType(),
    "soft_bytes": DoubleType(),
    "hard_bytes": DoubleType(),
    "basis": StringType(),  # forecast.volume.Basis; null with too little history, and so below
    "days": IntegerType(),  # of the history that it is made of
    "fastest_topic": StringType(),  # that grew most in the last day; null where agents have not looked
    "fastest_topic_bytes_per_day": DoubleType(),
    "leaving_1d_bytes": DoubleType(),  # what leaves by itself within a day, likewise
    "crest_bytes": _NUMBERS,  # of each of the next thirty days
}
_OF_VOLUME = StructType(
    [StructField(name, kind) for name, kind in _VOLUME_FIELDS.items()]
    + [StructField(name, _NUMBERS) for name in ("usual_error_bytes", "day_errors", "highest_errors")]
)
FORECAST = StructType(
    [StructField(name, kind) for name, kind in _VOLUME_FIELDS.items()]
    # Four of five crests lie in between.
    + [StructField(name, _NUMBERS) for name in ("low_bytes", "high_bytes")]
    + [
        StructField(f"{limit}_{name}", kind)
        for limit in LIMITS
        for name, kind in {
            "outlook": StringType(),
            "days": DoubleType(),  # until it is reached with a probability of one half; null is beyond thirty
            **{f"within_{days}d": DoubleType() for days in WITHIN_DAYS},
        }.items()
    ]
)


def forecast(hours: DataFrame, looks: DataFrame | None = None) -> DataFrame:
    """Return one row per volume (FORECAST): its crests to come, and the probability that it reaches its soft
    and hard limit (input: series.hourly).

    With looks (looks.hourly_looks), forecasts are made of what expires, where agents have looked.
    A volume that went on under another name, or in another broker, has its whole history. Volumes that the
    cluster has not heard of for a day (decommissioned, replaced) have no future, and no row.
    """
    rows = per_volume(hours, looks, _of_volume, _OF_VOLUME)
    newest = F.max("hour").over(Window.partitionBy("cluster_id"))
    recent = F.col("hour") > F.col("newest") - DAY_HOURS
    kept = rows.withColumn("newest", newest).where(recent).drop("newest")
    return kept.groupBy("basis").applyInPandas(_of_kind, FORECAST)


def per_volume(
    hours: DataFrame,
    looks: DataFrame | None,
    of_volume: Callable[[pd.DataFrame, Looks | None], pd.DataFrame],
    schema: StructType,
) -> DataFrame:
    """Apply a function to the hours of each volume and its looks (None without them), wherever it was."""
    hours, looks = followed(hours, looks)
    if looks is None:
        return hours.groupBy(*VOLUME).applyInPandas(
            lambda own: of_volume(of_one(own).sort_values("hour"), None), schema
        )

    def of_both(own: pd.DataFrame, seen: pd.DataFrame) -> pd.DataFrame:
        if own.empty:
            return pd.DataFrame(columns=schema.fieldNames())
        return of_volume(of_one(own).sort_values("hour"), looks_of(of_one(seen)))

    return hours.groupBy(*VOLUME).cogroup(looks.groupBy(*VOLUME)).applyInPandas(of_both, schema)


def _of_volume(hours: pd.DataFrame, looks: Looks | None) -> pd.DataFrame:
    last = hours.iloc[-1]
    found = volume_forecast(series_of(hours), looks)
    taken = ("mount_point", "hour", "capacity_bytes", "soft_bytes", "hard_bytes")
    row = {name: last[name] for name in (*VOLUME, *taken)}
    row |= {"consumed_bytes": last["last_bytes"], **_contents(looks)}
    if found is not None:
        row |= {
            "basis": found.basis.value,
            "days": found.days,
            "crest_bytes": found.crest_bytes,
            "usual_error_bytes": found.usual_error_bytes,
            "day_errors": thinned(found.past_errors).ravel(),
            "highest_errors": thinned(found.past_highest).ravel(),
        }
    return _frame([row], _OF_VOLUME)


def _contents(looks: Looks | None) -> dict[str, object]:
    """Return who fills a volume, and what leaves it by itself."""
    if looks is None:
        return {}
    found: dict[str, object] = {"leaving_1d_bytes": float(looks.leaving_bytes[-1, :4].sum())}
    day_ago = int(np.searchsorted(looks.hours, looks.hours[-1] - DAY_HOURS, "right")) - 1
    if day_ago >= 0 and looks.topics:
        grown = looks.topic_bytes[-1] - looks.topic_bytes[day_ago]
        fastest = int(np.argmax(grown))
        if grown[fastest] > 0:
            days = (looks.hours[-1] - looks.hours[day_ago]) / DAY_HOURS
            found |= {
                "fastest_topic": looks.topics[fastest],
                "fastest_topic_bytes_per_day": float(grown[fastest] / days),
            }
    return found


def pooled(day_errors: Iterable[Any], highest_errors: Iterable[Any]) -> Spread:
    """Return the spread of the errors of several volumes, each as `thinned` has them."""
    parts = [
        np.concatenate([np.zeros(0), *(np.asarray(one, dtype=float) for one in errors)]).reshape(
            -1, len(TABLE_DAYS)
        )
        for errors in (day_errors, highest_errors)
    ]
    return spread_of(*parts)


def _of_kind(rows: pd.DataFrame) -> pd.DataFrame:
    """Finish the forecasts of volumes of one kind, whose errors are pooled."""
    known = rows["basis"].notna()
    spread = pooled(rows.loc[known, "day_errors"], rows.loc[known, "highest_errors"])
    found = [_finished(row, spread) for row in rows.to_dict("records")]
    return _frame(found, FORECAST)


def _frame(rows: Iterable[Mapping[str, object]], schema: StructType) -> pd.DataFrame:
    """Return rows as Spark takes them: what is missing is None, and never a number."""
    names = schema.fieldNames()
    return pd.DataFrame([[row.get(name) for name in names] for row in rows], columns=names, dtype=object)


def _known(value: Any) -> Any:
    """Return a value of a frame of pandas, where a number that is missing is NaN; None if it is missing."""
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else value


def _finished(row: Mapping[Hashable, Any], spread: Spread) -> dict[str, object]:
    crests, usual = row["crest_bytes"], row["usual_error_bytes"]
    found = {name: _known(row[name]) for name in _VOLUME_FIELDS}
    if crests is not None:
        # How likely a crest above the disk would be says how soon a limit is reached.
        shown = within_disk(crests, usual, spread, row["capacity_bytes"])
        found["crest_bytes"], found["low_bytes"], found["high_bytes"] = shown
    for limit in LIMITS:
        limit_bytes = _known(row[f"{limit}_bytes"])
        reached = (
            None
            if crests is None or limit_bytes is None
            else reached_by_day(crests, usual, spread, limit_bytes)
        )
        now = outlook(reached, float(row["consumed_bytes"]), limit_bytes)
        found[f"{limit}_outlook"] = now.value
        if reached is None:
            continue
        if now is Outlook.OVER:
            reached = np.ones(len(reached))
        found[f"{limit}_days"] = 0.0 if now is Outlook.OVER else days_until(reached)
        for days, probability in zip(WITHIN_DAYS, within(reached), strict=True):
            found[f"{limit}_within_{days}d"] = round(probability, 4)
    return found
