"""Whether the back-test gives what happened: the policy in force, tried on its own history.

A tick counts by its end. Where the simulated state differs from the one that the brokers decided, the first
of these causes that holds is named; only the last one speaks against the simulation.
"""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kquota_pipeline.backtest.events import in_force, tick_of
from kquota_pipeline.backtest.stage import production

MOST_DIFFERENT = 0.05
"""The share of the time in which states may differ."""
MOST_DIFFERENT_BYTES = 0.1
"""The share by which the bytes held back may differ."""
_STATES = ("OPEN", "THROTTLE", "PAUSE")


class Difference(StrEnum):
    """Why a tick differs."""

    GAP = "gap"  # no record of usage, or no decision in force
    OBSERVE = "observe"  # no broker enforced, so nothing was held
    HOLD = "hold"  # an operator's order decided
    MAINTENANCE = "maintenance"  # a broker was exempt from being silent, or did not count
    UNDETERMINED = "undetermined"  # the state of a broker was not known
    AFTERMATH = (
        "aftermath"  # a hold or the mode observe before: the disks hold what the policy would not have
    )
    WITHIN_TICK = "within the tick"  # the recorded state changed in this tick or next to it
    SIMULATION = "simulation"


def differences(
    course: DataFrame,
    usage: DataFrame,
    decisions: DataFrame,
    clients: DataFrame,
    operators: DataFrame,
    tick_seconds: int,
) -> DataFrame:
    """Return each tick of the course (input: job.closed_loop) with what was recorded.

    Columns: policy, cluster_id, tick, state, recorded_state (null in a gap), held_bytes, recorded_held_bytes,
    cause (a Difference; null where the states are the same).
    """
    simulated = course.select("policy", "cluster_id", "tick", _state("factor").alias("state"), "held_bytes")
    tick = ["cluster_id", "tick"]
    reported = usage.select("cluster_id", tick_of("at", tick_seconds).alias("tick")).distinct()
    held = production(clients, decisions, tick_seconds).select(
        *tick,
        F.greatest(F.lit(0.0), F.col("offered_bytes") - F.col("produced_bytes")).alias("recorded_held_bytes"),
    )
    joined = (
        simulated.join(_recorded(decisions, tick_seconds), tick, "left")
        .join(reported.withColumn("is_reported", F.lit(True)), tick, "left")
        .join(_maintained(operators, tick_seconds).withColumn("is_maintained", F.lit(True)), tick, "left")
        .join(held, tick, "left")
    )
    by_tick = Window.partitionBy("policy", "cluster_id").orderBy("tick")
    before = by_tick.rowsBetween(Window.unboundedPreceding, -1)
    was_disturbed = F.coalesce(F.max(F.col("is_observed") | F.col("is_held")).over(before), F.lit(False))
    changes = F.lit(False)
    for other in (F.lag("recorded_state").over(by_tick), F.lead("recorded_state").over(by_tick)):
        changes = changes | F.coalesce(other != F.col("recorded_state"), F.lit(False))
    cause = (
        F.when(F.col("state") == F.col("recorded_state"), None)
        .when(F.col("recorded_state").isNull() | F.col("is_reported").isNull(), Difference.GAP.value)
        .when(F.col("is_observed"), Difference.OBSERVE.value)
        .when(F.col("is_held"), Difference.HOLD.value)
        .when(F.col("is_maintained"), Difference.MAINTENANCE.value)
        .when(F.col("is_undetermined"), Difference.UNDETERMINED.value)
        .when(was_disturbed, Difference.AFTERMATH.value)
        .when(changes | F.coalesce("has_changed", F.lit(False)), Difference.WITHIN_TICK.value)
        .otherwise(Difference.SIMULATION.value)
    )
    return joined.select(
        "policy",
        *tick,
        "state",
        "recorded_state",
        "held_bytes",
        F.coalesce("recorded_held_bytes", F.lit(0.0)).alias("recorded_held_bytes"),
        cause.alias("cause"),
    )


def comparison(ticks: DataFrame, tick_seconds: int) -> DataFrame:
    """Return how well each policy reproduces the recording (input: differences).

    Columns: policy, cluster_id, seconds, the simulated and the recorded seconds of each state,
    different_ratio (the share of the time in which states differ), the seconds of each cause of it,
    held_bytes, recorded_held_bytes, held_ratio (simulated by recorded; null where none were held), reproduces
    (whether both are within their bounds) and sentence.
    """
    count = F.count("*")
    sums = ticks.groupBy("policy", "cluster_id").agg(
        (count * tick_seconds).alias("seconds"),
        *[_seconds(F.col("state") == state, tick_seconds, state.lower()) for state in _STATES],
        *[
            _seconds(F.col("recorded_state") == state, tick_seconds, f"recorded_{state.lower()}")
            for state in _STATES
        ],
        (F.count("cause") / count).alias("different_ratio"),
        *[_seconds(F.col("cause") == one.value, tick_seconds, _name(one)) for one in Difference],
        F.sum("held_bytes").alias("held_bytes"),
        F.sum("recorded_held_bytes").alias("recorded_held_bytes"),
    )
    ratio = F.when(F.col("recorded_held_bytes") > 0, F.col("held_bytes") / F.col("recorded_held_bytes"))
    same_bytes = F.coalesce(F.abs(F.col("held_ratio") - 1) <= MOST_DIFFERENT_BYTES, F.col("held_bytes") == 0)
    judged = sums.withColumn("held_ratio", ratio).withColumn(
        "reproduces", (F.col("different_ratio") <= MOST_DIFFERENT) & same_bytes
    )
    return judged.withColumn("sentence", _sentence())


