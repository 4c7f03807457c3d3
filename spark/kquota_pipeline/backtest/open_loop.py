"""Open loop: the decisions of policies, tick by tick, over the recorded past. Held data lands all the same.

At the end of every tick each broker's last record counts. It is fresh up to the policy's staleness. A broker
without a fresh record is undetermined if the decisions of the time name it as active and unknown;
otherwise it was inactive, and its last verdict stands until it is back or decommissioned. Operators' holds
and quarantines are left out: they answered another policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

from kquota.policy.decision import Decision, Scope
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus
from kquota_pipeline.backtest.agents import Agents
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
from kquota_pipeline.backtest.policy import NOT_JUDGED, Policy, recorded_limits
from kquota_pipeline.backtest.producers import Producers, Tally, named, topics_of
from kquota_pipeline.backtest.tallies import TALLY, held_columns

REPLAY = StructType(
    [
        StructField("policy", StringType()),
        StructField("cluster_id", StringType()),
        StructField("tick", LongType()),  # epoch seconds of its end
        StructField("headroom", DoubleType()),
        StructField("state", StringType()),
        StructField("undetermined", IntegerType()),  # how many brokers
        *TALLY,
    ]
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """A row of the stream that is replayed: an observed volume if `event` is None, else a broker's event."""

    policy: str
    cluster_id: str
    tick: int
    at_micros: int | None
    broker_id: int
    sequence: int | None
    event: str | None
    volume_name: str
    volume_id: str | None
    mount_point: str | None
    status: str
    role: str
    capacity_bytes: int
    consumed_bytes: int
    hard_limit_type: str | None
    hard_limit_level: float | None
    soft_limit_type: str | None
    soft_limit_level: float | None
    fill_ceiling_bytes_per_second: int | None
    topics: Sequence[str] | None
    producers: Sequence[Mapping[str, Any]] | None
    unlisted_clients: int | None


class Decided(NamedTuple):
    """A policy's decision at the end of a tick, and the producers that it holds."""

    tick: int
    decision: Decision
    tally: Tally


# In this order a broker's record is a run of rows, and its decommission follows the records that it ends.
_ORDER = ("policy", "cluster_id", "tick", "at_micros", "event", "broker_id", "sequence")
_RECORD = attrgetter("event", "at_micros", "broker_id", "sequence")
_BATCH = 10_000


def replay(
    usage: DataFrame,
    decisions: DataFrame,
    clients: DataFrame,
    operators: DataFrame,
    policies: Sequence[Policy],
    tick_seconds: int = 30,
) -> DataFrame:
    """Return what each policy would have decided at the end of every tick (REPLAY).

    A record of the history stands for the time until the next sample of an unbroken history, so a staleness
    below two samples has the same result: choose `tick_seconds` no shorter than the history's samples.
    """
    by_name = {policy.name: policy for policy in policies}
    samples = usage.withColumn("at_micros", F.unix_micros("at")).withColumn(
        "tick", tick_of("at", tick_seconds)
    )
    if any(policy.scope is Scope.VOLUME for policy in policies):
        samples = with_named_topics(samples)
    stream = samples
    for events in (broker_events(decisions, operators, tick_seconds), producers(clients, tick_seconds)):
        stream = stream.unionByName(events, allowMissingColumns=True)
    stream = for_each(policies, stream.select(*Row._fields[1:]))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _decided(batches, by_name, tick_seconds)

    ordered = stream.select(*Row._fields).repartition("policy", "cluster_id").sortWithinPartitions(*_ORDER)
    return ordered.mapInArrow(run, REPLAY)


