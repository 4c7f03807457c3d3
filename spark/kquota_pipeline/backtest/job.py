"""The closed loop as a Spark job: one task per policy and cluster, each running the core itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kquota.core.decision import Scope
from kquota_pipeline.backtest.closed_loop import Scene, VolumePlace, Writers, simulate
from kquota_pipeline.backtest.events import (
    DECOMMISSION,
    HELD,
    PRODUCERS,
    UNKNOWN,
    broker_events,
    for_each,
    producers,
    tick_of,
    with_named_topics,
)
from kquota_pipeline.backtest.flows import Observed, flows_of
from kquota_pipeline.backtest.policy import LIMITS, Policy, recorded_limits
from kquota_pipeline.backtest.producers import named, topics_of
from kquota_pipeline.backtest.tallies import TALLY, held_columns

CLOSED_LOOP = StructType(
    [
        StructField("policy", StringType()),
        StructField("cluster_id", StringType()),
        StructField("tick", LongType()),  # epoch seconds of its end
        StructField("factor", DoubleType()),
        StructField("undetermined", IntegerType()),
        StructField("held_bytes", DoubleType()),
        StructField("lost_bytes", DoubleType()),  # of the whole time, in every row
        StructField("fullest_ratio", DoubleType()),
        StructField("fullest_broker_id", IntegerType()),
        StructField("fullest_volume", StringType()),
        StructField("filled_volumes", IntegerType()),
        *TALLY,
    ]
)
_FULL_RATIO = 0.9999


def closed_loop(
    usage: DataFrame,
    decisions: DataFrame,
    clients: DataFrame,
    operators: DataFrame,
    policies: Sequence[Policy],
    tick_seconds: int = 600,
    replication_factor: float = 3.0,
) -> DataFrame:
    """Return the course of events under each policy (CLOSED_LOOP).

    `replication_factor` is the mean one of the topics: every byte that a producer sends lands this many
    times.
    """
    by_name = {policy.name: policy for policy in policies}

    def run(key: tuple[str, str], rows: pd.DataFrame, events: pd.DataFrame) -> pd.DataFrame:
        policy, cluster_id = key
        course = _course(rows, events, by_name[policy], tick_seconds, replication_factor)
        course.insert(0, "cluster_id", cluster_id)
        course.insert(0, "policy", policy)
        return course

    if any(policy.scope is Scope.VOLUME for policy in policies):
        usage = with_named_topics(usage)
    rows = for_each(policies, _rows(usage, clients, tick_seconds))
    events = broker_events(decisions, operators, tick_seconds).unionByName(
        producers(clients, tick_seconds), allowMissingColumns=True
    )
    events = for_each(policies, events)
    group = ("policy", "cluster_id")
    return rows.groupBy(*group).cogroup(events.groupBy(*group)).applyInPandas(run, CLOSED_LOOP)


def closed_loop_summary(course: DataFrame, tick_seconds: int) -> DataFrame:
    """Return the sums of each policy (input: closed_loop).

    Columns: policy, cluster_id, open_seconds, throttle_seconds, pause_seconds, mean_factor, delayed_bytes,
    lost_bytes, fullest_ratio, fullest_broker_id, fullest_volume, first_filled_tick (null: no disk filled),
    and those of `held_columns`.
    """

    def seconds(condition: Column) -> Column:
        return F.sum(F.when(condition, tick_seconds).otherwise(0))

    factor = F.col("factor")
    return course.groupBy("policy", "cluster_id").agg(
        seconds(factor >= 1).alias("open_seconds"),
        seconds((factor < 1) & (factor > 0)).alias("throttle_seconds"),
        seconds(factor <= 0).alias("pause_seconds"),
        F.avg("factor").alias("mean_factor"),
        F.sum("held_bytes").alias("delayed_bytes"),
        F.max("lost_bytes").alias("lost_bytes"),
        F.max("fullest_ratio").alias("fullest_ratio"),
        F.max_by("fullest_broker_id", "fullest_ratio").alias("fullest_broker_id"),
        F.max_by("fullest_volume", "fullest_ratio").alias("fullest_volume"),
        F.min(F.when(F.col("filled_volumes") > 0, F.col("tick"))).alias("first_filled_tick"),
        *held_columns(tick_seconds),
    )


def _rows(usage: DataFrame, clients: DataFrame, tick_seconds: int) -> DataFrame:
    """One row per data volume and tick, as it last was, with what producers sent in that tick."""
    votes = usage.where((F.col("role") == "data") & (F.col("status") != "offline"))
    last = (
        *("consumed_bytes", "capacity_bytes", "volume_id", "mount_point", "status", *LIMITS),
        *("fill_ceiling_bytes_per_second", "topics"),
    )
    volumes = votes.groupBy(
        "cluster_id", "broker_id", "volume_name", tick_of("at", tick_seconds).alias("tick")
    ).agg(*[F.max_by(name, "at").alias(name) for name in last])
    return volumes.join(_production(clients, tick_seconds), ["cluster_id", "tick"], "left")


def _production(clients: DataFrame, tick_seconds: int) -> DataFrame:
    """The bytes that producers sent in each tick, and those they would have sent without a quota."""
    held = F.max(F.coalesce("throttled_seconds", F.lit(0.0))) > 0
    observed = F.coalesce(F.max("observed_bytes_per_second"), F.sum("produce_bytes_per_second"), F.lit(0.0))
    wanted = F.when(held, F.greatest(observed, F.coalesce(F.max("baseline_bytes_per_second"), F.lit(0.0))))
    records = clients.groupBy("cluster_id", "broker_id", "instance_id", "sequence", "at").agg(
        F.max("window_seconds").alias("seconds"),
        observed.alias("observed"),
        F.coalesce(wanted, observed).alias("wanted"),
    )
    return records.groupBy("cluster_id", tick_of("at", tick_seconds).alias("tick")).agg(
        F.sum(F.col("observed") * F.col("seconds")).alias("produced_bytes"),
        F.sum(F.col("wanted") * F.col("seconds")).alias("offered_bytes"),
    )


def _course(
    rows: pd.DataFrame, events: pd.DataFrame, policy: Policy, tick_seconds: int, replication_factor: float
) -> pd.DataFrame:
    if rows.empty:
        return pd.DataFrame(columns=CLOSED_LOOP.fieldNames()[2:])
    ticks = np.arange(int(rows["tick"].min()), int(rows["tick"].max()) + tick_seconds, tick_seconds)
    index = {int(tick): number for number, tick in enumerate(ticks)}
    volumes = rows.drop_duplicates(["broker_id", "volume_name"], keep="last").sort_values(
        ["broker_id", "volume_name"]
    )
    keys = pd.MultiIndex.from_frame(volumes[["broker_id", "volume_name"]])
    row = rows["tick"].map(index).to_numpy()
    column = keys.get_indexer(pd.MultiIndex.from_frame(rows[["broker_id", "volume_name"]]))
    shape = (len(ticks), len(keys))

    def grid(name: str, empty: object, kind: type) -> NDArray[Any]:
        values: NDArray[Any] = np.full(shape, empty, dtype=kind)
        values[row, column] = rows[name].to_numpy()
        return values

    produced, offered = _of_cluster(rows, ticks)
    flows = flows_of(
        Observed(
            grid("consumed_bytes", np.nan, float), grid("capacity_bytes", np.nan, float), produced, offered
        ),
        replication_factor,
    )
    scene = Scene(
        ticks=ticks,
        volumes=[_place(row) for row in volumes.to_dict("records")],
        volume_ids=grid("volume_id", None, object),
        failed=grid("status", "ok", object) == "failed",
        unknown=_unknown(events, index),
        decommissioned={broker: tick for tick, broker in _events_at(events, DECOMMISSION, index)},
        fill_ceilings=_each(grid("fill_ceiling_bytes_per_second", None, object), int),
        topics=_each(grid("topics", None, object), lambda names: topics_of(tuple(names))),
        producers=_producers(events, index),
        held={tick for tick, _ in _events_at(events, HELD, index)},
    )
    outcome = simulate(scene, flows, policy)
    ratio = outcome.consumed_bytes / np.maximum(flows.capacity_bytes, 1.0)
    ratio = np.where(flows.present, ratio, 0.0)
    fullest = ratio.argmax(axis=1)
    return pd.DataFrame(
        {
            "tick": ticks,
            "factor": outcome.factors,
            "undetermined": outcome.undetermined.astype("int32"),
            "held_bytes": outcome.held_bytes,
            "lost_bytes": outcome.lost_bytes,
            "fullest_ratio": ratio.max(axis=1),
            "fullest_broker_id": volumes["broker_id"].to_numpy()[fullest],
            "fullest_volume": volumes["volume_name"].to_numpy()[fullest],
            "filled_volumes": (ratio >= _FULL_RATIO).sum(axis=1).astype("int32"),
            **{
                field.name: list(column)
                for field, column in zip(TALLY, zip(*outcome.tallies, strict=True), strict=True)
            },
        }
    )


def _each(values: NDArray[Any], read: Callable[[Any], object]) -> NDArray[Any]:
    """Return the values as read; None stays None, as does pandas' own mark of a missing number."""
    found = np.full(values.shape, None, dtype=object)
    for place, value in np.ndenumerate(values):
        if value is not None and not (isinstance(value, float) and np.isnan(value)):
            found[place] = read(value)
    return found


