"""Many policies at the price of one: three figures per tick decide all policies of one limit type.

With the same limits on every volume, the smallest headroom is that of the volume with the smallest free share
(MinFreePercentage), the fewest free bytes (MinFreeBytes) or the most bytes consumed (ConsumedSpace). So a
tick's three extremes are all that a policy of one type needs, however many there are. It holds only without
latches, limits of single volumes, and brokers that are away: for a first look at many, not for the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from kquota.policy.limits import LimitType
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.tallies import TALLY

# The figure that each type of limit is compared with: how little of it is left, in the type's own unit.
_LEFT = {
    LimitType.MIN_FREE_PERCENTAGE: "min_free_ratio",
    LimitType.MIN_FREE_BYTES: "min_free_bytes",
    LimitType.CONSUMED_SPACE: "max_consumed_bytes",
}
_LEVELS = StructType(
    [
        StructField("policy", StringType()),
        StructField("soft", DoubleType()),
        StructField("hard", DoubleType()),
    ]
)


class NotOneType(ValueError):
    """The policies are not all of one limit type on every volume; the text names the one that is not."""


def statistics(usage: DataFrame, tick_seconds: int = 30) -> DataFrame:
    """Return the three extremes of the voting volumes in each tick.

    Columns: cluster_id, tick (number of ticks since the epoch), min_free_ratio, min_free_bytes,
    max_consumed_bytes.
    """
    # From microseconds at once: by way of the second, each row would be divided twice.
    tick = F.expr(f"unix_micros(at) div {int(tick_seconds) * 1_000_000}").alias("tick")
    free = F.col("capacity_bytes") - F.col("consumed_bytes")
    extremes = (
        F.min(free / F.col("capacity_bytes")).alias("min_free_ratio"),
        F.min(free).alias("min_free_bytes"),
        F.max("consumed_bytes").alias("max_consumed_bytes"),
    )
    # Most histories are of one cluster. To compare its name is cheaper than to hash it in each key, and files
    # with no other name are not read for the others.
    found = usage.select("cluster_id").first()
    name, one = F.col("cluster_id"), F.lit(None if found is None else found.cluster_id).cast("string")
    samples = voting(usage)
    of_one = samples.where(name == one).groupBy(tick).agg(*extremes).withColumn("cluster_id", one)
    return samples.where(name != one).groupBy(name, tick).agg(*extremes).unionByName(of_one)


def voting(usage: DataFrame) -> DataFrame:
    """Return the samples of volumes that vote: of data, and read."""
    return usage.where((F.col("role") == "data") & (F.col("status") == "ok") & (F.col("capacity_bytes") > 0))


def decide_all(extremes: DataFrame, policies: Sequence[Policy]) -> DataFrame:
    """Return what each policy decides in each tick (input: statistics).

    Columns: policy, cluster_id, tick, headroom, state.

    Raises:
        NotOneType: see there.
    """
    kind, levels = _levels(policies)
    left = F.col(_LEFT[kind]).cast("double")
    frame = extremes.sparkSession.createDataFrame(levels, _LEVELS)
    sign = -1.0 if kind is LimitType.CONSUMED_SPACE else 1.0
    soft, hard = F.col("soft"), F.col("hard")
    between = sign * (left - hard) / (sign * (soft - hard))
    headroom = (
        F.when(sign * left <= sign * hard, 0.0).when(sign * left >= sign * soft, 1.0).otherwise(between)
    )
    state = F.when(headroom >= 1, "OPEN").when(headroom > 0, "THROTTLE").otherwise("PAUSE")
    return extremes.crossJoin(F.broadcast(frame)).select(
        "policy", "cluster_id", "tick", headroom.alias("headroom"), state.alias("state")
    )


def first_look(usage: DataFrame, policies: Sequence[Policy], tick_seconds: int) -> DataFrame:
    """Return each policy's decision in each tick, in the form of `open_loop.replay`: a tick is named by its
    end, no broker is undetermined, and no producer is counted.

    Raises:
        NotOneType: see there.
    """
    decided = decide_all(statistics(usage, tick_seconds), policies)
    return decided.select(
        "policy",
        "cluster_id",
        ((F.col("tick") + 1) * tick_seconds).alias("tick"),
        "headroom",
        F.lit(0).alias("undetermined"),
        "state",
        *[F.lit(None).cast(field.dataType).alias(field.name) for field in TALLY],
    )


def _levels(policies: Sequence[Policy]) -> tuple[LimitType, list[tuple[str, float, float]]]:
    kinds, levels = set(), []
    for policy in policies:
        limits = policy.limits
        if limits is None or policy.brokers or limits.volumes or limits.soft.type is not limits.hard.type:
            raise NotOneType(
                f"policy {policy.name!r} must have limits of one type, and the same on every volume"
            )
        kinds.add(limits.hard.type)
        unit = 100 if limits.hard.type is LimitType.MIN_FREE_PERCENTAGE else 1
        levels.append(
            (
                policy.name,
                float(limits.soft.level / Fraction(unit)),
                float(limits.hard.level / Fraction(unit)),
            )
        )
    if len(kinds) != 1:
        raise NotOneType(f"the policies are of {len(kinds)} limit types; decide those of one type together")
    return kinds.pop(), levels