def decisions_of(rows: Iterable[Row], policy: Policy, tick_seconds: int) -> Iterator[Decided]:
    """Yield a policy's decision at the end of every tick of one cluster, up to that of the last record.

    `rows` are in the order of `_ORDER`. There is no decision while every broker is decommissioned.
    """
    agents, producing = Agents(policy, tick_seconds), Producers()

    def decide(tick: int, unknown: Set[int]) -> Iterator[Decided]:
        if agents.any_known:
            decision = agents.decide(_at(tick), unknown)
            yield Decided(tick, decision, producing.held_by(decision, policy.scope))

    waiting: list[Decided] = []  # for a further record: none of them is after the last one
    before = None
    for tick, group in groupby(rows, attrgetter("tick")):
        for quiet in range(tick if before is None else before + tick_seconds, tick, tick_seconds):
            waiting += decide(quiet, frozenset())
        of_tick = list(group)
        unknown = {row.broker_id for row in of_tick if row.event == UNKNOWN}
        were_held = any(row.event == HELD for row in of_tick)
        for row in of_tick:
            if row.event == PRODUCERS:
                producing.observe(named(row.producers or ()), row.unlisted_clients or 0, were_held=were_held)
        published = False
        for (event, at_micros, broker_id, _), record in groupby(of_tick, _RECORD):
            if event is None:
                at = _EPOCH + timedelta(microseconds=at_micros)
                agents.publish(broker_id, [_volume(row, policy) for row in record], at)
                published = True
            elif event == DECOMMISSION:
                agents.decommission(broker_id, _at(tick))
                unknown.discard(broker_id)
        waiting += decide(tick, unknown)
        if published:
            yield from waiting
            waiting.clear()
        before = tick


def _at(tick: int) -> datetime:
    return datetime.fromtimestamp(tick, UTC)


def _volume(row: Row, policy: Policy) -> Volume:
    pair = policy.pair(row.broker_id, row.mount_point) or recorded_limits(
        row.hard_limit_type, row.hard_limit_level, row.soft_limit_type, row.soft_limit_level
    )
    return Volume(
        name=row.volume_name,
        capacity_bytes=row.capacity_bytes,
        consumed_bytes=row.consumed_bytes,
        limits=pair,
        limits_problem=None if pair is not None else NOT_JUDGED,
        volume_id=row.volume_id,
        status=VolumeStatus(row.status),
        role=VolumeRole(row.role),
        fill_ceiling_bytes_per_second=row.fill_ceiling_bytes_per_second,
        topics=None if row.topics is None else topics_of(tuple(row.topics)),
    )


def _decided(
    batches: Iterable[pa.RecordBatch], policies: Mapping[str, Policy], tick_seconds: int
) -> Iterator[pa.RecordBatch]:
    """Replay sorted batches of rows, and return batches of REPLAY; at most a tick of records is in memory."""
    rows = (Row(*row) for batch in batches for row in zip(*batch.to_pydict().values(), strict=True))
    decided = (
        (
            *(name, cluster_id, tick),
            *(float(decision.headroom), decision.state.value, len(decision.undetermined)),
            *tally,
        )
        for (name, cluster_id), own in groupby(rows, attrgetter("policy", "cluster_id"))
        for tick, decision, tally in decisions_of(own, policies[name], tick_seconds)
    )
    while some := list(islice(decided, _BATCH)):
        yield pa.RecordBatch.from_pydict(
            dict(zip(REPLAY.names, zip(*some, strict=True), strict=True)), to_arrow_schema(REPLAY)
        )


def summary(ticks: DataFrame, tick_seconds: int) -> DataFrame:
    """Return how long each policy would have spent in each state (input: replay).

    Columns: policy, cluster_id, open_seconds, throttle_seconds, pause_seconds, undetermined_seconds,
    transitions, mean_factor, and those of `held_columns`.
    """
    before = F.lag("state").over(Window.partitionBy("policy", "cluster_id").orderBy("tick"))
    changed = F.col("before").isNotNull() & (F.col("before") != F.col("state"))

    def seconds(condition: Column) -> Column:
        return F.sum(F.when(condition, tick_seconds).otherwise(0))

    return (
        ticks.withColumn("before", before)
        .groupBy("policy", "cluster_id")
        .agg(
            seconds(F.col("state") == "OPEN").alias("open_seconds"),
            seconds(F.col("state") == "THROTTLE").alias("throttle_seconds"),
            seconds(F.col("state") == "PAUSE").alias("pause_seconds"),
            seconds(F.col("undetermined") > 0).alias("undetermined_seconds"),
            F.sum(changed.cast("int")).alias("transitions"),
            F.avg("headroom").alias("mean_factor"),
            *held_columns(tick_seconds),
        )
    )
