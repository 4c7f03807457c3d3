"""The table of the history topic itself: its records as they came. All others can be made of them again."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kquota_pipeline.tables.table import Table

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

RECORDS = Table(
    "records",
    "one row per record of the history topic, as it came",
    (
        ("day", DateType(), "the UTC day of kafka_timestamp"),
        ("kafka_topic", StringType(), "the history topic"),
        ("kafka_partition", IntegerType(), "in the history topic"),
        ("kafka_offset", LongType(), "in that partition"),
        ("kafka_timestamp", TimestampType(), "the record's own time in Kafka"),
        ("key", BinaryType(), "as it was"),
        ("value", BinaryType(), "as it was; null for a tombstone"),
        ("headers", ArrayType(HEADER), "as they were; null without any"),
        ("ingested_at", TimestampType(), "when it was read from the topic"),
    ),
    # A topic that was made again has its offsets a second time, for other records: which they are their
    # content says, as clocks may be wrong.
    identity=("kafka_topic", "kafka_partition", "kafka_offset", "key", "value"),
    order=("kafka_topic", "kafka_partition", "kafka_offset"),
    rows_per_file=1_000_000,
)
