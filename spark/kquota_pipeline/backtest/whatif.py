"""What if: policies over a history in other circumstances, next to the same policies in those that were.

Each cluster is simulated twice under each policy, in closed loop: as it was, and after the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kquota.policy.decision import FallbackAction, Scope
from kquota_pipeline.backtest.changes import Change, changed
from kquota_pipeline.backtest.closed_loop import simulate
from kquota_pipeline.backtest.events import tick_of, with_named_topics
from kquota_pipeline.backtest.flows import Flows, flows_of
from kquota_pipeline.backtest.grids import Grids, grids_of, of_kind
from kquota_pipeline.backtest.hand_over import for_parts, parts_of
from kquota_pipeline.backtest.holds import Holds
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.relief import Relief, relief_bytes
from kquota_pipeline.backtest.scene import NONE, Floats, Outcome, Scene
from kquota_pipeline.backtest.stage import happenings, samples, volume_key
from kquota_pipeline.history import History

CLUSTER, VOLUME, PRODUCER = "cluster", "volume", "producer"
"""Kinds of rows of the answer."""
_ADDED_LOAD, _ADDED_BYTES, _TOPIC_BYTES = "added load", "added bytes", "topic bytes"
_HOUR_SECONDS = 3600

_COMMON = {
    "kind": StringType(),
    "policy": StringType(),
    "cluster_id": StringType(),
    "is_changed": BooleanType(),
}
_OF: Mapping[str, Mapping[str, DataType]] = {
    CLUSTER: {
        "open_hours": DoubleType(),
        "throttle_hours": DoubleType(),
        "pause_hours": DoubleType(),
        "held_bytes": DoubleType(),
        "lost_bytes": DoubleType(),
        "filled_volumes": IntegerType(),  # the most at the same time
    },
    VOLUME: {
        "broker_id": IntegerType(),
        "volume_name": StringType(),
        "capacity_bytes": LongType(),
        "crest_bytes": LongType(),
        "crest_ratio": DoubleType(),
        "soft_after_hours": DoubleType(),  # null: never
        "hard_after_hours": DoubleType(),
    },
    # of one that is held
    PRODUCER: {
        "user": StringType(),
        "client_id": StringType(),
        "paused_hours": DoubleType(),
        "slowed_hours": DoubleType(),
    },
}
ANSWER = StructType(
    [StructField(name, kind) for columns in (_COMMON, *_OF.values()) for name, kind in columns.items()]
)
COLUMNS = {kind: ("policy", "cluster_id", "is_changed", *columns) for kind, columns in _OF.items()}
"""The columns of each kind of row."""


def what_if(
    history: History,
    policies: Sequence[Policy],
    change: Change,
    tick_seconds: int = 600,
    replication_factor: float = 3.0,
) -> DataFrame:
    """Return the outcome of policies, as it was and after a change (ANSWER): a row for each cluster, for each
    of its volumes, and for each producer that is held. Hours count from the beginning of the history, which
    needs `topics` only if a retention changes, or for a relief plan.
    """
    by_topic = any(policy.scope is Scope.VOLUME for policy in policies)
    ceilings = any(policy.fallback_action is FallbackAction.BOUNDED for policy in policies)
    usage = history.sampled(tick_seconds)
    if by_topic:
        usage = with_named_topics(usage)
    parts = parts_of(usage, policies)

    def run(part: int, cluster_id: str, events: pa.Table, rows: Iterator[pa.RecordBatch]) -> pa.Table:
        grids = grids_of(rows, events, tick_seconds)
        found = (
            []
            if grids is None
            else _answers(grids, events, policies[part::parts], change, replication_factor)
        )
        return pa.Table.from_pylist(
            [{**row, "cluster_id": cluster_id} for row in found], schema=to_arrow_schema(ANSWER)
        )

    events = happenings(
        usage, history.decisions, history.clients, history.operators, tick_seconds, topics=by_topic
    ).unionByName(_added_load(history.clients, change, tick_seconds), allowMissingColumns=True)
    if history.topics is not None and change.retentions:
        events = events.unionByName(
            added_bytes(history.topics, change, tick_seconds), allowMissingColumns=True
        )
    if history.topics is not None and change.relief is not None:
        events = events.unionByName(
            _topic_bytes(history.topics, change.relief, tick_seconds), allowMissingColumns=True
        )
    rows = samples(usage, tick_seconds, ceilings=ceilings, topics=by_topic)
    return for_parts(parts, rows, events, run, ANSWER)


def _added_load(clients: DataFrame, change: Change, tick_seconds: int) -> DataFrame:
    """Return by how much what producers send grows in each tick in which they send anything, as a ratio."""
    factor = F.lit(1.0)
    # A client's own factor comes before that of its user.
    for (user, client_id), times in sorted(change.loads.items(), key=lambda item: item[0][1] is not None):
        is_it = F.col("user") == user
        if client_id is not None:
            is_it &= F.col("client_id") == client_id
        factor = F.when(is_it, float(times)).otherwise(factor)
    sent = F.col("produce_bytes_per_second") * F.col("window_seconds")
    sums = clients.groupBy("cluster_id", tick_of("at", tick_seconds).alias("tick")).agg(
        F.sum(sent).alias("sent"), F.sum(sent * (factor - 1)).alias("added")
    )
    return sums.where("sent > 0").select(
        "cluster_id",
        F.lit(_ADDED_LOAD).alias("event"),
        "tick",
        (F.col("added") / F.col("sent")).alias("added"),
    )


def kept_by_time(topics: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the table `topics` with a column `leaves`: whether a row is of one of these topics, and its
    bytes leave by retention.

    Those of topics that are compacted, or bound by size alone, never leave by it. Where an agent of a former
    version named no retention at all, a topic counts as it does elsewhere in the history.
    """
    has_one = F.col("retention_seconds").isNotNull()
    agents = topics.groupBy("cluster_id", "instance_id").agg(F.max(has_one).alias("reports"))
    some = topics.where(F.col("topic").isin(*names))
    elsewhere = some.groupBy("cluster_id", "topic").agg(F.max(has_one).alias("ever"))
    known = topics.join(F.broadcast(agents), ["cluster_id", "instance_id"])
    known = known.join(F.broadcast(elsewhere), ["cluster_id", "topic"], "left")
    leaves = F.col("ever") & (has_one | ~F.col("reports"))
    return known.withColumn("leaves", F.coalesce(leaves, F.lit(False))).drop("reports", "ever")


