"""Tables that are derived day by day from others: once for each day, again where its files have changed.

A reader gets the days that have not changed since, and all others made of their sources.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.accounting.days import holdings_of, writing_rows
from kquota_pipeline.backtest.ten_minutes import ten_minute_rows
from kquota_pipeline.maintain.days import DROPPED, Entry, digest, files_of_days, last_digests, note
from kquota_pipeline.maintain.hours import as_hourly, as_hourly_looks, hour_rows, look_rows
from kquota_pipeline.tables import (
    CLIENTS,
    EXPIRY,
    HOLDINGS,
    HOURS,
    LOOKS,
    TEN_MINUTES,
    TOPICS,
    USAGE,
    WRITINGS,
    Table,
    Tables,
)

# A transaction for each day would cost more than the work of most; one for a year would spill.
_AT_ONCE_DAYS = 32


@dataclass(frozen=True)
class Derived:
    """A table whose `rows` are made of whole days of its sources, which may be derived themselves; it has the
    days of the first of them.
    """

    table: Table
    sources: tuple[Table | Derived, ...]
    rows: Callable[..., DataFrame]

    @property
    def origins(self) -> Iterator[Table]:
        """The tables that are not derived, of whose files it is made in the end."""
        for source in self.sources:
            yield from source.origins if isinstance(source, Derived) else (source,)


class Changed(NamedTuple):
    """How many days of a derived table were made, and how many removed."""

    derived: int
    removed: int


TEN_MINUTE_DAYS = Derived(TEN_MINUTES, (USAGE,), ten_minute_rows)
HOUR_DAYS = Derived(HOURS, (USAGE,), hour_rows)
LOOK_DAYS = Derived(LOOKS, (EXPIRY, TOPICS), look_rows)
HOLDING_DAYS = Derived(
    HOLDINGS, (HOUR_DAYS, TOPICS), lambda hours, topics: holdings_of(as_hourly(hours), topics)
)
WRITING_DAYS = Derived(WRITINGS, (CLIENTS,), writing_rows)
# Each after those that it is made of.
ALL_DERIVED = (TEN_MINUTE_DAYS, HOUR_DAYS, LOOK_DAYS, HOLDING_DAYS, WRITING_DAYS)


def derive(
    spark: SparkSession,
    tables: Tables,
    derived: Derived,
    before: Mapping[date, str],
    is_closed: Callable[[date], bool],
    now: datetime,
) -> Changed:
    """Derive the days that have changed since `before`: first it is every day. A day that its source no
    longer has, as `reparse` may leave it, is removed; not so if the source's was dropped as old.
    """
    digests = _digests(spark, tables, derived)
    kept = _kept(derived, last_digests(spark, tables))
    due = {
        day: found
        for day, found in digests.items()
        if day not in kept and found != before.get(day) and is_closed(day)
    }
    days = sorted(due)
    gone = files_of_days(spark, tables, derived.table).keys() - digests.keys() - kept
    if gone:
        delta.remove_days(spark, tables, derived.table, gone)
    for begin in range(0, len(days), _AT_ONCE_DAYS):
        some = {day: due[day] for day in days[begin : begin + _AT_ONCE_DAYS]}
        sources = [_days_of(spark, tables, source, min(some), max(some)) for source in derived.sources]
        rows = derived.rows(*(source.where(_among(some)) for source in sources)).repartition("day")
        in_order = rows.sortWithinPartitions("day", *derived.table.order)
        delta.replace_each(in_order, tables, derived.table, some)
        note(spark, tables, [Entry(derived.table, day, found) for day, found in some.items()], now)
    return Changed(len(days), len(gone))


def read_derived(
    spark: SparkSession,
    tables: Tables,
    derived: Derived,
    first: date | None = None,
    last: date | None = None,
) -> DataFrame:
    """Return the rows of the days from `first` to `last`, with the columns of the table.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    return _rows(derived, *_parts(spark, tables, derived, first, last))


def read_hours(spark: SparkSession, tables: Tables, first: date | None = None) -> DataFrame:
    """Return the hours of each volume from the day `first` on, with the columns of `forecast.series.hourly`.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    return as_hourly(read_derived(spark, tables, HOUR_DAYS, first))


def read_looks(spark: SparkSession, tables: Tables, first: date | None = None) -> DataFrame:
    """Return the last look at each volume in each hour from the day `first` on, with the columns of
    `forecast.looks.hourly_looks`.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    return as_hourly_looks(read_derived(spark, tables, LOOK_DAYS, first))


def read_ten_minutes(
    spark: SparkSession, tables: Tables, first: date | None = None
) -> tuple[DataFrame, DataFrame]:
    """Return the rows of table `ten_minutes` from the day `first` on, and with its columns the samples by
    which steps of ten minutes are simulated: these rows, and on days that are not derived every sample,
    which needs no work of its own.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    parts = _parts(spark, tables, TEN_MINUTE_DAYS, first)
    return _rows(TEN_MINUTE_DAYS, *parts), _rows(replace(TEN_MINUTE_DAYS, rows=_as_steps), *parts)


def _parts(
    spark: SparkSession, tables: Tables, derived: Derived, first: date | None, last: date | None = None
) -> tuple[Sequence[DataFrame], DataFrame | None]:
    """Return the sources of the rows that have yet to be made, and the rows that are stored, None if no day
    is.
    """
    sources = [_days_of(spark, tables, source, first, last) for source in derived.sources]
    digests = _digests(spark, tables, derived)
    noted = last_digests(spark, tables)
    ready, kept = noted[derived.table.name], _kept(derived, noted)
    changed = [day for day, found in digests.items() if day not in kept and found != ready.get(day)]
    unchanged = (digests.keys() | kept) - set(changed)
    if not unchanged:
        return sources, None
    stored = delta.of_days(delta.known(spark, tables, derived.table), first, last)
    return [source.where(_among(changed)) for source in sources], stored.where(_among(unchanged))


def _days_of(
    spark: SparkSession, tables: Tables, source: Table | Derived, first: date | None, last: date | None
) -> DataFrame:
    if isinstance(source, Derived):
        return read_derived(spark, tables, source, first, last)
    return delta.of_days(delta.known(spark, tables, source), first, last)


def _rows(derived: Derived, sources: Sequence[DataFrame], stored: DataFrame | None) -> DataFrame:
    made = derived.rows(*sources).select(*derived.table.schema.fieldNames())
    return made if stored is None else made.unionByName(stored)


def _as_steps(usage: DataFrame) -> DataFrame:
    missing = [field for field in TEN_MINUTES.schema if field.name not in usage.columns]
    return usage.withColumns({field.name: F.lit(None).cast(field.dataType) for field in missing})


def _digests(spark: SparkSession, tables: Tables, derived: Derived) -> dict[date, str]:
    """Return the digest of the files that each day is made of."""
    first, *others = (files_of_days(spark, tables, table) for table in derived.origins)
    return {
        day: digest([*files, *(name for other in others for name in other.get(day, []))])
        for day, files in first.items()
    }


def _kept(derived: Derived, noted: Mapping[str, Mapping[date, str]]) -> set[date]:
    """Return the days that a source has dropped as old, and of which the derived table has what they were."""
    return {
        day
        for origin in derived.origins
        for day, found in noted.get(origin.name, {}).items()
        if found == DROPPED and day in noted.get(derived.table.name, {})
    }


def _among(days: Collection[date]) -> Column:
    return F.col("day").isin(list(days))
