"""`maintain` where nothing is due, and how it knows that something is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kquota_pipeline import delta
from kquota_pipeline.maintain.days import digest, files_of_days, last_digests
from kquota_pipeline.maintain.derived import ALL_DERIVED, HOUR_DAYS, derive, read_hours
from kquota_pipeline.maintain.due import MANY_FILES, due, settle, settled
from kquota_pipeline.maintain.upkeep import Upkeep, maintain
from kquota_pipeline.tables import HOURS, MAINTAINED, TOPICS, USAGE, Tables
from tests.spark.rows import rows

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
AFTERWARDS = NOON + timedelta(minutes=10)
FIRST, SECOND, TODAY = (date(2026, 11, day) for day in (18, 19, 20))
SETTINGS = Upkeep()
NONE_DERIVED = dict.fromkeys((derived.table.name for derived in ALL_DERIVED), 0)


def sample(day: date, minute: int):
    at = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=minute)
    place = {"cluster_id": "C", "broker_id": 1, "instance_id": "I", "sequence": 10_000 * day.day + minute}
    volume = {"volume_name": "/dev/sda", "status": "ok", "role": "data", "capacity_bytes": 100}
    return {**place, **volume, "at": at, "day": day, "consumed_bytes": minute}


def append(spark: SparkSession, tables: Tables, *samples) -> None:
    delta.append(rows(spark, USAGE, samples), tables, USAGE)


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables with two closed days and an open one, after a run."""
    folder = tmp_path_factory.mktemp("kept")
    tables = Tables(f"file:{folder}")
    for table in (USAGE, TOPICS):
        delta.create(spark, tables, table)
    append(spark, tables, *(sample(day, minute) for day in (FIRST, SECOND, TODAY) for minute in range(3)))
    done = maintain(spark, tables, NOON)
    assert (done.closed_days, done.derived_days["hours"]) == (2, 2)
    return folder


@pytest.fixture
def tables(kept: Path, tmp_path: Path) -> Tables:
    """A copy of them at another place."""
    shutil.copytree(kept, tmp_path / "tables")
    return Tables(f"file:{tmp_path}/tables")


@pytest.fixture
def reason(spark: SparkSession, tables: Tables) -> Callable[..., str | None]:
    return lambda now=NOON, settings=SETTINGS: due(spark, tables, settled(spark, tables), now, settings)


def test_nothing_due_is_known_without_a_job_and_leaves_every_file_as_it_is(spark, tables, tmp_path):
    append(spark, tables, sample(TODAY, 5))  # as an ingest does every hour
    before = sorted(tmp_path.rglob("*"))
    said: list[str] = []
    group = str(tmp_path)
    spark.sparkContext.setJobGroup(group, "maintain")
    try:
        done = maintain(spark, tables, NOON + timedelta(hours=1), SETTINGS, said.append)
    finally:
        spark.sparkContext.setJobGroup("", "")
    assert said == ["nothing is due"]
    assert (done.closed_days, done.derived_days) == (0, NONE_DERIVED)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(group) == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_copy_of_the_tables_is_in_order_also_without_the_note_of_a_run(spark, tables):
    location = tables.location(MAINTAINED)
    spark.sql(f"ALTER TABLE delta.`{location}` UNSET TBLPROPERTIES ('kquota.settled')")
    hours = [path for path in read_hours(spark, tables).inputFiles() if f"day={TODAY}" not in path]
    assert {path.split("/")[-3] for path in hours} == {"hours"}, "a reader of the copy uses what is derived"
    said: list[str] = []
    done = maintain(spark, tables, AFTERWARDS, SETTINGS, said.append)
    assert said == ["no run has noted the state of these tables: all tables are looked through"]
    assert (done.closed_days, done.derived_days) == (0, NONE_DERIVED)


