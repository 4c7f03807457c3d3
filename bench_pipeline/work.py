"""The work that is measured, once in Spark with the pipeline's own functions and once in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kquota.core.limits import Limit, LimitType
from kquota_pipeline.backtest.policy import Limits, Policy
from kquota_pipeline.backtest.statistics import decide_all, statistics
from kquota_pipeline.forecast.series import straight_line

Answer = dict[str, float]
MANY = 32


def policies(count: int) -> list[Policy]:
    """Return policies of one type: 5 and 15 % free, and others beside it."""
    kind = LimitType.MIN_FREE_PERCENTAGE
    return [
        Policy(f"p{n:02d}", Limits(hard=Limit.of(kind, 5 + n % 4), soft=Limit.of(kind, 15 + n // 4)))
        for n in range(count)
    ]


def _replay_in_spark(usage: DataFrame, count: int) -> Answer:
    decided = decide_all(statistics(usage), policies(count))
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
          SELECT cluster_id, epoch("at")::BIGINT // 30 AS tick,
            min((capacity_bytes - consumed_bytes) / capacity_bytes) AS ratio,
            min(capacity_bytes - consumed_bytes) AS free, max(consumed_bytes) AS consumed
          FROM read_parquet({files}) WHERE role = 'data' AND status = 'ok' AND capacity_bytes > 0
          GROUP BY ALL)
        SELECT count(*), count(*) FILTER (ratio <= hard), count(*) FILTER (ratio >= soft),
          min(free), max(consumed)
        FROM extremes, (VALUES {levels}) policies(soft, hard)""").fetchone()
    assert row is not None
    return {"ticks": row[0], "paused": row[1], "open": row[2]}


def _lines_in_spark(usage: DataFrame) -> Answer:
    row = straight_line(usage).agg(F.count("*").alias("n"), F.avg("slope_bytes_per_second").alias("slope"))
    found = row.collect()[0]
    return {"volumes": found.n, "slope": found.slope}


def _lines_in_duckdb(connection: duckdb.DuckDBPyConnection, files: str) -> Answer:
    row = connection.execute(f"""
        SELECT count(*), avg(slope) FROM (
          SELECT cluster_id, broker_id, volume_name, regr_slope(consumed_bytes::DOUBLE, epoch("at")) AS slope,
            avg(consumed_bytes) AS level, avg(epoch("at")) AS mean_at, count(*) AS samples
          FROM read_parquet({files}) GROUP BY ALL)""").fetchone()
    assert row is not None
    return {"volumes": row[0], "slope": row[1]}


SPARK: dict[str, Callable[[DataFrame], Answer]] = {
    "tick replay": lambda usage: _replay_in_spark(usage, 1),
    "32 policies": lambda usage: _replay_in_spark(usage, MANY),
    "regression": _lines_in_spark,
}
DUCKDB: dict[str, Callable[[duckdb.DuckDBPyConnection, str], Answer]] = {
    "tick replay": lambda connection, files: _replay_in_duckdb(connection, files, 1),
    "32 policies": lambda connection, files: _replay_in_duckdb(connection, files, MANY),
    "regression": _lines_in_duckdb,
}


def folders(root: Path, days: int) -> Sequence[str]:
    """Return the directories of the first days."""
    return [str(root / f"day={day:02d}") for day in range(days)]


def spark_usage(session: SparkSession, root: Path, days: int) -> DataFrame:
    """Return the samples of the first days as the table usage has them."""
    return session.read.parquet(*folders(root, days))
