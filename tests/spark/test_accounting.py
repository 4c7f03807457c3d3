"""Bytes by client, quotas for outliers, and thresholds of topics that add up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from kquota_pipeline.accounting.clients import by_client, by_group, by_quota_group, quotas, refused
from kquota_pipeline.accounting.topics import TOPIC_RATES, topic_thresholds

START = datetime(2026, 11, 1, tzinfo=UTC)
_CLIENTS = (
    "cluster_id string, broker_id int, at timestamp, window_seconds double, user string, client_id string, "
    "produce_bytes_per_second double, throttled_seconds double"
)


def clients(spark: SparkSession, rates: dict[tuple[str, str], list[tuple[int, float, float]]]) -> DataFrame:
    """(user, client id) → (broker, rate, throttled seconds) of windows of 30 s, one after the other."""
    rows = [
        ("c", broker, START + timedelta(seconds=30 * number), 30.0, user, client, rate, throttled)
        for (user, client), windows in rates.items()
        for number, (broker, rate, throttled) in enumerate(windows)
    ]
    return spark.createDataFrame(rows, _CLIENTS)


def test_bytes_and_waits_add_up_over_brokers_and_windows(spark: SparkSession) -> None:
    frame = clients(spark, {("CN=a", "x"): [(1, 10.0, 0.0), (2, 30.0, 1.5)], ("CN=b", ""): [(1, 40.0, 0.0)]})
    rows = {row.user: row for row in by_client(frame).collect()}
    assert rows["CN=a"].bytes == pytest.approx(1200)
    assert rows["CN=a"].throttled_seconds == pytest.approx(1.5)
    assert rows["CN=a"].brokers == 2
    assert rows["CN=b"].share_ratio == pytest.approx(0.5)
    groups = {row.group: row for row in by_group(by_client(frame), {"both": ["CN=a", "CN=b"]}).collect()}
    assert groups["both"].bytes == pytest.approx(2400)
    assert groups["both"].clients == 2


def test_a_quota_is_for_who_stands_out_and_leaves_room_above_the_usual_peak(spark: SparkSession) -> None:
    quiet = {(f"CN={n}", "x"): [(1, 1e6, 0.0)] * 4 for n in range(6)}
    frame = clients(spark, {**quiet, ("CN=loud", "y"): [(1, 20e6, 0.0), (2, 30e6, 0.0)] * 2})
    (row,) = quotas(by_client(frame)).collect()
    assert row.user == "CN=loud"
    assert row.quota_bytes_per_second == 37_500_000
    # no client stands out among equals
    assert quotas(by_client(clients(spark, quiet))).count() == 0


def test_what_brokers_measured_of_a_group_and_refused_adds_up_over_brokers_and_windows(
    spark: SparkSession,
) -> None:
    later = START + timedelta(seconds=30)
    groups = spark.createDataFrame(
        [
            ("c", 1, 30.0, "etl", 100.0, 2.0, 3),
            ("c", 1, 30.0, "etl", 300.0, 0.0, 0),
            ("c", 2, 30.0, "etl", 50.0, 1.0, 1),
            ("c", 2, 30.0, "web", 10.0, 0.0, 0),
        ],
        "cluster_id string, broker_id int, window_seconds double, group string, "
        "produce_bytes_per_second double, throttled_seconds double, refused_requests long",
    )
    rows = {row.group: row for row in by_quota_group(groups).collect()}
    assert (rows["etl"].bytes, rows["etl"].mean_bytes_per_second) == (13_500, 250)
    assert (rows["etl"].throttled_seconds, rows["etl"].refused_requests, rows["etl"].brokers) == (3, 4, 2)
    assert rows["web"].bytes == 300
    refusals = spark.createDataFrame(
        [
            ("c", 1, START, "User:a", "x", 5),
            ("c", 2, later, "User:a", "x", 1),
            ("c", 1, START, "User:b", "", 2),
        ],
        "cluster_id string, broker_id int, at timestamp, principal string, client_id string, requests long",
    )
    found = {row.principal: row for row in refused(refusals).collect()}
    assert (found["User:a"].requests, found["User:a"].brokers, found["User:b"].requests) == (6, 2, 2)
    assert found["User:a"].last_at > found["User:b"].last_at


def test_a_throttled_rate_is_not_taken_for_what_the_client_wants(spark: SparkSession) -> None:
    frame = clients(spark, {("CN=a", "x"): [(1, 50.0, 0.0)] * 5 + [(1, 500.0, 30.0)] * 50})
    (row,) = by_client(frame).collect()
    assert row.peak_bytes_per_second == pytest.approx(50)


def test_thresholds_of_topics_never_add_up_to_more_than_the_total_and_the_others_share_the_rest_evenly(
    spark: SparkSession,
) -> None:
    rates = {"A": 40e6, "B": 20e6, "C": 1e6, "D": 1e6, "E": 2e6, "F": 3e6}
    rows = [
        ("c", 1, START + timedelta(seconds=30 * number), 30.0, topic, rate)
        for number in range(4)
        for topic, rate in rates.items()
    ]
    found = {row.topic: row for row in topic_thresholds(spark.createDataFrame(rows, TOPIC_RATES)).collect()}
    explicit = {topic: row.threshold_bytes_per_second for topic, row in found.items()}
    assert explicit == {"A": 50_000_000, "B": 25_000_000, "C": None, "D": None, "E": None, "F": None}
    total = found["A"].total_bytes_per_second
    claimed = sum(threshold for threshold in explicit.values() if threshold)
    assert claimed <= total
    share = found["C"].share_bytes_per_second
    assert share == pytest.approx((total - claimed) / 4)
    assert share >= rates["F"]