def test_late_records_of_a_closed_day_derive_that_day_alone(spark, tables):
    other = files_of_days(spark, tables, USAGE)[SECOND]
    append(spark, tables, sample(FIRST, 7))
    said: list[str] = []
    done = maintain(spark, tables, AFTERWARDS, SETTINGS, said.append)
    assert said[0] == f"usage: {FIRST} is closed, and not in order: all tables are looked through"
    assert done.closed_days == 1
    assert {name: days for name, days in done.derived_days.items() if days} == {
        "ten_minutes": 1, "hours": 1, "holdings": 1,
    }  # fmt: skip
    assert files_of_days(spark, tables, USAGE)[SECOND] == other
    assert maintain(spark, tables, AFTERWARDS + timedelta(minutes=10)).closed_days == 0


def test_the_newest_note_is_in_force_also_after_a_clock_was_set_back(spark, tables):
    append(spark, tables, sample(FIRST, 7))
    earlier = NOON - timedelta(hours=5)
    assert maintain(spark, tables, earlier).closed_days == 1
    in_order = last_digests(spark, tables)[USAGE.name]
    assert in_order[FIRST] == digest(files_of_days(spark, tables, USAGE)[FIRST])
    assert maintain(spark, tables, earlier + timedelta(minutes=10)).closed_days == 0


def test_samples_are_dropped_before_the_hours_that_are_made_of_them(spark, tables):
    assert maintain(spark, tables, AFTERWARDS, Upkeep(raw_retention_days=1)).dropped_days == 1

    def assert_kept() -> None:
        assert files_of_days(spark, tables, HOURS).keys() == {FIRST, SECOND}
        crests = read_hours(spark, tables).orderBy("hour").select("crest_bytes").collect()
        assert [row["crest_bytes"] for row in crests] == [2, 2, 2]

    assert files_of_days(spark, tables, USAGE).keys() == {SECOND, TODAY}
    assert_kept()
    append(spark, tables, sample(FIRST, 9))  # too late for a day that is gone
    before = last_digests(spark, tables)[HOURS.name]
    assert derive(spark, tables, HOUR_DAYS, before, lambda day: day < TODAY, NOON) == (0, 0)
    assert_kept()


def test_a_day_is_due_once_it_is_closed(reason):
    midnight = datetime(2026, 11, 21, tzinfo=UTC)
    assert reason(midnight + timedelta(hours=1.9)) is None
    assert reason(midnight + timedelta(hours=2)) == f"usage: {TODAY} is closed, and not in order"


def test_days_are_dropped_and_files_deleted_when_it_is_time(reason):
    assert reason(settings=Upkeep(retention_days=2)) is None
    assert reason(settings=Upkeep(retention_days=1)) == f"usage: days before {SECOND} are dropped"
    settings = Upkeep(closed_after=timedelta(days=30))
    assert reason(NOON + timedelta(days=6.9), settings) is None
    assert reason(NOON + timedelta(days=7), settings) == (
        "files that are not needed were last deleted at 2026-11-20 12:00"
    )


def test_an_open_day_of_many_files_is_due(spark, tables, reason):
    missing = MANY_FILES - len(files_of_days(spark, tables, USAGE)[TODAY])
    for count, expected in ((missing, None), (1, f"usage: {TODAY} has {MANY_FILES + 1} files")):
        given = rows(spark, USAGE, [sample(TODAY, minute) for minute in range(10 * count)])
        delta.append(given.repartition(count), tables, USAGE)
        assert reason() == expected


def test_a_table_that_was_put_back_or_written_by_others_is_looked_through(spark, tables, kept, reason):
    place = Path(tables.location(USAGE).removeprefix("file:"))
    append(spark, tables, sample(TODAY, 5))
    settle(spark, tables, NOON)
    assert reason() is None
    shutil.rmtree(place)
    shutil.copytree(kept / USAGE.name, place)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # as of another program
    assert reason() == "usage: is new, or was put back to an earlier state"
    append(spark, tables, sample(TODAY, 6))
    assert reason() == "usage: is another one than the last run saw, or has had no run for a month"
    settle(spark, tables, NOON)
    assert reason() is None
    delta.remove_days(spark, tables, HOURS, [FIRST])
    assert reason() == "hours: was written to by others"
