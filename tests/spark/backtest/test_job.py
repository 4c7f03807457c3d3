"""The closed loop on tables: topics and producers come from the records of usage and clients."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from kquota.policy.decision import FallbackAction, Scope
from kquota_pipeline.backtest.job import closed_loop, closed_loop_summary
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.tables import CLIENTS, DECISIONS, OPERATORS, USAGE
from tests.spark.rows import rows

START = datetime(2026, 11, 1, tzinfo=UTC)
TICK_SECONDS = 600
COUNT = 12
POLICIES = (
    Policy("cluster"),
    Policy("volume", scope=Scope.VOLUME),
    Policy("bounded", fallback_action=FallbackAction.BOUNDED, scope=Scope.VOLUME),
)


def envelope(broker_id: int, tick: int) -> dict[str, object]:
    at = START + timedelta(seconds=TICK_SECONDS * tick)
    return {
        "cluster_id": "C",
        "broker_id": broker_id,
        "instance_id": "agent",
        "sequence": tick,
        "at": at,
        "day": at.date(),
    }


def usage(broker_id: int, tick: int, consumed_bytes: int, **topics: object) -> dict[str, object]:
    limits = {"hard": 5.0, "soft": 15.0}
    return {
        **envelope(broker_id, tick),
        "volume_name": "/dev/sda",
        "volume_id": "id",
        "status": "ok",
        "role": "data",
        "capacity_bytes": 1_000_000,
        "consumed_bytes": consumed_bytes,
        "fill_ceiling_bytes_per_second": 0,
        **{f"{name}_limit_type": "MinFreePercentage" for name in limits},
        **{f"{name}_limit_level": level for name, level in limits.items()},
        **topics,
    }


def client(tick: int, name: str, topics: list[str] | None, omitted: int = 0) -> dict[str, object]:
    return {
        **envelope(1, tick),
        "window_seconds": 30.0,
        "user": "CN=app",
        "client_id": name,
        "produce_bytes_per_second": 1.0,
        "throttled_seconds": 0.0,
        "observed_bytes_per_second": 2.0,
        "omitted_clients": omitted,
        "topics": topics,
    }


@pytest.fixture(scope="module")
def course(spark: SparkSession) -> dict[str, list[tuple[object, ...]]]:
    """Broker 1 is full; from tick 8 on broker 2 is silent. From tick 6 on a third client has no topics."""
    full = [usage(1, 0, 960_000, topics=["full"])]
    full += [usage(1, tick, 960_000, topics_sequence=0) for tick in range(1, COUNT)]
    clients = [client(tick, "one", ["full", "elsewhere"]) for tick in range(COUNT)]
    clients += [client(tick, "other", ["roomy"]) for tick in range(COUNT)]
    clients += [client(tick, "third", None, omitted=4) for tick in range(6, COUNT)]
    silent = [
        envelope(1, tick) | {"state": "PAUSE", "mode": "observe", "covered": [2]} for tick in range(8, COUNT)
    ]
    found = closed_loop(
        rows(spark, USAGE, [*full, *[usage(2, tick, 200_000) for tick in range(8)]]),
        rows(spark, DECISIONS, silent),
        rows(spark, CLIENTS, clients),
        rows(spark, OPERATORS, [envelope(1, 0) | {"order_kind": "hold"}]),
        POLICIES,
        TICK_SECONDS,
    ).cache()
    by_policy: dict[str, list[tuple[object, ...]]] = {policy.name: [] for policy in POLICIES}
    for row in found.orderBy("tick").collect():
        tally = row.paused_producers, row.slowed_producers, row.unlisted_clients, row.by_cluster
        by_policy[row.policy].append((row.factor, *tally))
    by_policy["summary"] = [
        (row.paused_producer_hours, row.unlisted_client_hours, row.cluster_scope_seconds)
        for row in closed_loop_summary(found, TICK_SECONDS).orderBy("policy").collect()
    ]
    found.unpersist()
    return by_policy


def test_each_policy_holds_whom_the_tables_name(course: dict[str, list[tuple[object, ...]]]) -> None:
    assert course["cluster"] == 6 * [(0, 2, 0, 0, False)] + 6 * [(0, 3, 0, 4, False)]
    assert course["bounded"] == 6 * [(0, 1, 0, 0, False)] + 6 * [(0, 2, 0, 4, True)]
    # A silent broker pauses all: that is the fallback action, and no lack of the history.
    silent = 3 * [(0, 3, 0, 4, False)]
    assert course["volume"][:9] == 6 * [(0, 1, 0, 0, False)] + 3 * [(0, 2, 0, 4, True)]
    assert course["volume"][9:] == silent


def test_the_sums_are_hours_of_producers(course: dict[str, list[tuple[object, ...]]]) -> None:
    assert course["summary"] == [
        (pytest.approx(18 / 6), pytest.approx(24 / 6), 3_600),  # bounded
        (pytest.approx(30 / 6), pytest.approx(24 / 6), 0),  # cluster
        (pytest.approx(21 / 6), pytest.approx(24 / 6), 1_800),  # volume
    ]
