"""Carrying the history topic into the tables, in batches that are each appended once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from kquota_pipeline import delta
from kquota_pipeline.ingest.lineage import Batch, claim, require_own_checkpoint, require_same_topic
from kquota_pipeline.ingest.progress import Progress
from kquota_pipeline.ingest.raw import record_rows
from kquota_pipeline.ingest.records import read_records
from kquota_pipeline.ingest.rows import KIND_OF_TABLE, LIST_OF_TABLE, ROWS
from kquota_pipeline.tables import INGESTED, RECORDS, Tables

_LOOK_SECONDS = 1.0
# A line of a Java or Python trace: `Caused by: a.b.SomeException: words`, `SomeError: words`; py4j's
# begins with `: `.
_NAMED = re.compile(
    r"^(?:Caused by: |: )?((?:[\w.]+\.)?(?:\w+(?:Error|Exception)|ForeignCheckpoint): \S.*)$", re.MULTILINE
)


@dataclass(frozen=True)
class Source:
    """The topic and how to reach it; `options` are Kafka's own client properties: `security.protocol`, …"""

    bootstrap_servers: str
    topic: str = "__kquota_history"
    options: Mapping[str, str] = field(default_factory=dict)
    max_records_per_batch: int = 200_000
    accept_gaps: bool = False
    """Go on where the topic no longer holds records that were not read yet; otherwise that is an error."""


class IngestFailed(Exception):
    """The stream ended with an error; the tables are whole, and the next run continues there."""


def ingest(
    spark: SparkSession,
    source: Source,
    tables: Tables,
    checkpoint: str,
    report: Callable[[str], None] = lambda _line: None,
    adopt: bool = False,
) -> Progress:
    """Append everything that the topic holds now and the tables do not, and return the work done.

    `checkpoint` is the URI of a folder that belongs to these tables alone. A run that ends half way, by
    whatever means, leaves nothing half done: the next one appends the rest, each record once.

    Raises:
        ForeignCheckpoint: the checkpoint is not the one that filled the tables, or the topic is another one.
        NotATable: a table has other columns.
        IngestFailed: Kafka can't be reached, records are gone before they were read, …
    """
    topic_id = _topic_id(spark, source)
    for table in INGESTED:
        delta.create(spark, tables, table)
    require_own_checkpoint(spark, tables, checkpoint, adopt)
    require_same_topic(spark, tables, source.topic, topic_id)
    progress = Progress(report)
    try:
        query = _start(spark, source, tables, checkpoint, topic_id, progress)
        try:
            while not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]
                pass
        finally:
            query.stop()
    except Exception as error:
        raise IngestFailed(_cause(error)) from error
    return progress


def _topic_id(spark: SparkSession, source: Source) -> str:
    """Return the id that Kafka gave the topic when it was made.

    Raises:
        IngestFailed: Kafka can't be reached, there is no such topic, …
    """
    jvm: Any = spark._jvm  # the client that Spark itself reads Kafka with
    properties = jvm.java.util.HashMap()
    for key, value in {**source.options, "bootstrap.servers": source.bootstrap_servers}.items():
        properties.put(key, value)
    names = jvm.java.util.List.of(source.topic)
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        try:
            return str(admin.describeTopics(names).allTopicNames().get()[source.topic].topicId())
        finally:
            admin.close()
    except Py4JJavaError as error:
        raise IngestFailed(f"topic {source.topic}: {_cause(error)}") from error


def _start(
    spark: SparkSession,
    source: Source,
    tables: Tables,
    checkpoint: str,
    topic_id: str,
    progress: Progress,
) -> StreamingQuery:
    messages = (
        spark.readStream.format("kafka")
        .options(**{f"kafka.{key}": value for key, value in source.options.items()})
        .option("kafka.bootstrap.servers", source.bootstrap_servers)
        .option("subscribe", source.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(source.max_records_per_batch))
        # Few partitions are read by as many tasks as there are cores.
        .option("minPartitions", str(spark.sparkContext.defaultParallelism))
        .option("includeHeaders", "true")
        .option("failOnDataLoss", str(not source.accept_gaps).lower())
        .load()
    )
    claimed = False

    def write(batch: DataFrame, number: int) -> None:
        nonlocal claimed
        query = str(spark.sparkContext.getLocalProperty("sql.streaming.queryId"))
        if not claimed:
            claim(spark, tables, query, topic_id)
            claimed = True
        append_batch(batch, tables, Batch(query, number), progress)

    return (
        messages.writeStream.queryName("kquota-ingest")
        .foreachBatch(write)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


def append_batch(messages: DataFrame, tables: Tables, batch: Batch, progress: Progress) -> None:
    """Append a batch of Kafka messages to the tables; rows that are already there are not appended again.

    The records as they are come first: what the parsed rows lack can be made of them later (`reparse`).
    """
    started = time.monotonic()
    transaction, note = (batch.query, batch.number), batch.to_json()
    delta.append(record_rows(messages), tables, RECORDS, transaction, note)
    raw_seconds = time.monotonic() - started
    records = read_records(messages).persist()
    try:
        kind = F.when(F.col("problem").isNull(), F.col("record.Kind"))
        lists = LIST_OF_TABLE.values()
        has_lists = [F.bool_or(F.size(f"record.Body.{name}") > 0).alias(name) for name in lists]
        kinds = records.groupBy(kind.alias("kind")).agg(F.count("*").alias("count"), *has_lists).collect()
        counts = {row["kind"]: int(row["count"]) for row in kinds}
        absent = {name for name in lists if not any(row[name] for row in kinds)}
        for table, rows in ROWS.items():
            # To append nothing would still be a version of the table.
            if counts.get(KIND_OF_TABLE.get(table)) and LIST_OF_TABLE.get(table) not in absent:
                delta.append(rows(records), tables, table, transaction, note)
    finally:
        records.unpersist()
    progress.appended(batch.number, counts, time.monotonic() - started, raw_seconds)


def _cause(error: BaseException) -> str:
    """Return the line of Spark's long message with the cause: the last exception that it names."""
    text = str(error)
    named = _NAMED.findall(text)
    return named[-1].strip() if named else (text.splitlines() or [type(error).__name__])[0]
