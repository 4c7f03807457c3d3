"""Operations on a Delta table, in SQL and DataFrames."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from kquota_pipeline.tables import Table, Tables

T = TypeVar("T")
_VERSION = "kquota.version"
_ATTEMPTS = 4
_FILES = {"AddFile": 1, "RemoveFile": -1}  # Delta's classes
_OVERTAKEN = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED")
_DAY_FILE = re.compile(r"(?:^|/)(day=(\d{4}-\d{2}-\d{2})/[^/]+)$")
# Without an index on the rest: its figures would cost more at each append than they ever save.
_SKIPPING_COLUMNS = ("cluster_id", "broker_id", "at")


class NotATable(Exception):
    """There is no table of that name, or one with other columns or of another version; the message
    names them and the place.
    """


def create(spark: SparkSession, tables: Tables, table: Table) -> None:
    """Make an empty table where there is none yet; one that is there stays as it is.

    Raises:
        NotATable: the one that is there has other columns, or is of another version than ours.
    """
    if exists(spark, tables, table):
        # The statement would cost more than the look.
        known(spark, tables, table)
        return
    columns = ", ".join(f"`{name}` {kind.simpleString()} COMMENT '{_quoted(what)}'"
                        for name, kind, what in table.columns)  # fmt: skip
    indexed = ",".join(name for name, _, _ in table.columns if name in _SKIPPING_COLUMNS)
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS delta.`{tables.location(table)}` ({columns}) USING DELTA "
        f"PARTITIONED BY (day) COMMENT '{_quoted(table.what)}' TBLPROPERTIES "
        f"('delta.dataSkippingStatsColumns' = '{indexed}', '{_VERSION}' = '{table.version}')"
    )
    known(spark, tables, table)


def last_transaction(spark: SparkSession, tables: Tables, table: Table, application: str) -> int | None:
    """Return the newest version of an application that is in a table (`append`); None without any.

    It is what Delta itself compares a new version with. The table's history forgets after a month.
    """
    version = _snapshot(spark, tables, table).transactions().get(application)
    return int(version.get()) if version.isDefined() else None


def newest_version(spark: SparkSession, tables: Tables, table: Table) -> int:
    """Return the newest version of Delta's of a table; -1 where there is none."""
    return int(_snapshot(spark, tables, table).version())


@dataclass(frozen=True)
class Commit:
    """A version of Delta's of a table, with an id that no other commit has. `days` are those of which it
    added or removed files, each with the number of files added less that of those removed.
    """

    version: int
    id: str
    days: Mapping[date, int]


def commits_from(spark: SparkSession, tables: Tables, table: Table, version: int) -> list[Commit]:
    """Return this version of a table and those after it, as far as its log still has them; none where there
    is no table.

    It reads the log's own files, which costs a hundredth of finding a table's files.
    """
    found = []
    try:
        changes = _log(spark, tables, table).getChanges(version, False)
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() != "FileNotFoundException":
            raise
        return []
    while changes.hasNext():
        change = changes.next()
        actions = change._2()
        found.append(_commit(change._1(), [actions.apply(n) for n in range(actions.size())]))
    return found


def _commit(version: int, actions: Iterable[Any]) -> Commit:
    identity, days = "", Counter[date]()
    for action in actions:
        kind = action.getClass().getSimpleName()
        if kind == "CommitInfo" and action.txnId().isDefined():
            identity = str(action.txnId().get())
        if (count := _FILES.get(kind)) and (match := _DAY_FILE.search(action.path())):
            days[date.fromisoformat(match[2])] += count
    return Commit(version, identity, days)


def properties(spark: SparkSession, tables: Tables, table: Table) -> dict[str, str]:
    """Return the properties of a table."""
    rows = spark.sql(f"SHOW TBLPROPERTIES delta.`{tables.location(table)}`").collect()
    return {row["key"]: str(row["value"]) for row in rows}


