"""The hours of looks at segments: of days in order from their table, of all others from the looks."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from kquota_pipeline import delta
from kquota_pipeline.forecast.looks import hourly_looks
from kquota_pipeline.maintain.derived import LOOK_DAYS, derive, read_looks
from kquota_pipeline.maintain.hours import look_rows
from kquota_pipeline.tables import EXPIRY, LOOKS, MAINTAINED, TOPICS
from tests.spark.rows import rows

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
FIRST, SECOND = date(2026, 11, 20), date(2026, 11, 21)


def envelope(minutes: int, volume: str, **more: object) -> dict[str, object]:
    at = MIDNIGHT + timedelta(minutes=minutes)
    return {"cluster_id": "C", "broker_id": 1, "instance_id": "I", "sequence": minutes, "at": at,
            "day": at.date(), "volume_name": volume, **more}  # fmt: skip


def looks(first: int, last: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return the looks at two volumes in these minutes, one in ten minutes: `expiry` and `topics`."""
    each = [(minutes, volume) for minutes in range(first, last, 10) for volume in ("/dev/sda", "/dev/sdb")]
    expiry = [
        envelope(
            minutes, volume, leaving_10m_bytes=minutes, leaving_1d_bytes=7, never_bytes=2, deleted_bytes=1
        )
        for minutes, volume in each
    ]
    topics = [
        envelope(
            minutes, volume, topic=topic, bytes=10 * minutes, leaving_soon_bytes=3, retention_seconds=kept
        )
        for minutes, volume in each
        for topic, kept in (("orders", 7200.0), ("audit", None), (None, None))
    ]
    return expiry, topics


def test_looks_are_read_where_they_are_derived_and_made_where_a_day_has_changed(spark, tables):
    def stored(first: int, last: int) -> None:
        for table, given in zip((EXPIRY, TOPICS), looks(first, last), strict=True):
            delta.append(rows(spark, table, given), tables, table)

    def made():
        return hourly_looks(*(delta.read(spark, tables, table) for table in (EXPIRY, TOPICS)))

    for table in (EXPIRY, TOPICS, LOOKS, MAINTAINED):
        delta.create(spark, tables, table)
    stored(0, 180)
    stored(24 * 60, 25 * 60)
    assert derive(spark, tables, LOOK_DAYS, {}, lambda day: day == FIRST, MIDNIGHT) == (1, 0)
    derived = delta.read(spark, tables, LOOKS)
    assert {row.day for row in derived.collect()} == {FIRST}
    assert derived.count() == 3 * 2 * (1 + 2), "six looks in an hour, and a row has the last"
    found = read_looks(spark, tables)
    assert dict(found.dtypes) == dict(made().dtypes)
    assertDataFrameEqual(found, made().select(*found.columns))
    hours = {math.floor((MIDNIGHT + timedelta(hours=24)).timestamp() / 3600)}
    assert {row.hour for row in read_looks(spark, tables, SECOND).collect()} == hours
    for name in ("expiry", "topics"):
        read = {path.split("/")[-2] for path in found.inputFiles() if f"/{name}/" in path}
        assert read == {f"day={SECOND}"}


def test_the_table_has_the_columns_of_its_rows(spark):
    given = (rows(spark, table, own) for table, own in zip((EXPIRY, TOPICS), looks(0, 10), strict=True))
    made = look_rows(*given)
    assert {field.name: field.dataType for field in made.schema} == {
        field.name: field.dataType for field in LOOKS.schema
    }
    assert made.select(F.max("at")).first()[0].astimezone(UTC) == MIDNIGHT
