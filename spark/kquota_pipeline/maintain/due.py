"""Whether anything is due, by what a run notes at its end: the version of each table, and the days that were
open in it.

The files of a table are found by jobs of Spark's, which take seconds for each table. To read the log from the
noted version on takes milliseconds, and names the days that were touched. The note is a property of the table
`maintained`, so that a copy of the tables has it; versions and ids of commits are the same there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Protocol

from pyspark.sql import SparkSession

from kquota_pipeline import delta
from kquota_pipeline.maintain.days import digest, files_of_days, last_digests
from kquota_pipeline.tables import ALL, INGESTED, MAINTAINED, Table, Tables

MANY_FILES = 16
"""An open day with more files than these is compacted."""
_SETTLED = "kquota.settled"
_WATCHED = tuple(table for table in ALL if table is not MAINTAINED)


class Settings(Protocol):
    """Settings of a run that decide when something is due."""

    @property
    def vacuum_after(self) -> timedelta:
        """How often files that are not needed are deleted."""

    def first_kept(self, table: Table, now: datetime) -> date:
        """Return the first day of a table that is not dropped."""

    def is_closed(self, day: date, now: datetime) -> bool:
        """Whether no more rows of a UTC day are expected."""


@dataclass(frozen=True)
class Seen:
    """A table as a run left it: Delta's version, the id of its commit, the first day (ISO), and the number of
    files of each day that is not in order.
    """

    version: int
    commit: str
    first_day: str | None
    open: Mapping[str, int]


@dataclass(frozen=True)
class Settled:
    """The tables as a run left them, and when files that are not needed were last deleted."""

    deleted_at: datetime
    seen: Mapping[str, Seen]


def settled(spark: SparkSession, tables: Tables) -> Settled | None:
    """Return what the last run noted; None where none has, or a version that notes otherwise."""
    text = delta.noted(spark, tables, MAINTAINED, _SETTLED)
    if text is None:
        return None
    try:
        found = json.loads(text)
        seen = {name: Seen(**one) for name, one in found["seen"].items()}
        return Settled(datetime.fromisoformat(found["deleted_at"]), seen)
    except (ValueError, TypeError, KeyError):
        return None


def settle(spark: SparkSession, tables: Tables, deleted_at: datetime) -> None:
    """Note the tables as they are now."""
    in_order = last_digests(spark, tables)
    seen = {}
    for table in _WATCHED:
        # Before the files: what is appended in between is looked at twice, and not missed.
        commit = delta.commits_from(spark, tables, table, delta.newest_version(spark, tables, table))[0]
        files = files_of_days(spark, tables, table)
        noted = in_order[table.name]
        open_days = {
            day.isoformat(): len(names)
            for day, names in files.items()
            if table in INGESTED and noted.get(day) != digest(names)
        }
        first_day = min(files).isoformat() if files else None
        seen[table.name] = asdict(Seen(commit.version, commit.id, first_day, open_days))
    note = {"deleted_at": deleted_at.isoformat(), "seen": seen}
    text = json.dumps(note)
    delta.retried(lambda: delta.set_property(spark, tables, MAINTAINED, _SETTLED, text))


def due(
    spark: SparkSession, tables: Tables, before: Settled | None, now: datetime, settings: Settings
) -> str | None:
    """Return why the tables have to be looked through, for people; None if nothing is due."""
    if before is None:
        return "no run has noted the state of these tables"
    if before.deleted_at + settings.vacuum_after <= now:
        return f"files that are not needed were last deleted at {before.deleted_at:%Y-%m-%d %H:%M}"
    for table in _WATCHED:
        if reason := _due(spark, tables, table, before.seen.get(table.name), now, settings):
            return f"{table.name}: {reason}"
    return None


def _due(
    spark: SparkSession, tables: Tables, table: Table, seen: Seen | None, now: datetime, settings: Settings
) -> str | None:
    commits = [] if seen is None else delta.commits_from(spark, tables, table, seen.version)
    if seen is None or not commits:
        return "is new, or was put back to an earlier state"
    first, *later = commits
    if (first.version, first.id) != (seen.version, seen.commit):
        return "is another one than the last run saw, or has had no run for a month"
    if later and table not in INGESTED:
        return "was written to by others"
    files = Counter({date.fromisoformat(day): count for day, count in seen.open.items()})
    for commit in later:
        files.update(commit.days)
    days = {*files, *({date.fromisoformat(seen.first_day)} if seen.first_day else ())}
    if days and min(days) < (first_kept := settings.first_kept(table, now)):
        return f"days before {first_kept} are dropped"
    for day, count in files.items():
        if settings.is_closed(day, now):
            return f"{day} is closed, and not in order"
        if count > MANY_FILES:
            return f"{day} has {count} files"
    return None
