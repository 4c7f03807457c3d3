"""The replay decides as the core does, and so does a first look, on random clusters."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from kquota.policy.decision import Scope
from kquota.policy.limits import Limit, LimitType
from kquota_pipeline.backtest.open_loop import replay, summary
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.backtest.statistics import NotOneType, decide_all, first_look, statistics
from kquota_pipeline.tables import CLIENTS, DECISIONS, OPERATORS, USAGE, Table
from tests.spark.backtest.brute_force import tallies
from tests.spark.backtest.clusters import (
    POLICIES,
    RARE,
    START,
    TICK_SECONDS,
    decided_by_core,
    decision_rows,
    operator_rows,
    random_cluster,
    usage_rows,
)

CLUSTERS = [*[random_cluster(number) for number in range(80)], *RARE]


def frame(spark: SparkSession, table: Table, rows: list[dict[str, Any]]) -> DataFrame:
    names = table.schema.fieldNames()
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], table.schema)


@pytest.fixture(scope="module")
def replayed(spark: SparkSession) -> dict[tuple[str, str], dict[int, Any]]:
    ticks = replay(
        frame(spark, USAGE, [row for cluster in CLUSTERS for row in usage_rows(cluster)]),
        frame(spark, DECISIONS, [row for cluster in CLUSTERS for row in decision_rows(cluster)]),
        frame(spark, CLIENTS, [row for cluster in CLUSTERS for row in cluster.clients]),
        frame(spark, OPERATORS, [row for cluster in CLUSTERS for row in operator_rows(cluster)]),
        POLICIES,
        TICK_SECONDS,
    )
    found: dict[tuple[str, str], dict[int, Any]] = {}
    for row in ticks.collect():
        tick = (row.tick - int(START.timestamp())) // TICK_SECONDS
        found.setdefault((row.policy, row.cluster_id), {})[tick] = row
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_the_replay_decides_as_the_core_does_on_random_clusters(policy: Policy, replayed: Any) -> None:
    states = set()
    for cluster in CLUSTERS:
        rows = replayed.get((policy.name, cluster.cluster_id), {})
        decided = decided_by_core(cluster, policy)
        assert set(rows) == cluster.ticks_of_history()
        for tick, row in rows.items():
            state, headroom, undetermined = decided[tick]
            where = f"{cluster.cluster_id} at tick {tick}: {row}"
            assert (row.state, row.undetermined) == (state, undetermined), where
            assert row.headroom == headroom, where
            states.add(state)
    assert states == {"OPEN", "THROTTLE", "PAUSE"}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_the_replay_holds_the_producers_that_brute_force_finds(policy: Policy, replayed: Any) -> None:
    held = Counter[str]()
    for cluster in CLUSTERS:
        expected = tallies(cluster, policy)
        for tick, row in replayed.get((policy.name, cluster.cluster_id), {}).items():
            found = row.paused_producers, row.slowed_producers, row.unlisted_clients, row.by_cluster
            assert found == expected[tick], f"{cluster.cluster_id} at tick {tick}: {row}"
            held.update(paused=found[0], slowed=found[1], unlisted=found[2], lacking=found[3])
    assert min(held["paused"], held["slowed"], held["unlisted"]) > 50
    assert (held["lacking"] > 50) == (policy.scope is Scope.VOLUME)


LEVELS = {
    LimitType.MIN_FREE_PERCENTAGE: (5, 20),
    LimitType.MIN_FREE_BYTES: (4, 21),
    LimitType.CONSUMED_SPACE: (90, 70),
}


def test_the_extremes_of_a_tick_decide_every_policy_of_one_type_as_the_volumes_do(
    spark: SparkSession,
) -> None:
    usage = frame(spark, USAGE, [row for cluster in CLUSTERS[:40] for row in usage_rows(cluster)]).where(
        "status = 'ok' AND role = 'data'"
    )
    of_kind = {kind: _shifted(kind, *levels) for kind, levels in LEVELS.items()}
    extremes = statistics(usage, TICK_SECONDS)
    ours = [decide_all(extremes, policies) for policies in of_kind.values()]
    everyone = [policy for policies in of_kind.values() for policy in policies]
    theirs = spark.createDataFrame(
        [
            (policy.name, cluster, tick, float(smallest), _state(smallest))
            for policy in everyone
            for (cluster, tick), smallest in _smallest_headroom(usage.collect(), policy).items()
        ],
        ours[0].schema,
    )
    assertDataFrameEqual(ours[0].union(ours[1]).union(ours[2]), theirs)


def _smallest_headroom(samples: list[Row], policy: Policy) -> dict[tuple[str, int], Fraction]:
    """The smallest headroom of the volumes in each tick, by the core."""
    found: dict[tuple[str, int], Fraction] = {}
    for row in samples:
        pair = policy.pair(row.broker_id, row.mount_point)
        assert pair is not None
        key = (row.cluster_id, int(row.at.timestamp()) // TICK_SECONDS)
        headroom = pair.headroom(row.capacity_bytes, row.consumed_bytes)
        found[key] = min(headroom, found.get(key, headroom))
    return found


def _state(headroom: Fraction) -> str:
    return "OPEN" if headroom == 1 else "PAUSE" if headroom == 0 else "THROTTLE"


def test_a_first_look_says_how_long_each_policy_would_have_held_producers(spark: SparkSession) -> None:
    usage = frame(spark, USAGE, [row for cluster in CLUSTERS[:5] for row in usage_rows(cluster)])
    policies = _shifted(LimitType.MIN_FREE_PERCENTAGE, *LEVELS[LimitType.MIN_FREE_PERCENTAGE])
    rows = summary(first_look(usage, policies, TICK_SECONDS), TICK_SECONDS).collect()
    extremes = {row.cluster_id: row.n for row in statistics(usage, TICK_SECONDS).groupBy("cluster_id").agg(
        F.count("*").alias("n")).collect()}  # fmt: skip
    assert len(rows) == len(policies) * len(extremes)
    for row in rows:
        spent = row.open_seconds + row.throttle_seconds + row.pause_seconds
        assert spent == TICK_SECONDS * extremes[row.cluster_id]
        assert row.undetermined_seconds == 0
        assert row.paused_producer_hours is None, "it counts no producers"
    assert any(row.pause_seconds for row in rows)


def _shifted(kind: LimitType, hard: int, soft: int) -> list[Policy]:
    step = -1 if kind is LimitType.CONSUMED_SPACE else 1
    return [
        Policy(
            f"{kind.value} {shift}",
            Limits(hard=Limit.of(kind, hard + step * shift), soft=Limit.of(kind, soft + step * shift)),
        )
        for shift in range(3)
    ]


def test_policies_of_several_types_are_refused_together(spark: SparkSession) -> None:
    extremes = spark.createDataFrame([], "cluster_id string, tick long, min_free_ratio double")
    with pytest.raises(NotOneType, match="'recorded' must have limits of one type"):
        decide_all(extremes, [Policy("recorded")])


def test_a_summary_counts_time_in_each_state_and_changes_between_them(spark: SparkSession) -> None:
    states = ["OPEN", "OPEN", "THROTTLE", "PAUSE", "PAUSE", "OPEN"]
    factors = [1.0, 1.0, 0.5, 0.0, 0.0, 1.0]
    ticks = spark.createDataFrame(
        [
            ("p", "c", 30 * i, factors[i], int(name == "PAUSE"), name, 2 * (i == 3), i, 1, i == 4)
            for i, name in enumerate(states)
        ],
        "policy string, cluster_id string, tick long, headroom double, undetermined int, state string, "
        "paused_producers int, slowed_producers int, unlisted_clients int, by_cluster boolean",
    )
    expected = spark.createDataFrame(
        [("p", "c", 90, 30, 60, 60, 3, 3.5 / 6, 60 / 3600, 450 / 3600, 180 / 3600, 30)],
        "policy string, cluster_id string, open_seconds long, throttle_seconds long, pause_seconds long, "
        "undetermined_seconds long, transitions long, mean_factor double, paused_producer_hours double, "
        "slowed_producer_hours double, unlisted_client_hours double, cluster_scope_seconds long",
    )
    assertDataFrameEqual(summary(ticks, 30), expected)
