"""The tables as commands read them, since a day: one by one, or as a history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from kquota_pipeline.accounting.attribution import BEFORE_DAYS
from kquota_pipeline.accounting.topics import TOPIC_RATES
from kquota_pipeline.cli.options import day_named, fail
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import NotATable, exists, known, of_days
from kquota_pipeline.history import History
from kquota_pipeline.maintain.days import files_of_days
from kquota_pipeline.maintain.derived import (
    HOLDING_DAYS,
    WRITING_DAYS,
    read_derived,
    read_hours,
    read_looks,
    read_ten_minutes,
)
from kquota_pipeline.report.holders import DAYS
from kquota_pipeline.tables import CLIENTS, DECISIONS, EXPIRY, OPERATORS, TOPICS, USAGE, Table, Tables

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads tables from the day `first` on, None for all; ends the command if a table can't be used."""

    session: SparkSession
    place: Tables
    first: date | None

    def of(self, table: Table) -> DataFrame:
        """Return a table."""
        return self.made(lambda session, place, first: of_days(known(session, place, table), first))

    def made(self, read: Callable[[SparkSession, Tables, date | None], _Found]) -> _Found:
        """Return what a function of `maintain.derived` reads."""
        try:
            return read(self.session, self.place, self.first)
        except NotATable as error:
            fail(str(error))

    def if_there(self, table: Table) -> DataFrame | None:
        """Return a table, None where there is none: a demonstration has some of them alone."""
        return self.of(table) if exists(self.session, self.place, table) else None

    def looks(self) -> tuple[DataFrame | None, DataFrame | None]:
        """Return `topics` and `expiry`, the tables of agents that look at segments: both, or none."""
        topics, expiry = self.if_there(TOPICS), self.if_there(EXPIRY)
        return (None, None) if topics is None or expiry is None else (topics, expiry)


def reader(tables: str, spark: list[str] | None, since: str | None) -> Reader:
    """Start Spark, and return the reader of the tables at a place since a day; ends the command if that is
    not a day.
    """
    first = None if since is None else day_named(since, datetime.now(UTC).date(), "--since")
    return Reader(command_session("analysis", spark), Tables(tables), first)


def history_of(
    read: Reader, topics: str | None = None, *, in_steps: bool = False, with_looks: bool = False
) -> History:
    """Return the history with operators' rates by topic, if there are any; ends the command if a table can't
    be used.

    A simulation `in_steps` reads ten minutes, and a forecast needs it `with_looks`.
    """
    rates = None if topics is None else read.session.read.schema(TOPIC_RATES).parquet(topics)
    looks = read.looks()
    ten_minutes, steps = read.made(read_ten_minutes) if in_steps else (None, None)
    return History(
        read.of(USAGE),
        read.of(DECISIONS),
        read.of(CLIENTS),
        read.of(OPERATORS),
        *looks,
        read.made(read_hours),
        rates=rates,
        ten_minutes=ten_minutes,
        steps=steps,
        looks=read.made(read_looks) if with_looks and looks[1] is not None else None,
    )


def report_history(read: Reader, topics: str | None = None) -> History:
    """Return the same, with what `maintain` has derived for the account of the last days."""
    history = history_of(read, topics, in_steps=True, with_looks=True)
    days = files_of_days(read.session, read.place, USAGE)
    if not days:
        return history
    first = max(days) - timedelta(days=DAYS - 1 + BEFORE_DAYS)
    if read.first is not None:
        first = max(first, read.first)
    written = read_derived(read.session, read.place, WRITING_DAYS, first)
    # Without looks no day has holdings that are stored.
    held = None if history.topics is None else read_derived(read.session, read.place, HOLDING_DAYS, first)
    return replace(history, holdings=held, writings=written)