def noted(spark: SparkSession, tables: Tables, table: Table, key: str) -> str | None:
    """Return one property, without a statement of SQL; None where there is none, or no table."""
    value = _snapshot(spark, tables, table).metadata().configuration().get(key)
    return str(value.get()) if value.isDefined() else None


def set_property(spark: SparkSession, tables: Tables, table: Table, key: str, value: str) -> None:
    """Set a property of a table."""
    spark.sql(
        f"ALTER TABLE delta.`{tables.location(table)}` SET TBLPROPERTIES ('{key}' = '{_quoted(value)}')"
    )


def _log(spark: SparkSession, tables: Tables, table: Table) -> Any:
    """Return a table's log as Delta itself has it: some of it has no words in SQL."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, tables.location(table))


def _snapshot(spark: SparkSession, tables: Tables, table: Table) -> Any:
    """Return the newest state of a table, likewise."""
    jvm: Any = spark._jvm
    nothing = jvm.scala.Option.empty()
    return _log(spark, tables, table).update(False, nothing, nothing)


def known(spark: SparkSession, tables: Tables, table: Table) -> DataFrame:
    """Return a table as `read` does, after a look at its version.

    Raises:
        NotATable: there is none, it has other columns, or is of another version than ours.
    """
    location = tables.location(table)
    frame = _loaded(spark, location, table)
    version = properties(spark, tables, table).get(_VERSION, "none")
    if version != str(table.version):
        raise NotATable(
            f"{location}: table {table.name} is of version {version}, and this kquota-pipeline knows version "
            f"{table.version} alone: use the one that made it, or name another folder and ingest into it"
        )
    return _with_columns(frame, location, table)


def files_by_day(frame: DataFrame) -> dict[date, list[str]]:
    """Return the names of the files of each day of a table, within its folder: a copy has the same. No file
    is opened.
    """
    found: dict[date, list[str]] = {}
    for path in frame.inputFiles():
        if match := _DAY_FILE.search(path):
            found.setdefault(date.fromisoformat(match[2]), []).append(match[1])
    return found


def read(spark: SparkSession, tables: Tables, table: Table, version: int | None = None) -> DataFrame:
    """Return a table as it is now, or as it was in a version of Delta's, with the columns of `table.schema`
    in that order.

    Raises:
        NotATable: there is none, or it has other columns.
    """
    location = tables.location(table)
    return _with_columns(_loaded(spark, location, table, version), location, table)


def _loaded(spark: SparkSession, location: str, table: Table, version: int | None = None) -> DataFrame:
    try:
        reader = spark.read.format("delta")
        return (reader if version is None else reader.option("versionAsOf", version)).load(location)
    except AnalysisException as error:
        raise NotATable(f"{location}: there is no table {table.name} ({error.getCondition()})") from error


def _with_columns(frame: DataFrame, location: str, table: Table) -> DataFrame:
    there = {field.name: field.dataType for field in frame.schema.fields}
    for name, kind, _ in table.columns:
        if there.get(name) != kind:
            found = there[name].simpleString() if name in there else "missing"
            raise NotATable(
                f"{location}: column {name} of table {table.name} is {found}, not {kind.simpleString()}"
            )
    return frame.select(*table.schema.fieldNames())


def exists(spark: SparkSession, tables: Tables, table: Table) -> bool:
    """Return whether there is such a table."""
    try:
        _loaded(spark, tables.location(table), table)
    except NotATable:
        return False
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
            if attempt == _ATTEMPTS or not any(word in str(error) for word in _OVERTAKEN):
                raise
    raise AssertionError("unreachable")  # pragma: no cover


def _writer(rows: DataFrame, table: Table) -> DataFrameWriter:
    return rows.select(*table.schema.fieldNames()).write.format("delta")


def of_days(frame: DataFrame, first: date | None = None, last: date | None = None) -> DataFrame:
    """Return the rows of the days from `first` to `last`, both included; None is no bound."""
    if first is not None:
        frame = frame.where(F.col("day") >= F.lit(first))
    if last is not None:
        frame = frame.where(F.col("day") <= F.lit(last))
    return frame


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
