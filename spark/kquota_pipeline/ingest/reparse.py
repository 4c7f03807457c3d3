"""Making the parsed rows of some days again, from the records as they came.

A later version may know a field, a kind or a table that an earlier one did not. Of each record that is still
kept the rows become those that an ingest of today would make; those of other records stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.ingest.raw import messages_of
from kquota_pipeline.ingest.records import content, read_records
from kquota_pipeline.ingest.rows import ROWS
from kquota_pipeline.maintain.days import last_digests
from kquota_pipeline.tables import QUARANTINE, RECORDS, Table, Tables

# By this much an agent's clock may be ahead of Kafka's, at most (`ingest.problems`).
_AHEAD = timedelta(days=1)
_PLACE = ("kafka_partition", "kafka_offset")


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
    `maintain` has closed stays without duplicates. Of a malformed record the day of Kafka's time counts, too:
    rows that were made of it before are removed, whatever their day.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    raw = delta.read(spark, tables, RECORDS, version)
    # A record may have waited long for its cluster, so its day in Kafka may be any later one.
    messages = messages_of(delta.of_days(raw, first - _AHEAD).dropDuplicates(list(RECORDS.identity)))
    arrived, day = F.to_date("kafka_timestamp"), F.to_date("at")
    is_malformed, is_asked = F.col("problem").isNotNull(), day.between(F.lit(first), F.lit(last))
    records = (
        read_records(messages)
        .where(is_asked | (is_malformed & arrived.between(F.lit(first), F.lit(last))))
        .persist()
    )
    try:
        count, first_arrived, last_arrived, others = records.agg(
            F.count("*"), F.min(arrived), F.max(arrived), F.collect_set(F.when(~is_asked, day))
        ).collect()[0]
        if not count:
            return 0
        in_order = last_digests(spark, tables)
        for table in only:
            days = _Days(first_arrived, last_arrived) if table is QUARANTINE else _Days(first, last, others)
            before, made = _replace(spark, tables, table, records, days, in_order[table.name])
            report(f"{table.name}: {made:,} rows made, {before:,} were there")
    finally:
        records.unpersist()
    return int(count)


@dataclass(frozen=True)
class _Days:
    """The days whose rows are replaced, and `others` that may have rows of the same records."""

    first: date
    last: date
    others: Sequence[date] = ()

    def are_asked(self) -> Column:
        return F.col("day").between(F.lit(self.first), F.lit(self.last))


def _replace(
    spark: SparkSession,
    tables: Tables,
    table: Table,
    records: DataFrame,
    days: _Days,
    in_order: Iterable[date],
) -> tuple[int, int]:
    """Put the rows of the records in the place of those there; return how many there were, and how many are
    of the records. Days `in_order` stay without duplicates.
    """
    delta.create(spark, tables, table)
    made = delta.of_days(ROWS[table](records), days.first, days.last)
    rows_made = made.count()
    # A topic that was made again has other records in the same places: of other times, or other content.
    place = [*_PLACE, "at"] if table is not QUARANTINE else ["kafka_topic", *_PLACE, "content"]
    places = records.select(*place).distinct()

    def attempt() -> tuple[int, int]:
        current = delta.read(spark, tables, table)
        if table is QUARANTINE:
            current = current.withColumn("content", content("key", "value"))
        elsewhere = current.where(F.col("day").isin(list(days.others)))
        astray = _rows_by_day(elsewhere, places, place) if days.others else {}
        before = current.where(days.are_asked()).count()
        if before or rows_made or astray:
            there = current.where(days.are_asked() | F.col("day").isin(list(astray)))
            others = there.join(places, place, "left_anti").drop("content")
            rows = others.unionByName(made) if before or astray else made
            closed = [day for day in in_order if days.first <= day <= days.last or day in astray]
            delta.replace_days(_once(rows, table, closed), tables, table, days.first, days.last, astray)
        return before + sum(astray.values()), rows_made

    return delta.retried(attempt)


def _rows_by_day(rows: DataFrame, places: DataFrame, place: list[str]) -> dict[date, int]:
    """Return how many rows of each day are of the records in these places."""
    found = rows.join(places, place, "left_semi").groupBy("day").count().collect()
    return {row["day"]: int(row["count"]) for row in found}


def _once(rows: DataFrame, table: Table, closed: list[date]) -> DataFrame:
    """Return the rows; of closed days each identity once, of the others each place."""
    place = F.when(~F.col("day").isin(closed), F.struct(*_PLACE))
    return rows.withColumn("_place", place).dropDuplicates(["day", *table.identity, "_place"]).drop("_place")
