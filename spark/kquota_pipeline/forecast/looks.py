"""Looks at segments → hours per volume, by column expressions; and the arrays of one volume."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota_pipeline.forecast.history import BOUND_HOURS, Floats, Looks, Series
from kquota_pipeline.forecast.series import VOLUME

_BUCKETS = ("10m", "1h", "6h", "1d", "3d", "7d", "30d", "later")
_LEAVING = tuple(f"leaving_{bucket}_bytes" for bucket in _BUCKETS)
_STAYING = ("never_bytes", "waits_for_upload_bytes", "stray_bytes", "future_bytes", "unknown_bytes")


def hourly_looks(expiry: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the last look of each hour: one row per volume and hour, and one for each topic on it.

    The topics that a record does not name have no row.

    Columns: cluster_id, broker_id, volume_name, hour (epoch hours), topic (null for the volume), the
    leaving bytes by bucket, staying_bytes, and of a topic bytes, soon_bytes and keep_hours (0: unknown).
    """
    hour = F.floor(F.unix_timestamp("at") / 3600).cast("long").alias("hour")
    parts = [F.coalesce(name, F.lit(0)).cast("double") for name in _LEAVING]
    # Files that are deleted already go within a minute or so.
    parts[0] = parts[0] + F.coalesce("deleted_bytes", F.lit(0))
    staying = sum((F.coalesce(name, F.lit(0)) for name in _STAYING), F.lit(0.0))
    volume = F.struct(*(part.alias(name) for part, name in zip(parts, _LEAVING, strict=True)),
                      staying.alias("staying_bytes"))  # fmt: skip
    nothing = F.lit(None).cast("double")
    of_volume = (
        expiry.groupBy(*VOLUME, hour)
        .agg(F.max_by(volume, "at").alias("look"))
        .select(
            *VOLUME,
            "hour",
            F.lit(None).cast("string").alias("topic"),
            "look.*",
            nothing.alias("bytes"),
            nothing.alias("soon_bytes"),
            nothing.alias("keep_hours"),
        )
    )
    own = F.struct(
        F.col("bytes").cast("double").alias("bytes"),
        F.col("leaving_soon_bytes").cast("double").alias("soon_bytes"),
        F.coalesce(F.col("retention_seconds") / 3600, F.lit(0.0)).alias("keep_hours"),
    )
    of_topics = (
        topics.where(F.col("topic").isNotNull())
        .groupBy(*VOLUME, hour, "topic")
        .agg(F.max_by(own, "at").alias("look"))
        .select(
            *VOLUME,
            "hour",
            "topic",
            *(nothing.alias(name) for name in (*_LEAVING, "staying_bytes")),
            "look.*",
        )
    )
    return of_volume.unionByName(of_topics)


def series_of(hours: pd.DataFrame) -> Series:
    """Return the hours of one volume, sorted, as arrays."""
    return Series(
        hours=hours["hour"].to_numpy(dtype=np.int64),
        crest_bytes=hours["crest_bytes"].to_numpy(dtype=float),
        held=hours["held"].to_numpy(dtype=float),
        capacity_bytes=float(hours["capacity_bytes"].iloc[-1]),
        volume_ids=hours["volume_id"].to_numpy(dtype=object),
    )


def looks_of(rows: pd.DataFrame) -> Looks | None:
    """Return the looks at one volume as arrays, None where there is none."""
    of_volume = rows[rows["topic"].isna()].sort_values("hour")
    if of_volume.empty:
        return None
    hours = of_volume["hour"].to_numpy(dtype=np.int64)
    of_topics = rows[rows["topic"].notna() & rows["hour"].isin(hours)]
    names, column = np.unique(of_topics["topic"].to_numpy(dtype=str), return_inverse=True)
    row = np.searchsorted(hours, of_topics["hour"].to_numpy(dtype=np.int64))
    return Looks(
        hours=hours,
        leaving_bytes=_matrix(of_volume, len(BOUND_HOURS) + 1),
        never_bytes=of_volume["staying_bytes"].to_numpy(dtype=float),
        topics=tuple(names),
        topic_bytes=_placed(of_topics["bytes"], row, column, (len(hours), len(names))),
        topic_soon_bytes=_placed(of_topics["soon_bytes"], row, column, (len(hours), len(names))),
        topic_keep_hours=_placed(of_topics["keep_hours"], row, column, (len(hours), len(names))),
    )


def _matrix(of_volume: pd.DataFrame, buckets: int) -> Floats:
    found = of_volume[list(_LEAVING)].to_numpy(dtype=float)
    assert found.shape[1] == buckets
    return found


def _placed(values: pd.Series[float], row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> Floats:
    found = np.zeros(shape)
    found[row, column] = values.to_numpy(dtype=float)
    return found
