"""Which days of a table have changed since they were last put in order, by the names of their files alone."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from datetime import date, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.tables import MAINTAINED, Table, Tables


def files_of_days(spark: SparkSession, tables: Tables, table: Table) -> dict[date, list[str]]:
    """Return the files of each day of a table, sorted. No file is opened."""
    found = delta.files_by_day(delta.read(spark, tables, table))
    return {day: sorted(names) for day, names in sorted(found.items())}


def digest(files: list[str]) -> str:
    """Return a digest of the names of a day's files; Delta never uses a name twice."""
    return hashlib.sha256("\n".join(sorted(files)).encode()).hexdigest()


def last_digests(spark: SparkSession, tables: Tables) -> Mapping[str, Mapping[date, str]]:
    """Return for each table, by its name, the digest of each day when it was last put in order."""
    found: dict[str, dict[date, str]] = defaultdict(dict)
    if delta.exists(spark, tables, MAINTAINED):
        latest = F.max_by("files_digest", "at").alias("files_digest")
        for row in delta.read(spark, tables, MAINTAINED).groupBy("table_name", "day").agg(latest).collect():
            found[row["table_name"]][row["day"]] = str(row["files_digest"])
    return found


def note(
    spark: SparkSession,
    tables: Tables,
    table: Table,
    digests: Mapping[date, str],
    at: datetime,
    rows: int | None = None,
    duplicates: int = 0,
) -> None:
    """Note that each of these days is in order as long as its digest is this one."""
    of_days = F.create_map(*(F.lit(part) for pair in digests.items() for part in pair))
    noted = spark.range(1).select(
        F.lit(table.name).alias("table_name"),
        F.explode(of_days).alias("day", "files_digest"),
        F.lit(at).alias("at"),
        F.lit(rows).cast("bigint").alias("rows"),
        F.lit(duplicates).cast("bigint").alias("duplicates"),
    )
    delta.append(noted, tables, MAINTAINED)
