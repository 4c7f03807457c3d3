"""Messages as Spark's Kafka source gives them, made from values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tests.unit.policy import golden

KAFKA_TIME = datetime(2026, 11, 21, 1, 2, 3, tzinfo=UTC)

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def sample(name: str) -> dict[str, Any]:
    """Return a valid golden sample."""
    return golden.sample("history", name)


def changed(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return a document with another value at a path such as `Body.Volumes.0.Capacity`."""
    result = deepcopy(document)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place: Any = result
    for part in parents:
        place = place[part]
    place[last] = value
    return result


def messages(spark: SparkSession, values: Iterable[bytes | dict[str, Any] | None]) -> DataFrame:
    """Return messages at the offsets 0, 1, … of partition 3."""
    raw = [json.dumps(value).encode() if isinstance(value, dict) else value for value in values]
    count = len(raw)
    # An Arrow table, which Spark takes as it is; for a list of rows it would start Python workers.
    table = pa.table(
        {
            "key": pa.array([b"1"] * count, pa.binary()),
            "value": pa.array(raw, pa.binary()),
            "topic": ["history"] * count,
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "headers": pa.array([None] * count, HEADERS),
            "timestamp": pa.array([KAFKA_TIME] * count, pa.timestamp("us", tz="UTC")),
        }
    )
    return spark.createDataFrame(table)
