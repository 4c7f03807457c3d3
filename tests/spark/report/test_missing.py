"""The report names the brokers whose samples are old, and counts what is in quarantine."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from kquota_pipeline.report.forecasts import tiles
from kquota_pipeline.report.missing import decommissions, last_samples, quarantined, silent_brokers
from kquota_pipeline.report.newest import Reach, newest_days
from kquota_pipeline.tables import OPERATORS, QUARANTINE, USAGE
from tests.spark.rows import rows

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = int(NOON.timestamp()) // 3600
UNTIL = HOUR * 3600


def test_a_broker_without_samples_for_an_hour_is_silent_unless_it_is_decommissioned() -> None:
    last = {("C", 1): UNTIL, ("C", 2): UNTIL - 3600, ("C", 3): UNTIL - 3601, ("C", 4): UNTIL - 90_000}
    named = {
        "C": [
            {"broker_id": 3, "last_seconds": UNTIL - 3601},
            {"broker_id": 4, "last_seconds": UNTIL - 90_000},
        ]
    }
    assert silent_brokers(last, {}, UNTIL) == named
    # 4 is back since it was decommissioned for the first time.
    assert silent_brokers(last, {("C", 4): UNTIL - 200_000}, UNTIL) == named
    gone = {("C", 3): UNTIL, ("C", 4): UNTIL - 91_000}
    assert silent_brokers(last, gone, UNTIL) == {}
    other = {**last, ("D", 1): UNTIL - 9000}
    assert list(silent_brokers(other, gone, UNTIL)) == ["D"], "a cluster is silent, too"


def test_what_stands_now_was_sampled_on_the_days_of_the_last_two_hours() -> None:
    midnight = HOUR - 12
    found = [Reach("C", 1, 0, midnight - 30), Reach("C", 2, 0, midnight), Reach("D", 1, 0, midnight + 1)]
    days = newest_days(found)
    assert days == {"C": [date(2026, 11, 19), date(2026, 11, 20)], "D": [date(2026, 11, 20)]}


def test_silent_brokers_are_the_first_tile() -> None:
    cluster = {
        "forecasts": [], "spans": [], "recommendation": {"risk": None},
        "silent_brokers": [{"broker_id": number, "last_seconds": UNTIL} for number in range(3, 9)],
    }  # fmt: skip
    shown = tiles(cluster)
    assert shown.index("No samples") < shown.index("Producers slowed")
    assert "broker 3 since 2026-11-20 12:00, 4 since" in shown
    assert "and 2 more: forecasts are old" in shown
    assert "No samples" not in tiles({**cluster, "silent_brokers": []})


def test_samples_decommissions_and_quarantine_are_counted_by_broker(spark: SparkSession) -> None:
    place = {"cluster_id": "C", "broker_id": 1}
    usage = rows(spark, USAGE, [{**place, "at": NOON + timedelta(minutes=number)} for number in (3, 5)])
    last = last_samples([Reach("C", 1, 0, HOUR), Reach("C", 2, 0, HOUR - 50)], usage)
    assert last == {("C", 1): UNTIL + 300, ("C", 2): UNTIL - 50 * 3600}
    orders = [
        {**place, "subject_broker_id": broker, "at": NOON, "order_kind": kind}
        for broker, kind in ((2, "decommission"), (3, "maintenance"))
    ]
    assert decommissions(rows(spark, OPERATORS, orders)) == {("C", 2): UNTIL}
    given = [
        {"day": at.date(), "kafka_timestamp": at, "reason": reason, "key": key}
        for at, reason, key in (
            (NOON, "At: ahead", b"3"), (NOON - timedelta(days=2), "At: ahead", b"12"),
            (NOON, "no value", b"x"),
            (NOON, "At: ahead", b"3"), (NOON - timedelta(days=7), "no value", b"5"),
        )
    ]  # fmt: skip
    assert quarantined(rows(spark, QUARANTINE, given), date(2026, 11, 14)) == [
        {"reason": "At: ahead", "records": 3, "brokers": [3, 12], "last_seconds": UNTIL},
        {"reason": "no value", "records": 1, "brokers": [], "last_seconds": UNTIL},
    ]