def _producers(events: pd.DataFrame, index: dict[int, int]) -> dict[int, Writers]:
    of_kind = events[events["event"] == PRODUCERS]
    columns = ("tick", "producers", "unlisted_clients")
    return {
        index[tick]: Writers(named(producing), int(unlisted))
        for tick, producing, unlisted in zip(*(of_kind[name] for name in columns), strict=True)
        if tick in index
    }


def _of_cluster(rows: pd.DataFrame, ticks: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return produced and offered bytes of every tick; a tick without a record of clients is as the one
    before.
    """
    by_tick = rows.groupby("tick")[["produced_bytes", "offered_bytes"]].first().reindex(ticks)
    filled = by_tick.ffill().fillna(0.0)
    return filled["produced_bytes"].to_numpy(float), filled["offered_bytes"].to_numpy(float)


def _place(row: Mapping[Any, Any]) -> VolumePlace:
    limits = recorded_limits(*[row[name] for name in LIMITS])
    return VolumePlace(row["broker_id"], row["volume_name"], row["mount_point"], limits)


def _unknown(events: pd.DataFrame, index: dict[int, int]) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for tick, broker in _events_at(events, UNKNOWN, index):
        found.setdefault(tick, set()).add(broker)
    return {tick: frozenset(brokers) for tick, brokers in found.items()}


def _events_at(events: pd.DataFrame, kind: str, index: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the number of the tick and the broker id of each event of a kind; -1 of one about none."""
    of_kind = events[events["event"] == kind]
    # pandas makes numbers with gaps fractions
    brokers = of_kind["broker_id"].fillna(-1).astype(int).tolist()
    for tick, broker in zip(of_kind["tick"].tolist(), brokers, strict=True):
        if tick in index:
            yield index[tick], broker
