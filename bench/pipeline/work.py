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

from bench.pipeline.data import day_folder
from bench.pipeline.lines import straight_line
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.maintain.closing import in_order
from kquota_pipeline.tables import USAGE

Answer = dict[str, float]
REGRESSION = "regression"
WORKS = (REGRESSION,)
# Steps of `maintain` on the samples of days; measured in Spark alone.
HOURS, CLOSING = "hours", "a day put in order"
UPKEEP = (HOURS, CLOSING)


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
    REGRESSION: _lines_in_spark,
    HOURS: _hours_in_spark,
    CLOSING: _close_in_spark,
}
DUCKDB: dict[str, Callable[[duckdb.DuckDBPyConnection, str], Answer]] = {REGRESSION: _lines_in_duckdb}


def folders(root: Path, days: int) -> Sequence[str]:
    """Return the directories of the first days."""
    return [str(day_folder(root, day)) for day in range(days)]


def spark_usage(session: SparkSession, root: Path, days: int) -> DataFrame:
    """Return the samples of the first days as the table usage has them."""
    return session.read.parquet(*folders(root, days))
