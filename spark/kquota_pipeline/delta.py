"""Operations on a Delta table, in SQL and DataFrames."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from kquota_pipeline.tables import RECORDS, Table, Tables
from kquota_pipeline.tables.table import Column

T = TypeVar("T")
_VERSION = "kquota.version"
_ATTEMPTS = 4
_ONE_DAY = timedelta(days=1)
# At midnight a clock that is ahead by some minutes is in the next day.
_AHEAD = _ONE_DAY
_DAY_FOLDER = re.compile(r"/day=(\d{4}-\d{2}-\d{2})/")
# Without an index on the rest: its figures would cost more at each append than they ever save.
_SKIPPING_COLUMNS = ("cluster_id", "broker_id", "at")


class NotATable(Exception):
    """There is no table of that name, or one with other columns; the message names them and the place."""


def create(spark: SparkSession, tables: Tables, table: Table) -> None:
    """Make an empty table where there is none yet; one that is there keeps its rows, and gets our version,
    the columns that it lacks, and our comments.

    Raises:
        NotATable: the one that is there has other columns, or is of a later version than ours.
    """
    location = tables.location(table)
    columns = ", ".join(map(_declared, table.columns))
    indexed = ",".join(name for name, _, _ in table.columns if name in _SKIPPING_COLUMNS)
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS delta.`{location}` ({columns}) USING DELTA PARTITIONED BY (day) "
        f"COMMENT '{_quoted(table.what)}' TBLPROPERTIES "
        f"('delta.dataSkippingStatsColumns' = '{indexed}', '{_VERSION}' = '{table.version}')"
    )
    read(spark, tables, table)
    version = _known_version(spark, tables, table)
    _describe(spark, tables, table)
    if version < table.version:
        spark.sql(f"ALTER TABLE delta.`{location}` SET TBLPROPERTIES ('{_VERSION}' = '{table.version}')")


def _declared(column: Column) -> str:
    name, kind, what = column
    return f"`{name}` {kind.simpleString()} COMMENT '{_quoted(what)}'"


def _describe(spark: SparkSession, tables: Tables, table: Table) -> None:
    """Add the columns that a table lacks, and set the comments that differ from ours; usually there are
    none: each change is a version of the table.
    """
    location = tables.location(table)
    fields = spark.read.format("delta").load(location).schema.fields
    found = {field.name: field.metadata.get("comment") for field in fields}
    if lacking := [column for column in table.columns if column[0] not in found]:
        added = ", ".join(map(_declared, lacking))
        spark.sql(f"ALTER TABLE delta.`{location}` ADD COLUMNS ({added})")
    for name, _, what in table.columns:
        if name in found and found[name] != what:
            spark.sql(f"ALTER TABLE delta.`{location}` ALTER COLUMN `{name}` COMMENT '{_quoted(what)}'")
    if _snapshot(spark, tables, table).metadata().description() != table.what:
        spark.sql(f"COMMENT ON TABLE delta.`{location}` IS '{_quoted(table.what)}'")


def last_transaction(spark: SparkSession, tables: Tables, table: Table, application: str) -> int | None:
    """Return the newest version of an application that is in a table (`append`); None without any.

    It is what Delta itself compares a new version with. The table's history forgets after a month.
    """
    version = _snapshot(spark, tables, table).transactions().get(application)
    return int(version.get()) if version.isDefined() else None


def newest_version(spark: SparkSession, tables: Tables, table: Table) -> int:
    """Return the newest version of Delta's of a table."""
    return int(_snapshot(spark, tables, table).version())


def _snapshot(spark: SparkSession, tables: Tables, table: Table) -> Any:
    """Return the newest state of a table as Delta itself has it: some of it has no words in SQL."""
    jvm: Any = spark._jvm
    nothing = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, tables.location(table))
    return log.update(False, nothing, nothing)


def known(spark: SparkSession, tables: Tables, table: Table) -> DataFrame:
    """Return a table as `read` does, after a look at its version.

    Raises:
        NotATable: there is none, it has other columns, or is of a later version than ours.
    """
    frame = read(spark, tables, table)
    _known_version(spark, tables, table)
    return frame


def opened(spark: SparkSession, tables: Tables, table: Table) -> DataFrame:
    """Return a table for an analysis: as `known` does, without rows of days that are still to come.

    Earlier versions took records of agents whose clocks were far ahead. One such row would be the end of
    every series. A line on standard error says once how many rows are left out. Tables without `records`, as
    a demonstration's, are of any time.

    Raises:
        NotATable: as `known`.
    """
    frame = known(spark, tables, table)
    last = datetime.now(UTC).date() + _AHEAD
    if not of_days(frame, last + _ONE_DAY).inputFiles():
        return frame
    # Brokers give records their time, and this machine's clock may be behind theirs.
    arrived = files_by_day(read(spark, tables, RECORDS)) if exists(spark, tables, RECORDS) else ()
    if not arrived:
        return frame
    last = max(last, max(arrived) + _AHEAD)
    later = of_days(frame, last + _ONE_DAY).groupBy("day").count().collect()
    if later:
        _say_once(
            f"{tables.location(table)}: {sum(row['count'] for row in later):,} rows of days after {last} are "
            "left out, which came with a clock that was ahead; `kquota-pipeline reparse` removes them where "
            "their records are still kept"
        )
    return of_days(frame, last=last)


