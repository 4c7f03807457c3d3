"""Making the parsed rows of some days again, from the records as they came.

A later version may know a field, a kind or a table that an earlier one did not. Of each record that is still
kept the rows become those that an ingest of today would make; those of other records stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.ingest.raw import messages_of
from kquota_pipeline.ingest.records import read_records
from kquota_pipeline.ingest.rows import ROWS
from kquota_pipeline.maintain.days import last_digests
from kquota_pipeline.tables import QUARANTINE, RECORDS, Table, Tables

# By this much an agent's clock may be ahead of Kafka's, at most (`ingest.problems`).
_AHEAD = timedelta(days=1)


def reparse(
    spark: SparkSession,
    tables: Tables,
    first: date,
    last: date,
    version: int | None = None,
    only: Collection[Table] = tuple(ROWS),
    report: Callable[[str], None] = lambda _line: None,
) -> int:
    """Make the rows of the UTC days from `first` to `last` again; return how many records they are of.

    Only records in this version of table `records` count (`ingest.lineage.settled_version`). A day that
    `maintain` has closed stays without duplicates. Of a malformed record the day of Kafka's time counts, too.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    raw = delta.read(spark, tables, RECORDS, version)
    # A record may have waited long for its cluster, so its day in Kafka may be any later one.
    messages = messages_of(delta.of_days(raw, first - _AHEAD).dropDuplicates(list(RECORDS.identity)))
    arrived, days = F.to_date("kafka_timestamp"), (F.lit(first), F.lit(last))
    is_malformed = F.col("problem").isNotNull()
    records = (
        read_records(messages)
        .where(F.to_date("at").between(*days) | (is_malformed & arrived.between(*days)))
        .persist()
    )
    try:
        count, first_arrived, last_arrived = records.agg(
            F.count("*"), F.min(arrived), F.max(arrived)
        ).collect()[0]
        if not count:
            return 0
        in_order = last_digests(spark, tables)
        for table in only:
            begin, end = (first_arrived, last_arrived) if table is QUARANTINE else (first, last)
            before, made = _replace(spark, tables, table, records, begin, end, in_order[table.name])
            report(f"{table.name}: {made:,} rows made, {before:,} were there")
    finally:
        records.unpersist()
    return int(count)


def _replace(
    spark: SparkSession,
    tables: Tables,
    table: Table,
    records: DataFrame,
    first: date,
    last: date,
    in_order: Iterable[date],
) -> tuple[int, int]:
    """Put the rows of the records in the place of those there; return how many there were, and how many are
    of the records. Days `in_order` stay without duplicates.
    """
    delta.create(spark, tables, table)
    made = delta.of_days(ROWS[table](records), first, last)
    rows_made = made.count()
    # Of a place in the topic and a time there is one record, also if the topic was made again.
    place = (
        ["kafka_topic", "kafka_partition", "kafka_offset", "kafka_timestamp"]
        if table is QUARANTINE
        else ["kafka_partition", "kafka_offset", "at"]
    )
    places = records.select(*place).distinct()
    closed = [day for day in in_order if first <= day <= last]

    def attempt() -> tuple[int, int]:
        there = delta.of_days(delta.read(spark, tables, table), first, last)
        before = there.count()
        if before or rows_made:
            rows = there.join(places, place, "left_anti").unionByName(made) if before else made
            delta.replace_days(_once(rows, table, closed), tables, table, first, last)
        return before, rows_made

    return delta.retried(attempt)


def _once(rows: DataFrame, table: Table, closed: list[date]) -> DataFrame:
    """Return the rows; of closed days each identity once, of the others each place."""
    place = F.when(~F.col("day").isin(closed), F.struct("kafka_partition", "kafka_offset"))
    return rows.withColumn("_place", place).dropDuplicates(["day", *table.identity, "_place"]).drop("_place")
