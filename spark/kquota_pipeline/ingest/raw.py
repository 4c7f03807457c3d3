"""Records of the history topic as rows of table `records`, and back."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Of Kafka's columns those that are called otherwise in our tables.
_PLACES = {
    "topic": "kafka_topic",
    "partition": "kafka_partition",
    "offset": "kafka_offset",
    "timestamp": "kafka_timestamp",
}


def record_rows(messages: DataFrame) -> DataFrame:
    """Return the rows of table `records` of messages from Spark's Kafka source, read with their headers."""
    return messages.select(
        F.to_date("timestamp").alias("day"),
        *[F.col(name).alias(ours) for name, ours in _PLACES.items()],
        "key",
        "value",
        "headers",
        F.current_timestamp().alias("ingested_at"),
    )


def messages_of(records: DataFrame) -> DataFrame:
    """Return the messages that rows of table `records` were made of."""
    return records.select(
        *[F.col(ours).alias(name) for name, ours in _PLACES.items()], "key", "value", "headers"
    )
