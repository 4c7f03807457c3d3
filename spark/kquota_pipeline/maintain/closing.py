"""Putting a day in order: duplicates removed, rows sorted, few files."""

from __future__ import annotations

import math
from datetime import date
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from kquota_pipeline import delta
from kquota_pipeline.tables import Table, Tables

_ROWS_PER_TASK = 500_000
# A partition of the topic may have all records of a thousand brokers, which are too many for one task. A
# window holds all rows of its key: these are some ten megabytes.
_OFFSETS_TOGETHER = 10_000


def in_order(rows: DataFrame, table: Table, files: int) -> DataFrame:
    """Return the rows, each identity once, sorted in this many parts.

    Rows of one identity are of one record that came twice, so it does not matter which of them stays.
    """
    # One shuffle for both: all rows of an identity are of one broker, or of one stretch of offsets.
    key, order = list(table.identity[:2]), list(table.order)
    if "kafka_offset" in table.identity:
        rows = rows.withColumn("_stretch", F.floor(F.col("kafka_offset") / _OFFSETS_TOGETHER))
        key.append("_stretch")
        order.insert(order.index("kafka_offset"), "_stretch")
    parts = rows.repartition(files, *key)
    if not set(table.order) <= {*table.identity, "at"}:
        return parts.dropDuplicates(list(table.identity)).sortWithinPartitions(*order).drop("_stretch")
    # Rows of one identity have one time, so in order they are neighbours: one sort serves both. A window
    # sorts by its key first: if its order named the key again, Spark would not see that its rows are in the
    # table's order, and would sort a second time. The first row of a partition has none before it.
    in_key = [name for name in order if name not in key]
    rest = [name for name in table.identity[2:] if name not in order]
    in_turn = Window.partitionBy(*key).orderBy(*in_key, *rest)
    same = [F.col(name).eqNullSafe(F.lag(name).over(in_turn)) for name in table.identity[2:]]
    marked = parts.withColumn("_again", reduce(and_, same, F.row_number().over(in_turn) > 1))
    return marked.where(~F.col("_again")).sortWithinPartitions(*order).drop("_again", "_stretch")


def close_day(spark: SparkSession, tables: Tables, table: Table, day: date) -> tuple[int, int]:
    """Put a day in order, in one transaction; return how many rows it has and how many were removed.

    A day that is appended to meanwhile is read again, a few times.
    """

    def attempt() -> tuple[int, int]:
        rows = delta.of_days(delta.read(spark, tables, table), day, day)
        before = rows.count()
        delta.replace_day(in_order(rows, table, _parts(spark, before, table)), tables, table, day)
        after = delta.of_days(delta.read(spark, tables, table), day, day).count()
        return after, before - after

    return delta.retried(attempt)


def _parts(spark: SparkSession, rows: int, table: Table) -> int:
    of_tasks = min(spark.sparkContext.defaultParallelism, math.ceil(rows / _ROWS_PER_TASK))
    return max(1, of_tasks, math.ceil(rows / table.rows_per_file))