def spans(ticks: DataFrame, tick_seconds: int) -> DataFrame:
    """Return where states differ, one row for each run of ticks with the same states and cause (input:
    differences).

    Columns: policy, cluster_id, from_at, until_at, state, recorded_state, cause.
    """
    kind = ("policy", "cluster_id", "state", "recorded_state", "cause")
    by_kind = Window.partitionBy(*kind).orderBy("tick")
    run = F.col("tick") - F.row_number().over(by_kind) * tick_seconds
    return (
        ticks.where(F.col("cause").isNotNull())
        .withColumn("run", run)
        .groupBy(*kind, "run")
        .agg(F.min("tick").alias("first"), F.max("tick").alias("last"))
        .select(
            "policy",
            "cluster_id",
            F.timestamp_seconds(F.col("first") - tick_seconds).alias("from_at"),
            F.timestamp_seconds("last").alias("until_at"),
            "state",
            "recorded_state",
            "cause",
        )
    )


def _recorded(decisions: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the worst state that a broker's decision in force has at the end of each tick, and what
    disturbs it.
    """
    of_tick = in_force(decisions, tick_seconds).withColumn("tick", F.explode("ticks"))
    rank = F.array_position(F.array(*[F.lit(state) for state in _STATES]), F.col("state"))
    # Numbers alone: of two in one tick the later one counts.
    last = F.struct("at", "sequence")
    by_broker = of_tick.groupBy("cluster_id", "tick", "broker_id").agg(
        F.max_by(rank, last).alias("rank"),
        (F.count_distinct(rank) > 1).alias("has_changed"),
        F.max((F.col("mode") == "enforce").cast("int")).alias("enforces"),
        F.max(F.col("hold").isNotNull()).alias("is_held"),
        F.max((F.size(F.coalesce("undetermined", F.array())) > 0) | F.col("fallback")).alias(
            "is_undetermined"
        ),
    )
    worst = by_broker.groupBy("cluster_id", "tick").agg(
        F.max("rank").alias("rank"),
        F.max("has_changed").alias("has_changed"),
        (F.max("enforces") == 0).alias("is_observed"),
        F.max("is_held").alias("is_held"),
        F.max(F.coalesce("is_undetermined", F.lit(False))).alias("is_undetermined"),
    )
    states = F.array(*[F.lit(state) for state in _STATES])
    return worst.withColumn("recorded_state", F.element_at(states, F.col("rank").cast("int"))).drop("rank")


def _maintained(operators: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the ticks in which a maintenance or a quarantine was in force."""
    by_subject = Window.partitionBy("cluster_id", "order_kind", "subject_broker_id").orderBy("at")
    ends = F.least(F.col("until"), F.lead("at").over(by_subject))
    orders = operators.where("order_kind IN ('maintenance', 'quarantine')").withColumn("ends", ends)
    first = tick_of("at", tick_seconds)
    last = F.greatest(first, tick_of("ends", tick_seconds))
    ticks = F.sequence(first, last, F.lit(tick_seconds).cast("long"))
    given = orders.where("NOT coalesce(withdrawn, false) AND ends IS NOT NULL")
    return given.select("cluster_id", F.explode(ticks).alias("tick")).distinct()


def _state(factor: str) -> Column:
    return F.when(F.col(factor) >= 1, "OPEN").when(F.col(factor) > 0, "THROTTLE").otherwise("PAUSE")


def _seconds(condition: Column, tick_seconds: int, name: str) -> Column:
    return F.sum(F.when(condition, tick_seconds).otherwise(0)).alias(f"{name}_seconds")


def _name(cause: Difference) -> str:
    return cause.value.replace(" ", "_")


def _sentence() -> Column:
    """Say in words whether the recording was reproduced, and what differs most often."""
    names = F.array(*[F.lit(one.value) for one in Difference])
    seconds = F.array(*[F.col(f"{_name(one)}_seconds") for one in Difference])
    most = F.element_at(names, F.array_position(seconds, F.array_max(seconds)).cast("int"))
    share = F.format_number(100 * F.col("different_ratio"), 1)
    states = F.when(F.col("different_ratio") == 0, "All states are the same").otherwise(
        F.concat(F.lit("States differ in "), share, F.lit(" % of the time, most often by cause: "), most)
    )
    held = F.when(F.col("held_ratio").isNull(), "no bytes were held back in the history").otherwise(
        F.concat(
            F.lit("the simulation holds back "),
            F.format_number("held_ratio", 2),
            F.lit(" times the bytes of the history"),
        )
    )
    return F.concat(states, F.lit("; "), held)
