"""The history of a real run (`record.py` says how it was recorded), as tables."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kquota_pipeline.ingest.records import read_records
from kquota_pipeline.ingest.rows import ROWS
from kquota_pipeline.tables import CLIENTS, DECISIONS, OPERATORS, USAGE

SAMPLE = Path(__file__).with_name("recorded-history.jsonl.gz")
_MESSAGE = "topic string, partition int, offset long, timestamp timestamp, key binary, value binary"


def recorded_history(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame, DataFrame]:
    """Return usage, decisions, clients and operators, as `ingest` makes them of the records."""
    lines = gzip.decompress(SAMPLE.read_bytes()).decode("utf-8").splitlines()
    messages = [
        ("__kquota_history", 0, number, datetime.fromisoformat(json.loads(line)["At"]), b"1", line.encode())
        for number, line in enumerate(lines)
    ]
    records = read_records(spark.createDataFrame(messages, _MESSAGE)).cache()
    usage, decisions, clients, operators = (
        ROWS[table](records) for table in (USAGE, DECISIONS, CLIENTS, OPERATORS)
    )
    return usage, decisions, clients, operators
