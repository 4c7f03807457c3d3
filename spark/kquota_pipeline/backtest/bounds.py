"""Limits as whole bytes, computed by the core itself, so that column expressions decide exactly as it does.

A volume's consumption is a whole number, so each comparison with an exact bound is one with an integer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kquota.core.limits import MAX_BYTES, NO_ZONE_RELEASE_SHARE, InvalidLimit, Limit, LimitPair
from kquota_pipeline.backtest.policy import Policy

# The inputs that limits of a volume depend on.
LIMIT_KEY = (
    "cluster_id", "broker_id", "volume_name", "mount_point", "capacity_bytes",
    "hard_limit_type", "hard_limit_level", "soft_limit_type", "soft_limit_level",
)  # fmt: skip
BOUNDS = StructType(
    [
        StructField("policy", StringType()),
        StructField("cluster_id", StringType()),
        StructField("broker_id", IntegerType()),
        StructField("volume_name", StringType()),
        StructField("mount_point", StringType()),
        StructField("capacity_bytes", LongType()),
        StructField("hard_limit_type", StringType()),
        StructField("hard_limit_level", DoubleType()),
        StructField("soft_limit_type", StringType()),
        StructField("soft_limit_level", DoubleType()),
        StructField("limits", StringType()),  # distinguishes pairs of limits
        StructField("invalid", BooleanType()),  # the pair can't be judged; the next columns are null then
        StructField("open_max_bytes", LongType()),  # OPEN up to here
        StructField("hard_min_bytes", LongType()),  # PAUSE from here on
        StructField("release_max_bytes", LongType()),  # a latch is released up to here
        StructField("hard_bytes", DoubleType()),
        StructField("zone_bytes", DoubleType()),
    ]
)


def bounds(usage: DataFrame, policies: Sequence[Policy]) -> DataFrame:
    """Return the bounds (BOUNDS) of every volume, capacity and pair of limits in `usage`, under each
    policy.
    """

    def of_rows(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            rows = [
                {"policy": policy.name, **key, **_bounds_of(policy, key)}
                for key in records(frame)
                for policy in policies
            ]
            yield pd.DataFrame(rows, columns=BOUNDS.fieldNames())

    return usage.select(*LIMIT_KEY).distinct().mapInPandas(of_rows, BOUNDS)


def with_bounds(usage: DataFrame, policies: Sequence[Policy]) -> DataFrame:
    """Return every row once per policy, with its bounds."""
    small = F.broadcast(bounds(usage, policies)).alias("b")
    same = [F.col(f"u.{name}").eqNullSafe(F.col(f"b.{name}")) for name in LIMIT_KEY]
    return usage.alias("u").join(small, same).select("u.*", *[f"b.{name}" for name in _ADDED])


def records(frame: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield a frame's rows by their columns' names."""
    for row in frame.to_dict("records"):
        yield {str(name): value for name, value in row.items()}


_ADDED = (
    "policy", "limits", "invalid", "open_max_bytes", "hard_min_bytes", "release_max_bytes", "hard_bytes",
    "zone_bytes",
)  # fmt: skip


def pair_of(policy: Policy, key: dict[str, object]) -> LimitPair:
    """Return the limits of a volume under a policy.

    Raises:
        InvalidLimit: the recorded ones can't be judged.
    """
    mount_point = key["mount_point"]
    pair = policy.pair(int(str(key["broker_id"])), mount_point if isinstance(mount_point, str) else None)
    if pair is not None:
        return pair
    return LimitPair(soft=_recorded("soft", key), hard=_recorded("hard", key))


def _recorded(kind: str, key: dict[str, object]) -> Limit:
    return Limit.parse({"type": key[f"{kind}_limit_type"], "level": key[f"{kind}_limit_level"]})


def _bounds_of(policy: Policy, key: dict[str, object]) -> dict[str, object]:
    capacity = int(str(key["capacity_bytes"]))
    try:
        pair = pair_of(policy, key)
    except InvalidLimit:
        return {"limits": "invalid", "invalid": True}
    exact = pair.bounds(capacity)
    zone = exact.hard_bytes - exact.soft_bytes
    hard_min = math.ceil(exact.hard_bytes)
    if exact.has_throttle_zone:
        open_max = math.floor(exact.soft_bytes)
        release_max = max(open_max, math.ceil(exact.hard_bytes - policy.release_margin * zone) - 1)
    else:
        open_max = hard_min - 1
        margin = min(NO_ZONE_RELEASE_SHARE * capacity, exact.hard_bytes / 2)
        release_max = math.ceil(exact.hard_bytes - margin) - 1
    return {
        "limits": f"{pair.soft} / {pair.hard}",
        "invalid": False,
        "open_max_bytes": _long(open_max),
        "hard_min_bytes": _long(hard_min),
        "release_max_bytes": _long(min(release_max, hard_min - 1)),
        "hard_bytes": float(exact.hard_bytes),
        "zone_bytes": float(max(zone, Fraction(0))),
    }


def _long(number: int) -> int:
    """Return the number within 64 bits; a consumption is never beyond them."""
    return max(-1, min(number, MAX_BYTES))
