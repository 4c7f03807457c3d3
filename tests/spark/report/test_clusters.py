"""Figures of clusters in the report: each has its own, and all together are one job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kquota_pipeline.accounting.job import accounted
from kquota_pipeline.maintain.hours import as_hourly
from kquota_pipeline.report.courses import courses, spans
from kquota_pipeline.tables import DECISIONS, HOLDINGS, HOURS, WRITINGS
from tests.spark.rows import rows

CLUSTERS = ("A", "B", "C")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TODAY = NOON.date()


def jobs(spark: SparkSession, name: str, run: Callable[[], Any]) -> tuple[Any, int]:
    """Return what a function returns, and how many jobs of Spark's it needed."""
    spark.sparkContext.setJobGroup(name, name)
    try:
        return run(), len(spark.sparkContext.statusTracker().getJobIdsForGroup(name))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def decision(cluster: str, seconds: int, state: str) -> dict[str, object]:
    return {"cluster_id": cluster, "broker_id": 1, "at": NOON + timedelta(seconds=seconds), "state": state}


def test_spans_of_all_clusters_are_one_job(spark: SparkSession) -> None:
    given = [
        decision(cluster, second, state)
        for cluster, states in zip(CLUSTERS, ("OPEN PAUSE", "PAUSE PAUSE", "OPEN"), strict=False)
        for second, state in zip((0, 600), states.split(), strict=False)
    ]
    begin = int(NOON.timestamp())
    whole, one = (rows(spark, DECISIONS, some) for some in (given, given[:2]))
    found, count = jobs(spark, "spans", lambda: spans(whole, 600))
    assert found == {
        "A": [[begin, begin + 600, "OPEN"], [begin + 600, begin + 1200, "PAUSE"]],
        "B": [[begin, begin + 1200, "PAUSE"]],
        "C": [[begin, begin + 600, "OPEN"]],
    }
    assert count == jobs(spark, "spans of one", lambda: spans(one, 600))[1]


def test_courses_of_all_clusters_are_one_job(spark: SparkSession) -> None:
    hour = [NOON + timedelta(hours=number) for number in range(5)]
    hours = as_hourly(
        rows(
            spark,
            HOURS,
            [
                {"cluster_id": cluster, "broker_id": 1, "volume_name": name, "at": at,
                 "crest_bytes": crest + number, "capacity_bytes": 100}
                for crest, cluster in enumerate(CLUSTERS)
                for name in ("/a", "/b")
                for number, at in enumerate(hour)
            ],
        )
    )  # fmt: skip
    wanted = [Row(cluster_id=name, broker_id=1, volume_name="/a") for name in ("B", "A")]
    found, count = jobs(spark, "courses", lambda: courses(hours, wanted))
    begin = NOON.timestamp() + 7200
    assert found == {
        name: [{"broker_id": 1, "volume_name": "/a", "points": [[begin, high], [begin + 14400, high + 0.01]]}]
        for name, high in (("A", 0.03), ("B", 0.04))
    }
    assert count == jobs(spark, "courses of one", lambda: courses(hours, wanted[:1]))[1]


def test_accounts_of_all_clusters_are_one_job(spark: SparkSession) -> None:
    held = [
        {"cluster_id": cluster, "broker_id": 1, "volume_name": "/a", "topic": "orders", "day": TODAY,
         "byte_days": size, "hours": 24, "inflow_bytes": 1.0}
        for cluster, size in zip(CLUSTERS, (30.0, 20.0, 10.0), strict=True)
    ]  # fmt: skip
    wrote = [
        {"cluster_id": cluster, "user": f"CN={cluster}", "client_id": "x", "topic": "orders", "day": TODAY,
         "written_bytes": 5.0}
        for cluster in CLUSTERS[:2]
    ]  # fmt: skip

    def run(count: int) -> tuple[Any, int]:
        holdings, writings = rows(spark, HOLDINGS, held[:count]), rows(spark, WRITINGS, wrote[:count])
        return jobs(spark, f"accounts of {count}", lambda: accounted(holdings, writings, TODAY, TODAY))

    found, count = run(3)
    assert found.rows[["cluster_id", "user", "topic"]].to_numpy().tolist() == [
        ["A", "CN=A", "orders"], ["B", "CN=B", "orders"], ["C", None, "orders"],
    ]  # fmt: skip
    assert found.rows["byte_days"].tolist() == pytest.approx([30, 20, 10])
    assert found.shares["ratio"].tolist() == pytest.approx([1, 1])
    assert count == run(1)[1]
