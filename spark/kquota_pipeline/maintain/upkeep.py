"""One run of the upkeep over all tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from pyspark.sql import SparkSession

from kquota_pipeline import delta
from kquota_pipeline.maintain.closing import close_day
from kquota_pipeline.maintain.days import DROPPED, Entry, digest, files_of_days, last_digests, note
from kquota_pipeline.maintain.derived import ALL_DERIVED, derive
from kquota_pipeline.maintain.due import MANY_FILES, due, settle, settled
from kquota_pipeline.tables import ALL, HOURS, INGESTED, MAINTAINED, RECORDS, USAGE, Table, Tables

# A run that is killed does again what it has not noted.
_NOTED_AT_ONCE = 100


@dataclass(frozen=True)
class Upkeep:
    """The settings of a run."""

    retention_days: int = 731
    """Days older than this are dropped, so that two years and their seasons can be compared."""
    raw_retention_days: int = 30
    """Likewise of the records as they came, from which the other tables can be made again, and of samples.
    The tables that the pipeline derives from samples keep such days.
    """
    closed_after: timedelta = timedelta(hours=2)
    """How long after its end a day is taken for complete."""
    vacuum_after: timedelta = timedelta(days=7)
    """Files that the table no longer needs are deleted when they are this old: readers may have them open.
    It is also how often they are looked for, which costs more than anything else on a day of few brokers.
    """

    def first_kept(self, table: Table, now: datetime) -> date:
        """Return the first day of a table that is not dropped."""
        days = self.retention_days
        if table in (RECORDS, USAGE):
            days = min(days, self.raw_retention_days)
        return (now - timedelta(days=days)).date()

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

    Where nothing is due it ends after a look at the logs of the tables. It may run at the same time as an
    ingest.

    Raises:
        NotATable: there are no tables at that place, or others.
    """
    settings = settings or Upkeep()
    before = settled(spark, tables)
    reason = due(spark, tables, before, now, settings)
    if reason is None:
        report("nothing is due")
        return Done(derived_days={derived.table.name: 0 for derived in ALL_DERIVED})
    report(f"{reason}: all tables are looked through")
    done = _do(spark, tables, now, settings, report)
    deleted_at = now if before is None else before.deleted_at
    if deleted_at + settings.vacuum_after <= now:
        _delete_files(spark, tables, settings)
        deleted_at = now
    settle(spark, tables, deleted_at)
    return done


def _do(
    spark: SparkSession,
    tables: Tables,
    now: datetime,
    settings: Upkeep,
    report: Callable[[str], None],
) -> Done:
    delta.read(spark, tables, USAGE)
    # Those that it derives are there from the first run on.
    for table in ALL:
        delta.create(spark, tables, table)
    done = Done()
    for table in ALL:
        # Of samples those alone of which nothing derived is kept either: a pipeline that has not run for long
        # has many days to derive.
        first_kept = settings.first_kept(HOURS if table is USAGE else table, now)
        _drop_old_days(spark, tables, table, first_kept, done, report)
    before = last_digests(spark, tables)
    for table in INGESTED:
        _put_in_order(spark, tables, table, before[table.name], now, settings, done, report)
    for derived in ALL_DERIVED:
        name = derived.table.name
        changed = derive(spark, tables, derived, before[name], lambda day: settings.is_closed(day, now), now)
        done.derived_days[name] = changed.derived
        if changed.derived:
            report(f"{name} of {changed.derived} days: derived")
        if changed.removed:
            report(f"{name} of {changed.removed} days: removed, as their source has none of them any more")
    dropped = _drop_old_days(spark, tables, USAGE, settings.first_kept(USAGE, now), done, report)
    note(spark, tables, [Entry(USAGE, day, DROPPED) for day in dropped], now)
    return done


def _delete_files(spark: SparkSession, tables: Tables, settings: Upkeep) -> None:
    """Delete the files that no table needs any more, those that a killed run has left included."""
    if any(len(files) > 1 for files in files_of_days(spark, tables, MAINTAINED).values()):
        # Its notes come few by few.
        spark.sql(f"OPTIMIZE delta.`{tables.location(MAINTAINED)}`")
    hours = int(settings.vacuum_after.total_seconds() // 3600)
    for table in ALL:
        spark.sql(f"VACUUM delta.`{tables.location(table)}` RETAIN {hours} HOURS")


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
    entries: list[Entry] = []
    for day, files in files_of_days(spark, tables, table).items():
        if digest(files) == before.get(day):
            continue
        if settings.is_closed(day, now):
            rows, duplicates = close_day(spark, tables, table, day)
            files_now = files_of_days(spark, tables, table).get(day, [])
            entries.append(Entry(table, day, digest(files_now), rows, duplicates))
            done.closed_days += 1
            done.duplicates += duplicates
            report(f"{table.name} {day}: {rows:,} rows in order, {duplicates:,} duplicates removed")
        elif len(files) > MANY_FILES:
            spark.sql(f"OPTIMIZE delta.`{tables.location(table)}` WHERE day = '{day.isoformat()}'")
            done.compacted_days += 1
            report(f"{table.name} {day}: {len(files)} files compacted")
        if len(entries) == _NOTED_AT_ONCE:
            note(spark, tables, entries, now)
            entries.clear()
    note(spark, tables, entries, now)


def _drop_old_days(
    spark: SparkSession,
    tables: Tables,
    table: Table,
    first_kept: date,
    done: Done,
    report: Callable[[str], None],
) -> list[date]:
    old = [day for day in files_of_days(spark, tables, table) if day < first_kept]
    if old:
        delta.remove_days(spark, tables, table, old)
        done.dropped_days += len(old)
        report(f"{table.name}: {len(old)} days before {first_kept} dropped")
    return old