def added_bytes(topics: DataFrame, change: Change, tick_seconds: int) -> DataFrame:
    """Return how many bytes more each volume has by its records of topics."""
    ratio = F.lit(1.0)
    for topic, times in change.retentions.items():
        ratio = F.when(F.col("topic") == topic, float(times)).otherwise(ratio)
    ratio = F.when(F.col("leaves"), ratio).otherwise(1.0)
    of_record = (
        kept_by_time(topics, change.retentions)
        .groupBy("cluster_id", "at", volume_key().alias("key"), tick_of("at", tick_seconds).alias("tick"))
        .agg(F.sum(F.col("bytes") * (ratio - 1)).alias("added"))
    )
    return (
        of_record.groupBy("cluster_id", "key", "tick")
        .agg(F.max_by("added", "at").alias("added"))
        .select("cluster_id", F.lit(_ADDED_BYTES).alias("event"), "key", "tick", "added")
    )


def _topic_bytes(topics: DataFrame, relief: Relief, tick_seconds: int) -> DataFrame:
    """Return the bytes of the plan's topics on each volume of its cluster; `name` is the topic, null for all
    others together: so that each record has a row, also one that does not name them.
    """
    places = (volume_key().alias("key"), tick_of("at", tick_seconds).alias("tick"))
    name = F.when(F.col("topic").isin(*relief.topics), F.col("topic"))
    return (
        topics.where(F.col("cluster_id") == relief.cluster_id)
        .groupBy("cluster_id", name.alias("name"), *places)
        .agg(F.max_by("bytes", "at").cast("double").alias("added"))
        .withColumn("event", F.lit(_TOPIC_BYTES))
    )


def _answers(
    grids: Grids, events: pa.Table, policies: Sequence[Policy], change: Change, replication_factor: float
) -> Iterator[Mapping[str, Any]]:
    flows = flows_of(grids.observed, replication_factor)
    yield from _outcome(grids.scene, flows, policies, is_changed=False)
    scene, other = changed(
        grids.scene,
        grids.observed,
        replication_factor,
        change,
        _by_tick(of_kind(events, _ADDED_LOAD), grids.scene.ticks),
        _by_volume(of_kind(events, _ADDED_BYTES), grids)
        + _by_relief(of_kind(events, _TOPIC_BYTES), grids, change),
    )
    yield from _outcome(scene, other, policies, is_changed=True)


