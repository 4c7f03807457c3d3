"""The hours of each volume: of days in order from their table, of all others from the samples."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from kquota_pipeline import delta
from kquota_pipeline.accounting.days import holdings_of
from kquota_pipeline.forecast.series import VOLUME, hourly
from kquota_pipeline.maintain.days import Entry, digest, files_of_days, last_digests, note
from kquota_pipeline.maintain.derived import HOLDING_DAYS, HOUR_DAYS, derive, read_derived, read_hours
from kquota_pipeline.maintain.hours import hour_rows
from kquota_pipeline.tables import HOLDINGS, HOURS, MAINTAINED, TOPICS, USAGE
from tests.spark.rows import rows

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
FIRST, SECOND = date(2026, 11, 20), date(2026, 11, 21)


def sample(minutes: float, consumed: int, **more):
    at = MIDNIGHT + timedelta(minutes=minutes)
    return {
        "cluster_id": "C",
        "broker_id": 1,
        "instance_id": "I",
        "sequence": int(minutes),
        "at": at,
        "day": at.date(),
        "volume_name": "/dev/sda",
        "volume_id": "fs",
        "mount_point": "/data/1",
        "status": "ok",
        "role": "data",
        "capacity_bytes": 100,
        "consumed_bytes": consumed,
        "hard_limit_type": "MinFreePercentage",
        "hard_limit_level": 5.0,
        "soft_limit_type": "MinFreeBytes",
        "soft_limit_level": 20.0,
        **more,
    }


def test_an_hour_is_what_its_samples_come_to(spark):
    given = [
        sample(60, 40, applied_factor=1.0),
        sample(70, 60, applied_factor=0.0),
        sample(119.9, 50),
        sample(80, 99, status="failed"),
        sample(90, 1, role="metadata"),
        sample(120, 7),
    ]
    made = hour_rows(rows(spark, USAGE, given))
    assert {field.name: field.dataType for field in made.schema} == {
        field.name: field.dataType for field in HOURS.schema
    }
    first, second = (row.asDict() for row in made.orderBy("at").collect())
    assert first.pop("at").astimezone(UTC) == MIDNIGHT + timedelta(hours=1)
    assert first.pop("held") == pytest.approx(1 / 3)
    assert first == {
        "cluster_id": "C",
        "broker_id": 1,
        "volume_name": "/dev/sda",
        "day": FIRST,
        "crest_bytes": 60,
        "lowest_bytes": 40,
        "mean_bytes": 50.0,
        "last_bytes": 50,
        "capacity_bytes": 100,
        "volume_id": "fs",
        "mount_point": "/data/1",
        "hard_bytes": 95.0,
        "soft_bytes": 80.0,
        "samples": 3,
    }
    assert (second["last_bytes"], second["samples"]) == (7, 1)


def test_hours_are_read_where_they_are_derived_and_made_of_samples_where_a_day_has_changed(spark, tables):
    def stored(*given):
        delta.append(rows(spark, USAGE, given), tables, USAGE)

    for table in (USAGE, HOURS, MAINTAINED):
        delta.create(spark, tables, table)
    stored(sample(5, 10), sample(15, 20), sample(65, 30))
    # One that no sample gave: only who reads the table sees it.
    derived = hour_rows(delta.read(spark, tables, USAGE)).withColumn("crest_bytes", F.col("crest_bytes") + 1)
    delta.replace_each(derived, tables, HOURS, [FIRST])
    of_samples = digest(files_of_days(spark, tables, USAGE)[FIRST])
    note(spark, tables, [Entry(HOURS, FIRST, of_samples)], MIDNIGHT)
    stored(sample(24 * 60 + 1, 40))

    found = read_hours(spark, tables)
    assert set(found.columns) == set(hourly(delta.read(spark, tables, USAGE)).columns)
    assert [row["crest_bytes"] for row in found.orderBy("hour").collect()] == [21, 31, 40]
    assert [row["crest_bytes"] for row in read_hours(spark, tables, SECOND).collect()] == [40]

    stored(sample(25, 50))
    samples = delta.read(spark, tables, USAGE)
    found = read_hours(spark, tables)
    assertDataFrameEqual(found, hourly(samples).select(*found.columns))


def test_a_day_that_its_samples_have_left_has_no_hours(spark, tables):
    for table in (USAGE, HOURS, MAINTAINED):
        delta.create(spark, tables, table)
    delta.append(rows(spark, USAGE, [sample(5, 10), sample(24 * 60 + 1, 40)]), tables, USAGE)

    def maintained() -> tuple[int, int]:
        before = last_digests(spark, tables)[HOURS.name]
        return derive(spark, tables, HOUR_DAYS, before, lambda _day: True, MIDNIGHT)

    assert maintained() == (2, 0)
    delta.remove_days(spark, tables, USAGE, [SECOND])
    assert [row["crest_bytes"] for row in read_hours(spark, tables).collect()] == [10]
    assert set(files_of_days(spark, tables, HOURS)) == {FIRST, SECOND}
    assert maintained() == (0, 1)
    assert set(files_of_days(spark, tables, HOURS)) == {FIRST}
    assert maintained() == (0, 0)


def test_bytes_held_are_made_of_hours_and_of_samples_only_where_a_day_has_none(spark, tables):
    for table in (USAGE, TOPICS, HOURS, HOLDINGS, MAINTAINED):
        delta.create(spark, tables, table)
    minutes = (5, 65, 24 * 60 + 1)
    looks = [sample(at, 0, topic=topic, bytes=at) for at in minutes for topic in ("orders", None)]
    delta.append(rows(spark, USAGE, [sample(at, 10) for at in minutes]), tables, USAGE)
    delta.append(rows(spark, TOPICS, looks), tables, TOPICS)
    assert derive(spark, tables, HOUR_DAYS, {}, lambda day: day == FIRST, MIDNIGHT) == (1, 0)

    found = read_derived(spark, tables, HOLDING_DAYS)
    read = {tuple(path.split("/")[-3:-1]) for path in found.inputFiles()}
    days = {f"day={day}" for day in (FIRST, SECOND)}
    assert read == {("usage", f"day={SECOND}"), ("hours", f"day={FIRST}"), *(("topics", day) for day in days)}
    of_samples = holdings_of(hourly(delta.read(spark, tables, USAGE)), delta.read(spark, tables, TOPICS))
    assertDataFrameEqual(found, of_samples.select(*found.columns))

    assert derive(spark, tables, HOLDING_DAYS, {}, lambda _day: True, MIDNIGHT) == (2, 0)
    stored = delta.read(spark, tables, HOLDINGS)
    assertDataFrameEqual(stored.select(*found.columns), found)
    assert stored.columns == HOLDINGS.schema.fieldNames()
    assert {tuple(row[:3]) for row in stored.select(*VOLUME).collect()} == {("C", 1, "/dev/sda")}
    delta.append(rows(spark, USAGE, [sample(30, 50)]), tables, USAGE)
    before = last_digests(spark, tables)[HOLDINGS.name]
    assert derive(spark, tables, HOLDING_DAYS, before, lambda _day: True, MIDNIGHT) == (1, 0)
    of_samples = holdings_of(hourly(delta.read(spark, tables, USAGE)), delta.read(spark, tables, TOPICS))
    assertDataFrameEqual(delta.read(spark, tables, HOLDINGS), of_samples.select(*found.columns))
