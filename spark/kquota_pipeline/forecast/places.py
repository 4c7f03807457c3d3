"""Volumes that went on elsewhere: under another name of their device, or in a broker with another id."""

from __future__ import annotations

import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.forecast.series import VOLUME

_PLACE = ("broker_id", "volume_name")
_TO = tuple(f"to_{name}" for name in _PLACE)


def followed(hours: DataFrame, looks: DataFrame | None) -> tuple[DataFrame, DataFrame | None]:
    """Return hours and looks (series.hourly, looks.hourly_looks) with each volume where it was last, by its
    id; column `moved` says which rows were elsewhere.

    Copies of a disk share its id, and are in several places at a time: they are not followed.
    """
    moves = _moves(hours)
    # In the hour of the move the place where it went on counts.
    here = hours.join(F.broadcast(moves), [*VOLUME, "volume_id"], "left").where(
        "until IS NULL OR hour < until"
    )
    if looks is None:
        return _moved(here), None
    of_looks = moves.drop("volume_id").withColumnsRenamed({name: f"{name}_before" for name in VOLUME})
    same = [F.col(name) == F.col(f"{name}_before") for name in VOLUME]
    inside = (F.col("hour") >= F.col("first")) & (F.col("hour") < F.col("until"))
    return _moved(here), _moved(looks.join(F.broadcast(of_looks), [*same, inside], "left"))


def of_one(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the volume that is in a place: for hours in which it was elsewhere, those from
    there, and none of the volume that was here then.
    """
    moved = rows["moved"]
    return rows[moved | ~rows["hour"].isin(rows.loc[moved, "hour"])] if moved.any() else rows


def _moves(hours: DataFrame) -> DataFrame:
    """Return the places that volumes have left, with their first hour there and the first one elsewhere."""
    places = (
        hours.where("volume_id IS NOT NULL")
        .groupBy(*VOLUME, "volume_id")
        .agg(F.min("hour").alias("first"), F.max("hour").alias("last"))
    )
    of_id = Window.partitionBy("cluster_id", "volume_id")
    in_turn = of_id.orderBy("first", "last")
    newest = {f"to_{name}": F.max_by(name, "last").over(of_id) for name in _PLACE}
    return (
        places.withColumns({"until": F.lead("first").over(in_turn), **newest})
        .withColumn("after", F.coalesce(F.col("until") >= F.col("last"), F.lit(True)))
        .withColumn("apart", F.min("after").over(of_id))
        .where("apart AND until IS NOT NULL")
        .select(*VOLUME, "volume_id", *_TO, "first", "until")
    )


def _moved(rows: DataFrame) -> DataFrame:
    joined = ("first", "until", *_TO, *(f"{name}_before" for name in VOLUME))
    places = {name: F.coalesce(f"to_{name}", name) for name in _PLACE}
    return rows.withColumns({"moved": F.col("until").isNotNull(), **places}).drop(*joined)
