"""Which days of a table have changed since they were last put in order, by the names of their files alone."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.tables import MAINTAINED, Table, Tables

_EPOCH = datetime.fromtimestamp(0, UTC)


def files_of_days(spark: SparkSession, tables: Tables, table: Table) -> dict[date, list[str]]:
    """Return the files of each day of a table, sorted, by their names within it. No file is opened."""
    found = delta.files_by_day(delta.read(spark, tables, table))
    return {day: sorted(names) for day, names in sorted(found.items())}


def digest(files: list[str]) -> str:
    """Return a digest of the names of a day's files: Delta never uses a name twice, so a name stands for what
    is in the file, and the digest for what is in the day, wherever the table lies.
    """
    return hashlib.sha256("\n".join(sorted(files)).encode()).hexdigest()


def last_digests(spark: SparkSession, tables: Tables) -> Mapping[str, Mapping[date, str]]:
    """Return for each table, by its name, the digest of each day when it was last put in order."""
    found: dict[str, dict[date, str]] = defaultdict(dict)
    if delta.exists(spark, tables, MAINTAINED):
        latest = F.max_by("files_digest", "at").alias("files_digest")
        for row in delta.read(spark, tables, MAINTAINED).groupBy("table_name", "day").agg(latest).collect():
            found[row["table_name"]][row["day"]] = str(row["files_digest"])
    return found


DROPPED = ""
"""In place of a digest: the day was dropped as old. Days derived of it stay, and rows that come later count
for nothing.
"""


@dataclass(frozen=True)
class Entry:
    """A day of a table is in order as long as its files, or those that it was made of, have this digest; or
    it was `DROPPED`.
    """

    table: Table
    day: date
    digest: str
    rows: int | None = None
    duplicates: int = 0


def note(spark: SparkSession, tables: Tables, entries: Collection[Entry], at: datetime) -> None:
    """Note what is in order, all in one transaction: `at`, or after every note that is there. So the newest
    one is in force, also after the clock was set back.
    """
    if not entries:
        return

    def attempt() -> None:
        (newest,) = delta.read(spark, tables, MAINTAINED).agg(F.unix_micros(F.max("at"))).collect()[0]
        later = at if newest is None else max(at, _EPOCH + timedelta(microseconds=newest + 1))
        rows = [(one.table.name, one.day, later, one.digest, one.rows, one.duplicates) for one in entries]
        delta.append(spark.createDataFrame(rows, MAINTAINED.schema).coalesce(1), tables, MAINTAINED)

    delta.retried(attempt)
