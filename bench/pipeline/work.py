"""The work that is measured, once in Spark with the pipeline's own functions and once in DuckDB's SQL.

Each engine reads the columns it needs and computes the answer, no more: both leave out columns that the
answer does not use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.pipeline.data import TICK_SECONDS, day_folder
from bench.pipeline.lines import straight_line
from kquota.policy.limits import Limit, LimitType
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.backtest.statistics import decide_all, statistics, voting
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.maintain.closing import in_order
from kquota_pipeline.tables import USAGE

Answer = dict[str, float]
REPLAY, MANY_POLICIES, REGRESSION = "tick replay", "32 policies", "regression"
WORKS = (REPLAY, MANY_POLICIES, REGRESSION)
# The parts of the replay's cost: these are measured in Spark alone.
READING, CHOOSING = "its columns read", "its samples chosen"
PARTS = (READING, CHOOSING)
# Steps of `maintain` on the samples of days; also measured in Spark alone.
HOURS, CLOSING = "hours", "a day put in order"
UPKEEP = (HOURS, CLOSING)
MANY = 32


def policies(count: int) -> list[Policy]:
    """Return policies of one type: 5 and 15 % free, and others."""
    kind = LimitType.MIN_FREE_PERCENTAGE
    return [
        Policy(f"p{n:02d}", Limits(hard=Limit.of(kind, 5 + n % 4), soft=Limit.of(kind, 15 + n // 4)))
        for n in range(count)
    ]


def _replay_in_spark(usage: DataFrame, count: int) -> Answer:
    decided = decide_all(statistics(usage, TICK_SECONDS), policies(count))
    row = decided.agg(
        F.count("*").alias("ticks"),
        F.sum((F.col("state") == "PAUSE").cast("long")).alias("paused"),
        F.sum((F.col("state") == "OPEN").cast("long")).alias("opened"),
    ).collect()[0]
    return {"ticks": row.ticks, "paused": row.paused, "open": row.opened}


def _replay_in_duckdb(connection: duckdb.DuckDBPyConnection, files: str, count: int) -> Answer:
    levels = ", ".join(
        f"({float(p.limits.soft.level) / 100}, {float(p.limits.hard.level) / 100})"
        for p in policies(count)
        if p.limits is not None
    )
    row = connection.execute(f"""
        WITH extremes AS (
          SELECT cluster_id, epoch("at")::BIGINT // {TICK_SECONDS} AS tick,
            min((capacity_bytes - consumed_bytes) / capacity_bytes) AS ratio
          FROM read_parquet({files}) WHERE role = 'data' AND status = 'ok' AND capacity_bytes > 0
          GROUP BY ALL)
        SELECT count(*), count(*) FILTER (ratio <= hard), count(*) FILTER (ratio >= soft)
        FROM extremes, (VALUES {levels}) policies(soft, hard)""").fetchone()
    assert row is not None
    return {"ticks": row[0], "paused": row[1], "open": row[2]}


def _lines_in_spark(usage: DataFrame) -> Answer:
    row = straight_line(usage).agg(
        F.count("*").alias("n"),
        F.avg("slope_bytes_per_second").alias("slope"),
        F.avg(F.abs("slope_bytes_per_second")).alias("size"),
        F.avg("level_bytes").alias("level"),
    )
    found = row.collect()[0]
    return {"volumes": found.n, "slope": found.slope, "steepness": found.size, "level": found.level}


def _lines_in_duckdb(connection: duckdb.DuckDBPyConnection, files: str) -> Answer:
    row = connection.execute(f"""
        SELECT count(*), avg(slope), avg(abs(slope)), avg(level) FROM (
          SELECT cluster_id, broker_id, volume_name, avg(consumed_bytes) AS level,
            regr_slope(consumed_bytes::DOUBLE, epoch("at")) AS slope
          FROM read_parquet({files}) GROUP BY ALL)""").fetchone()
    assert row is not None
    return {"volumes": row[0], "slope": row[1], "steepness": row[2], "level": row[3]}


def _read_in_spark(usage: DataFrame) -> Answer:
    """Read figures that a replay needs, and group nothing."""
    free = (F.col("capacity_bytes") - F.col("consumed_bytes")) / F.col("capacity_bytes")
    row = usage.agg(F.min(free).alias("least"), F.max(F.unix_micros("at")).alias("last")).collect()[0]
    return {"least": row.least, "last": row.last}


def _hours_in_spark(usage: DataFrame) -> Answer:
    row = hourly(usage).agg(
        F.count("*").alias("hours"), F.sum("samples").alias("samples"), F.max("crest_bytes").alias("crest")
    )
    found = row.collect()[0]
    return {"hours": found.hours, "samples": found.samples, "crest": found.crest}


def _close_in_spark(usage: DataFrame) -> Answer:
    """Put the samples in order and write them, as the upkeep closes a day, but for Delta's log."""
    with TemporaryDirectory(prefix="kquota-bench-") as folder:
        rows = usage.select(*USAGE.schema.fieldNames())
        in_order(rows, USAGE, 2).write.parquet(f"{folder}/day")
        return {"rows": usage.sparkSession.read.parquet(f"{folder}/day").count()}


SPARK: dict[str, Callable[[DataFrame], Answer]] = {
    REPLAY: lambda usage: _replay_in_spark(usage, 1),
    MANY_POLICIES: lambda usage: _replay_in_spark(usage, MANY),
    REGRESSION: _lines_in_spark,
    READING: _read_in_spark,
    CHOOSING: lambda usage: _read_in_spark(voting(usage)),
    HOURS: _hours_in_spark,
    CLOSING: _close_in_spark,
}
DUCKDB: dict[str, Callable[[duckdb.DuckDBPyConnection, str], Answer]] = {
    REPLAY: lambda connection, files: _replay_in_duckdb(connection, files, 1),
    MANY_POLICIES: lambda connection, files: _replay_in_duckdb(connection, files, MANY),
    REGRESSION: _lines_in_duckdb,
}


def folders(root: Path, days: int) -> Sequence[str]:
    """Return the directories of the first days."""
    return [str(day_folder(root, day)) for day in range(days)]


def spark_usage(session: SparkSession, root: Path, days: int) -> DataFrame:
    """Return the samples of the first days as the table usage has them."""
    return session.read.parquet(*folders(root, days))
