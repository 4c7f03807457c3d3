"""The tables that commands are measured on are those that `ingest` leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.pipeline.stored import START, StoredFleet, append_days
from kquota_pipeline import delta
from kquota_pipeline.ingest.raw import messages_of
from kquota_pipeline.ingest.records import read_records
from kquota_pipeline.tables import CLIENTS, DECISIONS, EXPIRY, INGESTED, RECORDS, TOPICS, USAGE, Tables

FLEET = StoredFleet(brokers=2, days=2, volumes=3, sample_seconds=3600)


@pytest.mark.long
def test_a_fleet_has_a_row_per_sample_and_its_records_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    append_days(spark, tmp_path, FLEET, range(1), {table.name for table in INGESTED})
    append_days(spark, tmp_path, FLEET, range(1, 2), {table.name for table in INGESTED})
    tables = Tables(f"file:{tmp_path}/tables")
    found = {
        table: delta.read(spark, tables, table)
        for table in (RECORDS, USAGE, DECISIONS, CLIENTS, TOPICS, EXPIRY)
    }
    counts = {table.name: frame.count() for table, frame in found.items()}
    assert counts == {
        "records": 2 * 2 * 24,
        "usage": FLEET.samples,
        "decisions": 2 * 2 * 144,
        "clients": 2 * 2 * 144 * 3,
        "topics": 2 * 2 * 24 * 3 * 6,
        "expiry": 2 * 2 * 24 * 3,
    }
    days = {row.day for row in found[USAGE].select("day").distinct().collect()}
    assert days == {START.date(), FLEET.last_day}
    for table, frame in found.items():
        identities = frame.select(*table.identity).distinct().count()
        assert identities == counts[table.name], table.name
    read = read_records(messages_of(found[RECORDS])).select("record.Kind", "problem").distinct().collect()
    assert [tuple(row) for row in read] == [("usage", None)]
