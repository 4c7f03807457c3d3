"""One run of the upkeep over all tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from pyspark.sql import SparkSession

from kquota_pipeline import delta
from kquota_pipeline.maintain.closing import close_day
from kquota_pipeline.maintain.days import digest, files_of_days, last_digests, note
from kquota_pipeline.maintain.derived import ALL_DERIVED, derive
from kquota_pipeline.tables import (
    ALL,
    BY_NAME,
    INGESTED,
    MAINTAINED,
    RECORDS,
    USAGE,
    Table,
    Tables,
)

_MANY_FILES = 16


@dataclass(frozen=True)
class Upkeep:
    """The settings of a run."""

    retention_days: int = 400
    """Days older than this are dropped, so that a year and its season can be compared."""
    raw_retention_days: int = 30
    """Likewise of the records as they came, from which the other tables can be made again."""
    closed_after: timedelta = timedelta(hours=2)
    """How long after its end a day is taken for complete."""
    vacuum_after: timedelta = timedelta(days=7)
    """Files that the table no longer needs are deleted when they are this old: readers may have them open."""

    def is_closed(self, day: date, now: datetime) -> bool:
        """Whether no more rows of a UTC day are expected."""
        end = datetime.combine(day + timedelta(days=1), time.min, UTC)
        return end + self.closed_after <= now


@dataclass
class Done:
    """The work of a run."""

    closed_days: int = 0
    duplicates: int = 0
    derived_days: dict[str, int] = field(default_factory=dict)
    """By derived table."""
    compacted_days: int = 0
    dropped_days: int = 0
    rewritten: set[str] = field(default_factory=set)
    """The tables that have left files behind, and may have some from before."""

    def summary(self) -> str:
        """Return it as one sentence."""
        derived = [f"{name} of {days}" for name, days in self.derived_days.items()]
        return (
            f"{self.closed_days} closed days put in order, {self.duplicates:,} duplicate rows removed, "
            f"{', '.join(derived)} days derived, "
            f"{self.compacted_days} open days compacted, {self.dropped_days} days dropped"
        )


def maintain(
    spark: SparkSession,
    tables: Tables,
    now: datetime,
    settings: Upkeep | None = None,
    report: Callable[[str], None] = lambda _line: None,
) -> Done:
    """Close finished days, compact open days, derive tables, drop and delete expired days and files.

    It leaves unchanged days alone: a second run right after the first does nothing. It
    may run at the same time as an ingest.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    settings = settings or Upkeep()
    delta.read(spark, tables, USAGE)
    # Those that it derives are there from the first run on.
    for table in ALL:
        delta.create(spark, tables, table)
    done = Done()
    _drop_old_days(spark, tables, now, settings, done, report)
    before = last_digests(spark, tables)
    for table in INGESTED:
        _put_in_order(spark, tables, table, before[table.name], now, settings, done, report)
    for derived in ALL_DERIVED:
        name = derived.table.name
        changed = derive(spark, tables, derived, before[name], lambda day: settings.is_closed(day, now), now)
        done.derived_days[name] = changed.derived
        if any(changed):
            done.rewritten.add(name)
        if changed.derived:
            report(f"{name} of {changed.derived} days: derived")
        if changed.removed:
            report(f"{name} of {changed.removed} days: removed, as their source has none of them any more")
    if any(len(files) > 1 for files in files_of_days(spark, tables, MAINTAINED).values()):
        # Its notes come one by one, and only a run appends to it.
        spark.sql(f"OPTIMIZE delta.`{tables.location(MAINTAINED)}`")
        done.rewritten.add(MAINTAINED.name)
    for name in sorted(done.rewritten):
        hours = int(settings.vacuum_after.total_seconds() // 3600)
        spark.sql(f"VACUUM delta.`{tables.location(BY_NAME[name])}` RETAIN {hours} HOURS")
    return done


def _put_in_order(
    spark: SparkSession,
    tables: Tables,
    table: Table,
    before: Mapping[date, str],
    now: datetime,
    settings: Upkeep,
    done: Done,
    report: Callable[[str], None],
) -> None:
    for day, files in files_of_days(spark, tables, table).items():
        if digest(files) == before.get(day):
            continue
        if settings.is_closed(day, now):
            rows, duplicates = close_day(spark, tables, table, day)
            files_now = files_of_days(spark, tables, table).get(day, [])
            note(spark, tables, table, {day: digest(files_now)}, now, rows, duplicates)
            done.closed_days += 1
            done.rewritten.add(table.name)
            done.duplicates += duplicates
            report(f"{table.name} {day}: {rows:,} rows in order, {duplicates:,} duplicates removed")
        elif len(files) > _MANY_FILES:
            spark.sql(f"OPTIMIZE delta.`{tables.location(table)}` WHERE day = '{day.isoformat()}'")
            done.compacted_days += 1
            done.rewritten.add(table.name)
            report(f"{table.name} {day}: {len(files)} files compacted")


def _drop_old_days(
    spark: SparkSession,
    tables: Tables,
    now: datetime,
    settings: Upkeep,
    done: Done,
    report: Callable[[str], None],
) -> None:
    for table in ALL:
        days = settings.raw_retention_days if table is RECORDS else settings.retention_days
        first_kept = (now - timedelta(days=days)).date()
        old = [day for day in files_of_days(spark, tables, table) if day < first_kept]
        if old:
            delta.remove_days(spark, tables, table, old)
            done.dropped_days += len(old)
            done.rewritten.add(table.name)
            report(f"{table.name}: {len(old)} days before {first_kept} dropped")