def files_by_day(frame: DataFrame) -> dict[date, list[str]]:
    """Return the names of the files of each day of a table. No file is opened."""
    found: dict[date, list[str]] = {}
    for name in frame.inputFiles():
        if match := _DAY_FOLDER.search(name):
            found.setdefault(date.fromisoformat(match[1]), []).append(name)
    return found


@cache
def _say_once(line: str) -> None:
    """Several parts of one analysis read the same table."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _known_version(spark: SparkSession, tables: Tables, table: Table) -> int:
    """Return the version that a table notes; 0 of one from before there were versions."""
    location = tables.location(table)
    rows = spark.sql(f"SHOW TBLPROPERTIES delta.`{location}`").collect()
    version = next((int(row["value"]) for row in rows if row["key"] == _VERSION), 0)
    if version > table.version:
        raise NotATable(
            f"{location}: table {table.name} is of version {version}, made by a later kquota-pipeline; "
            f"this one knows version {table.version}: install the later one here, too"
        )
    return version


def read(spark: SparkSession, tables: Tables, table: Table, version: int | None = None) -> DataFrame:
    """Return a table as it is now, or as it was in a version of Delta's, with the columns of `table.schema`
    in that order; later columns, which one of an earlier kquota lacks, are null.

    Raises:
        NotATable: there is none, or it has other columns.
    """
    location = tables.location(table)
    try:
        reader = spark.read.format("delta")
        frame = (reader if version is None else reader.option("versionAsOf", version)).load(location)
    except AnalysisException as error:
        raise NotATable(f"{location}: there is no table {table.name} ({error.getCondition()})") from error
    there = {field.name: field.dataType for field in frame.schema.fields}
    for name, kind, _ in table.columns:
        if name in table.later and name not in there:
            frame = frame.withColumn(name, F.lit(None).cast(kind))
        elif there.get(name) != kind:
            found = there[name].simpleString() if name in there else "missing"
            raise NotATable(
                f"{location}: column {name} of table {table.name} is {found}, not {kind.simpleString()}"
            )
    return frame.select(*table.schema.fieldNames())


def exists(spark: SparkSession, tables: Tables, table: Table) -> bool:
    """Return whether there is such a table."""
    try:
        read(spark, tables, table)
    except NotATable as error:
        if isinstance(error.__cause__, AnalysisException):
            return False
        raise
    return True


def append(
    rows: DataFrame,
    tables: Tables,
    table: Table,
    transaction: tuple[str, int] | None = None,
    note: str | None = None,
) -> None:
    """Append rows with the columns of the table. With a transaction (application id, version), a version that
    the table has already seen of that application appends nothing. The table's history keeps the note.
    A table of an earlier version gets its later columns.
    """
    writer = _writer(rows, table).mode("append")
    if transaction is not None:
        application, version = transaction
        writer = writer.option("txnAppId", application).option("txnVersion", str(version))
    if note is not None:
        writer = writer.option("userMetadata", note)
    writer.save(tables.location(table))


def replace_day(rows: DataFrame, tables: Tables, table: Table, day: date) -> None:
    """Put `rows`, which all belong to `day`, in the place of that day's, in one transaction."""
    replace_days(rows, tables, table, day, day)


def replace_days(
    rows: DataFrame, tables: Tables, table: Table, first: date, last: date, others: Collection[date] = ()
) -> None:
    """Put `rows`, which all belong to the days from `first` to `last` or to the others, in the place of those
    days'.
    """
    where = f"day >= '{first.isoformat()}' AND day <= '{last.isoformat()}'"
    _replace(rows, tables, table, f"({where}) OR {_among(others)}" if others else where)


def replace_each(rows: DataFrame, tables: Tables, table: Table, days: Iterable[date]) -> None:
    """Put `rows`, which all belong to one of the days, in the place of those days'."""
    _replace(rows, tables, table, _among(days))


def remove_days(spark: SparkSession, tables: Tables, table: Table, days: Iterable[date]) -> None:
    """Delete the rows of the days."""
    spark.sql(f"DELETE FROM delta.`{tables.location(table)}` WHERE {_among(days)}")


def _among(days: Iterable[date]) -> str:
    return "day IN (" + ", ".join(f"'{day.isoformat()}'" for day in days) + ")"


def _replace(rows: DataFrame, tables: Tables, table: Table, where: str) -> None:
    writer = _writer(rows, table).mode("overwrite").option("replaceWhere", where)
    writer.save(tables.location(table))


def retried(change: Callable[[], T]) -> T:
    """Return the result of `change`; it is tried a few times if others change the same rows meanwhile."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return change()
        except Exception as error:
            # The exception has no class of its own in Python.
            if attempt == _ATTEMPTS or "DELTA_CONCURRENT" not in str(error):
                raise
    raise AssertionError("unreachable")  # pragma: no cover


def _writer(rows: DataFrame, table: Table) -> DataFrameWriter:
    return rows.select(*table.schema.fieldNames()).write.format("delta").option("mergeSchema", "true")


def of_days(frame: DataFrame, first: date | None = None, last: date | None = None) -> DataFrame:
    """Return the rows of the days from `first` to `last`, both included; None is no bound."""
    if first is not None:
        frame = frame.where(F.col("day") >= F.lit(first))
    if last is not None:
        frame = frame.where(F.col("day") <= F.lit(last))
    return frame


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
