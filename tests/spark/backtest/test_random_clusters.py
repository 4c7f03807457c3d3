"""Where nothing that producers send lands, the simulation has the recorded disks: on random clusters it
decides as the core does on their records.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kquota.policy.decision import Scope
from kquota_pipeline.backtest.job import closed_loop
from kquota_pipeline.backtest.policy import Policy
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
def simulated(spark: SparkSession) -> dict[tuple[str, str], dict[int, Any]]:
    course = closed_loop(
        frame(spark, USAGE, [row for cluster in CLUSTERS for row in usage_rows(cluster)]),
        frame(spark, DECISIONS, [row for cluster in CLUSTERS for row in decision_rows(cluster)]),
        frame(spark, CLIENTS, [row for cluster in CLUSTERS for row in cluster.clients]),
        frame(spark, OPERATORS, [row for cluster in CLUSTERS for row in operator_rows(cluster)]),
        POLICIES,
        TICK_SECONDS,
        replication_factor=0.0,
    )
    found: dict[tuple[str, str], dict[int, Any]] = {}
    for row in course.collect():
        tick = (row.tick - int(START.timestamp())) // TICK_SECONDS
        found.setdefault((row.policy, row.cluster_id), {})[tick] = row
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_the_simulation_decides_as_the_core_does_on_random_clusters(policy: Policy, simulated: Any) -> None:
    seen = Counter[str]()
    for cluster in CLUSTERS:
        rows = simulated[policy.name, cluster.cluster_id]
        decided = decided_by_core(cluster, policy)
        assert cluster.ticks_of_history() <= set(rows)
        for tick, row in rows.items():
            state, headroom, undetermined = decided[tick]
            where = f"{cluster.cluster_id} at tick {tick}: {row}"
            assert (row.factor, row.undetermined) == (headroom, undetermined), where
            seen[state] += 1
    assert set(seen) == {"OPEN", "THROTTLE", "PAUSE"}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_the_simulation_holds_the_producers_that_brute_force_finds(policy: Policy, simulated: Any) -> None:
    held = Counter[str]()
    for cluster in CLUSTERS:
        expected = tallies(cluster, policy)
        for tick, row in simulated[policy.name, cluster.cluster_id].items():
            found = row.paused_producers, row.slowed_producers, row.unlisted_clients, row.by_cluster
            assert found == expected[tick], f"{cluster.cluster_id} at tick {tick}: {row}"
            held.update(paused=found[0], slowed=found[1], unlisted=found[2], lacking=found[3])
    assert min(held["paused"], held["slowed"], held["unlisted"]) > 50
    assert (held["lacking"] > 50) == (policy.scope is Scope.VOLUME)