def _by_tick(added: pd.DataFrame, ticks: NDArray[np.int64]) -> Floats:
    """Return a figure of every tick; one without any has that of the one before."""
    return added.set_index("tick")["added"].reindex(ticks).ffill().bfill().fillna(0.0).to_numpy(float)


def _by_volume(added: pd.DataFrame, grids: Grids) -> Floats:
    """Return a figure of every tick and volume; [tick, volume]."""
    found = added.pivot(index="tick", columns="key", values="added") if len(added) else added
    ticks = grids.scene.ticks
    cells = np.zeros((len(ticks), len(grids.keys)))
    for column, key in enumerate(grids.keys):
        if key in found.columns and len(added):
            last = found[key].dropna()
            # Records of topics are rarer than ticks: one counts until the next.
            known = last.reindex(last.index.union(pd.Index(ticks))).ffill().bfill()
            cells[:, column] = known.reindex(ticks).to_numpy(float)
    return cells


def _by_relief(topic_bytes: pd.DataFrame, grids: Grids, change: Change) -> Floats:
    """Return what the relief plan adds to every volume in every tick; [tick, volume]."""
    ticks = grids.scene.ticks
    if change.relief is None or topic_bytes.empty:
        return np.zeros((len(ticks), len(grids.keys)))
    records = topic_bytes[["tick", "key"]].drop_duplicates()
    held = {}
    for topic in change.relief.topics:
        own = records.merge(topic_bytes[topic_bytes["name"] == topic], how="left", on=["tick", "key"])
        held[topic] = change.retentions.get(topic, 1.0) * _by_volume(own.fillna({"added": 0.0}), grids)
    elapsed_seconds = (ticks - ticks[0]).astype(float)
    return relief_bytes(change.relief, grids.scene.volumes, held, elapsed_seconds)


def _outcome(
    scene: Scene, flows: Flows, policies: Sequence[Policy], *, is_changed: bool
) -> Iterator[Mapping[str, Any]]:
    holds = Holds(len(policies))
    outcome = simulate(scene, flows, policies, holds=holds)
    hours = scene.tick_seconds / _HOUR_SECONDS
    for place, policy in enumerate(policies):
        common = {"policy": policy.name, "is_changed": is_changed}
        factors = outcome.factors[:, place]
        yield {
            **common,
            "kind": CLUSTER,
            "open_hours": float((factors >= 1).sum() * hours),
            "throttle_hours": float(((factors > 0) & (factors < 1)).sum() * hours),
            "pause_hours": float((factors <= 0).sum() * hours),
            "held_bytes": float(outcome.held_bytes[:, place].sum()),
            "lost_bytes": float(outcome.lost_bytes[place]),
            "filled_volumes": int(outcome.filled[:, place].max()),
        }
        for column in range(len(scene.volumes)):
            yield {**common, "kind": VOLUME, **_volume(scene, flows, outcome, column, place, hours)}
        for (user, client_id), (paused, slowed) in sorted(holds.of(place).items()):
            yield {
                **common,
                "kind": PRODUCER,
                "user": user,
                "client_id": client_id,
                "paused_hours": paused * hours,
                "slowed_hours": slowed * hours,
            }


def _volume(
    scene: Scene, flows: Flows, outcome: Outcome, column: int, place: int, hours: float
) -> Mapping[str, Any]:
    capacity, crest = float(flows.capacity_bytes[-1, column]), float(outcome.crest_bytes[column, place])
    after = {
        f"{name}_after_hours": None if tick == NONE else tick * hours
        for name, tick in (
            ("soft", int(outcome.soft_tick[column, place])),
            ("hard", int(outcome.hard_tick[column, place])),
        )
    }
    return {
        "broker_id": scene.volumes[column].broker_id,
        "volume_name": scene.volumes[column].name,
        "capacity_bytes": int(capacity),
        "crest_bytes": round(crest),
        "crest_ratio": crest / capacity if capacity else 0.0,
        **after,
    }
