"""A cluster's history on its way to Python: whole, in order, and never in one piece."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kquota_pipeline.backtest.hand_over import for_parts, in_order
from kquota_pipeline.backtest.stage import cluster_key, samples
from kquota_pipeline.tables import USAGE
from tests.spark.rows import rows as usage_rows

PARTS, BATCH = 3, 7
ROWS = {"one": 100, "two": 1, "three": 14, "without rows": 0}
EVENTS = {"one": 9, "two": 7, "three": 1, "without rows": 2}
UNREAD = "three"
SEEN = StructType(
    [
        *(StructField(name, StringType()) for name in ("cluster_id", "events")),
        *(StructField(name, LongType()) for name in ("part", "rows", "ticks", "most_rows")),
    ]
)


@contextmanager
def setting(spark: SparkSession, name: str, value: object) -> Iterator[None]:
    usual = spark.conf.get(name)
    spark.conf.set(name, str(value))
    try:
        yield
    finally:
        spark.conf.set(name, usual)  # type: ignore[arg-type]


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    each = [(cluster, tick) for cluster, count in ROWS.items() for tick in range(count)]
    made = spark.createDataFrame(each, "cluster_id string, tick bigint")
    return made.select(
        cluster_key().alias("cluster_key"), "tick", F.lit(None).cast("long").alias("topics_key")
    )


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    each = [(cluster, f"event {n}", n) for cluster, count in EVENTS.items() for n in range(count)]
    return spark.createDataFrame(each, "cluster_id string, event string, tick bigint")


def seen(part: int, cluster_id: str, events: pa.Table, rows: Iterator[pa.RecordBatch]) -> pa.Table:
    assert events["cluster_id"].unique().to_pylist() == [cluster_id]
    # A cluster whose rows are not read does not disturb the next.
    batches = [] if cluster_id == UNREAD else list(rows)
    found = {
        "cluster_id": cluster_id,
        "events": ", ".join(sorted(events["event"].to_pylist())),
        "part": part,
        "rows": sum(batch.num_rows for batch in batches),
        "ticks": sum(sum(batch["tick"].to_pylist()) for batch in batches),
        "most_rows": max((batch.num_rows for batch in batches), default=0),
    }
    return pa.Table.from_pylist([found], schema=to_arrow_schema(SEEN))


@pytest.mark.parametrize("partitions", [1, 4], ids=["all groups in one stream", "several streams"])
def test_each_part_gets_each_cluster_whole(
    spark: SparkSession, rows: DataFrame, events: DataFrame, partitions: int
) -> None:
    with ExitStack() as settings:
        settings.enter_context(setting(spark, "spark.sql.shuffle.partitions", partitions))
        settings.enter_context(setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", BATCH))
        found = [tuple(row) for row in for_parts(PARTS, rows, events, seen, SEEN).collect()]
    read = {cluster: range(0 if cluster == UNREAD else count) for cluster, count in ROWS.items()}
    assert sorted(row[:-1] for row in found) == sorted(
        (cluster, ", ".join(f"event {n}" for n in range(count)), part, len(read[cluster]), sum(read[cluster]))
        for part in range(PARTS)
        for cluster, count in EVENTS.items()
    )
    assert max(row[-1] for row in found) <= BATCH


def test_a_row_is_of_numbers_alone(spark: SparkSession, events: DataFrame) -> None:
    """Millions of them are sorted and sent; a text in each would be most of it."""
    made = samples(usage_rows(spark, USAGE, []), 600, ceilings=True, topics=True)
    kinds = dict(in_order(PARTS, made, events).dtypes)
    assert kinds.pop("event") == "string", "a struct would be looked through with each row"
    assert {*made.columns} < kinds.keys()
    assert set(kinds.values()) == {"int", "bigint", "boolean"}
