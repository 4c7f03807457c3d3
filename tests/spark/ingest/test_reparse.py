"""Rows made again of the records as they came: those of an ingest of today, and no others change."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from kquota_pipeline import delta
from kquota_pipeline.ingest import problems, stream
from kquota_pipeline.ingest.lineage import Batch
from kquota_pipeline.ingest.progress import Progress
from kquota_pipeline.ingest.raw import record_rows
from kquota_pipeline.ingest.records import read_records
from kquota_pipeline.ingest.reparse import reparse
from kquota_pipeline.ingest.rows import ROWS
from kquota_pipeline.ingest.stream import append_batch
from kquota_pipeline.maintain.closing import close_day
from kquota_pipeline.maintain.days import Entry, note
from kquota_pipeline.tables import (
    EXPIRY,
    FROM_HISTORY,
    INGESTED,
    MAINTAINED,
    QUARANTINE,
    RECORDS,
    TOPICS,
    USAGE,
    Tables,
)
from tests.spark.ingest.messages import changed, messages, sample
from tests.spark.rows import rows

DAY, NEXT = date(2026, 11, 20), date(2026, 11, 21)
NAMES = ("usage-topics", "decision-transition", "clients", "operator-hold", "topics", "expiry")
TWICE = changed(sample("usage-topics"), "Sequence", 99)
RECORDS_SENT = [
    *map(sample, NAMES),
    TWICE,
    TWICE,
    changed(sample("usage-topics"), "At", "2026-11-21T00:00:30Z"),
    b"nonsense",
]


def ingested(spark, tables, values, number: int = 0):
    for table in INGESTED:
        delta.create(spark, tables, table)
    append_batch(messages(spark, values), tables, Batch("Q", number), Progress(lambda _line: None))


def usage_of_before(records: DataFrame) -> DataFrame:
    """Rows of a version that did not read these fields."""
    unread = ("fill_ceiling_bytes_per_second", "topics", "topics_sequence")
    types = {field.name: field.dataType for field in USAGE.schema}
    return ROWS[USAGE](records).withColumns({name: F.lit(None).cast(types[name]) for name in unread})


@pytest.fixture
def of_before(spark, tables, monkeypatch):
    """Tables that a version has filled that knew fewer fields, kinds and tables."""
    known = {table: rows for table, rows in ROWS.items() if table not in (USAGE, TOPICS, EXPIRY)}
    with monkeypatch.context() as patched:
        patched.setattr(stream, "ROWS", {USAGE: usage_of_before, **known})
        ingested(spark, tables, RECORDS_SENT)
    return tables


@pytest.mark.long
def test_what_an_earlier_version_did_not_know_is_made_of_the_records_as_they_came(spark, of_before, tmp_path):
    tables, today = of_before, Tables(f"file:{tmp_path}/today")
    delta.create(spark, tables, MAINTAINED)
    # A row of a record that is no longer there as it came, and a day that has been closed.
    gone = {"cluster_id": "C", "at": datetime(2026, 11, 20, 5, tzinfo=UTC), "day": DAY, "kafka_offset": 1}
    delta.append(rows(spark, USAGE, [gone]), tables, USAGE)
    assert close_day(spark, tables, USAGE, DAY) == (5, 2)
    note(spark, tables, [Entry(USAGE, DAY, "digest")], datetime(2026, 11, 21, 3, tzinfo=UTC))
    assert delta.read(spark, tables, USAGE).where(F.col("topics").isNotNull()).isEmpty()
    assert delta.read(spark, tables, TOPICS).isEmpty()

    assert reparse(spark, tables, DAY, DAY) == 8, "and neither the next day's nor the malformed one of it"

    ingested(spark, today, RECORDS_SENT)
    for table in FROM_HISTORY:
        expected = delta.of_days(delta.read(spark, today, table), DAY, DAY)
        if table is USAGE:
            expected = expected.union(rows(spark, USAGE, [gone])).dropDuplicates([*USAGE.identity])
        found = delta.of_days(delta.read(spark, tables, table), DAY, DAY)
        # Which of two copies stays is open.
        assertDataFrameEqual(*(frame.drop("kafka_offset") for frame in (found, expected)))
    next_day = delta.of_days(delta.read(spark, tables, USAGE), NEXT)
    assert [row["topics"] for row in next_day.collect()] == [None, None], "its days alone have changed"
    assert delta.read(spark, tables, QUARANTINE).count() == 1


def test_a_field_a_kind_and_a_rule_of_a_later_version_are_applied_to_the_records_as_they_came(
    spark, tables, monkeypatch
):
    # Its day is none of those that are made again.
    ahead = changed(sample("usage-topics"), "At", "2027-11-20T00:00:30Z")
    values = [sample("usage-topics"), sample("topics"), ahead]
    for table in (RECORDS, USAGE, QUARANTINE):
        delta.create(spark, tables, table)
    with monkeypatch.context() as patched:
        patched.setattr(problems, "_KINDS", ("usage",))
        patched.setattr(problems, "_MINUTES_AHEAD", 1_000_000)
        patched.setattr(stream, "ROWS", {USAGE: usage_of_before, QUARANTINE: ROWS[QUARANTINE]})
        patched.setattr(stream, "KIND_OF_TABLE", {USAGE: "usage"})
        append_batch(messages(spark, values), tables, Batch("Q", 0), Progress(lambda _line: None))
    # On the same day, and in the same place of a topic that was made again.
    far = {"at": datetime(2027, 11, 20, 5, tzinfo=UTC), "day": date(2027, 11, 20), "broker_id": 9}
    other = rows(spark, USAGE, [{"cluster_id": "C", **far, "kafka_partition": 3, "kafka_offset": 2}])
    delta.append(other, tables, USAGE)
    said: list[str] = []
    assert reparse(spark, tables, DAY, NEXT, only=(USAGE, TOPICS, QUARANTINE), report=said.append) == 3
    assert said == [
        "usage: 2 rows made, 4 were there",
        "topics: 3 rows made, 0 were there",
        "quarantine: 1 rows made, 1 were there",
    ]
    records = read_records(messages(spark, values))
    for table in (USAGE, TOPICS, QUARANTINE):
        expected = ROWS[table](records)
        expected = expected.unionByName(other) if table is USAGE else expected
        assertDataFrameEqual(delta.read(spark, tables, table), expected)


def test_a_malformed_record_that_came_again_with_another_time_is_one_row(spark, tables):
    for table in (RECORDS, QUARANTINE):
        delta.create(spark, tables, table)
    once = messages(spark, [b"nonsense", b"x" * 70_000])
    again = once.withColumn("timestamp", F.col("timestamp") + F.expr("INTERVAL 1 MINUTE"))
    for batch in (once, again):
        delta.append(record_rows(batch), tables, RECORDS)
        delta.append(ROWS[QUARANTINE](read_records(batch)), tables, QUARANTINE)
    assert reparse(spark, tables, NEXT, NEXT, only=(QUARANTINE,)) == 2
    assert [row["kafka_offset"] for row in delta.read(spark, tables, QUARANTINE).collect()] in (
        [0, 1],
        [1, 0],
    )


@pytest.mark.long
def test_records_of_a_batch_that_is_not_yet_in_all_tables_are_left_to_it(spark, tables):
    ingested(spark, tables, [sample("usage")])
    before = spark.sql(f"DESCRIBE HISTORY delta.`{tables.location(RECORDS)}`").agg(F.max("version")).collect()
    delta.append(
        delta.read(spark, tables, RECORDS).withColumn("kafka_offset", F.lit(1).cast("bigint")),
        tables,
        RECORDS,
    )
    assert reparse(spark, tables, DAY, DAY, before[0][0]) == 1
    assert delta.read(spark, tables, USAGE).count() == 1
    assert reparse(spark, tables, DAY, DAY) == 2
    assert delta.read(spark, tables, USAGE).count() == 2
