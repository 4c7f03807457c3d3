"""The closed loop as a Spark job: a task simulates some of the policies for a cluster, all on arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kquota.policy.decision import FallbackAction, Scope
from kquota_pipeline.backtest.closed_loop import simulate
from kquota_pipeline.backtest.events import with_named_topics
from kquota_pipeline.backtest.flows import flows_of
from kquota_pipeline.backtest.grids import grids_of
from kquota_pipeline.backtest.hand_over import for_parts, parts_of
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.scene import Outcome, Scene
from kquota_pipeline.backtest.stage import happenings, samples
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


def closed_loop(
    usage: DataFrame,
    decisions: DataFrame,
    clients: DataFrame,
    operators: DataFrame,
    policies: Sequence[Policy] | Mapping[str, Sequence[Policy]],
    tick_seconds: int = 600,
    replication_factor: float = 3.0,
) -> DataFrame:
    """Return the course of events under each policy (CLOSED_LOOP).

    `policies` are those of all clusters, or by cluster id; a cluster without any has no course.
    `replication_factor` is the mean one of the topics: every byte that a producer sends lands this many
    times.
    """
    by_cluster = policies if isinstance(policies, Mapping) else {}
    of_all = () if isinstance(policies, Mapping) else policies
    every = [policy for some in (of_all, *by_cluster.values()) for policy in some]
    topics = any(policy.scope is Scope.VOLUME for policy in every)
    ceilings = any(policy.fallback_action is FallbackAction.BOUNDED for policy in every)
    if topics:
        usage = with_named_topics(usage)
    parts = parts_of(usage, max((of_all, *by_cluster.values()), key=len))

    def run(part: int, cluster_id: str, events: pa.Table, rows: Iterator[pa.RecordBatch]) -> pa.Table:
        own = by_cluster.get(cluster_id, of_all)[part::parts]
        grids = grids_of(rows, events, tick_seconds) if own else None
        if grids is None:
            return to_arrow_schema(CLOSED_LOOP).empty_table()
        flows = flows_of(grids.observed, replication_factor)
        outcome = simulate(grids.scene, flows, own)
        return _course(cluster_id, grids.scene, own, outcome)

    rows = samples(usage, tick_seconds, ceilings=ceilings, topics=topics)
    events = happenings(usage, decisions, clients, operators, tick_seconds, topics=topics)
    return for_parts(parts, rows, events, run, CLOSED_LOOP)


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


def _course(cluster_id: str, scene: Scene, policies: Sequence[Policy], outcome: Outcome) -> pa.Table:
    """Return the outcome as rows, policy by policy."""
    brokers = np.array([volume.broker_id for volume in scene.volumes], dtype=np.int32)
    names = np.array([volume.name for volume in scene.volumes], dtype=object)
    count, fullest = len(scene.ticks), outcome.fullest.T.ravel()
    columns = {
        "policy": np.repeat(np.array([policy.name for policy in policies], dtype=object), count),
        "cluster_id": np.full(fullest.shape, cluster_id, dtype=object),
        "tick": np.tile(scene.ticks, len(policies)),
        "factor": outcome.factors.T.ravel(),
        "undetermined": outcome.undetermined.T.ravel(),
        "held_bytes": outcome.held_bytes.T.ravel(),
        "lost_bytes": np.repeat(outcome.lost_bytes, count),
        "fullest_ratio": outcome.fullest_ratio.T.ravel(),
        "fullest_broker_id": brokers[fullest],
        "fullest_volume": names[fullest],
        "filled_volumes": outcome.filled.T.ravel(),
        "paused_producers": outcome.paused.T.ravel(),
        "slowed_producers": outcome.slowed.T.ravel(),
        "unlisted_clients": outcome.unlisted.T.ravel(),
        "by_cluster": outcome.by_cluster.T.ravel(),
    }
    return pa.Table.from_pydict(columns, schema=to_arrow_schema(CLOSED_LOOP))
