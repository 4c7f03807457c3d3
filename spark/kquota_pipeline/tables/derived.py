"""The tables that `maintain` derives from those of the history, and its own notes."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from kquota_pipeline.tables.table import Table

TEN_MINUTES = Table(
    "ten_minutes",
    "one row per volume and ten minutes: its last sample there, as a back-test reads it; more where its "
    "status, its description or the agent changed, and for samples that name topics; of closed days alone",
    (
        ("cluster_id", StringType(), "Kafka's cluster id"),
        ("broker_id", IntegerType(), "the broker"),
        ("instance_id", StringType(), "of the agent that recorded the sample"),
        ("sequence", LongType(), "of the sample's record"),
        ("at", TimestampType(), "when the sample was taken; ten minutes include their end"),
        ("day", DateType(), "the UTC day of at"),
        ("volume_name", StringType(), "the volume's unique name within the broker"),
        ("volume_id", StringType(), "the file system's own id; null where not known"),
        ("log_dirs", ArrayType(StringType()), "the broker's log dirs on the volume; null where not known"),
        ("mount_point", StringType(), "where it is mounted; null where not known"),
        ("status", StringType(), "ok, offline or failed; an unknown status is failed"),
        ("role", StringType(), "data or metadata"),
        ("capacity_bytes", LongType(), "size of the volume"),
        ("consumed_bytes", LongType(), "capacity less the space available to the broker's user"),
        ("hard_limit_type", StringType(), "of the limit in force, as in usage"),
        ("hard_limit_level", DoubleType(), "bytes, or percent of the capacity"),
        ("soft_limit_type", StringType(), "as hard_limit_type"),
        ("soft_limit_level", DoubleType(), "as hard_limit_level"),
        ("applied_mechanism", StringType(), "what held producers: none, governor or fence"),
        ("fill_ceiling_bytes_per_second", LongType(), "the most that it may fill; null where not reported"),
        ("topics", ArrayType(StringType()), "all with a partition on it; null where not named"),
        ("topics_sequence", LongType(), "of the instance's record that names the same topics; or null"),
        ("first_at", TimestampType(), "when the first sample of the row was taken"),
        ("first_bytes", LongType(), "consumed then"),
        (
            "fill_bytes_per_second",
            DoubleType(),
            "the most from one sample that could be read to the next one of the day; null without such two",
        ),
        ("samples", LongType(), "how many samples it is made of"),
    ),
    identity=("cluster_id", "broker_id", "instance_id", "sequence", "volume_name"),
    order=("cluster_id", "broker_id", "volume_name", "at", "sequence"),
)

HOURS = Table(
    "hours",
    "one row per volume and hour with a sample: what its samples come to; of closed days alone",
    (
        ("cluster_id", StringType(), "Kafka's cluster id"),
        ("broker_id", IntegerType(), "the broker"),
        ("volume_name", StringType(), "the volume's unique name within the broker"),
        ("at", TimestampType(), "where the hour begins"),
        ("day", DateType(), "the UTC day of at"),
        ("crest_bytes", LongType(), "the most that was consumed"),
        ("lowest_bytes", LongType(), "the least that was consumed"),
        ("mean_bytes", DoubleType(), "the mean of what was consumed"),
        ("last_bytes", LongType(), "consumed at last, and likewise below"),
        ("capacity_bytes", LongType(), "size of the volume"),
        ("volume_id", StringType(), "the file system's own id; null where not known"),
        ("mount_point", StringType(), "where it is mounted; null where not known"),
        ("hard_bytes", DoubleType(), "what is consumed at the hard limit; null for an unknown type"),
        ("soft_bytes", DoubleType(), "likewise of the soft limit"),
        ("held", DoubleType(), "the share of their rate that producers were denied in the hour"),
        ("samples", LongType(), "how many samples it is made of"),
    ),
    identity=("cluster_id", "broker_id", "volume_name", "at"),
    order=("cluster_id", "broker_id", "volume_name", "at"),
)

LOOKS = Table(
    "looks",
    "one row per volume and hour, and one for each topic on it: the last look at segments in the hour; of "
    "closed days alone",
    (
        ("cluster_id", StringType(), "Kafka's cluster id"),
        ("broker_id", IntegerType(), "the broker"),
        ("volume_name", StringType(), "the volume's unique name within the broker"),
        ("topic", StringType(), "null for the volume"),
        ("at", TimestampType(), "where the hour begins"),
        ("day", DateType(), "the UTC day of at"),
        ("leaving_10m_bytes", DoubleType(), "as in expiry, with the bytes that Kafka removes already"),
        *(
            (f"leaving_{bucket}_bytes", DoubleType(), "as in expiry")
            for bucket in ("1h", "6h", "1d", "3d", "7d", "30d", "later")
        ),
        (
            "staying_bytes",
            DoubleType(),
            "all others of expiry; of a topic this and the leaving ones are null",
        ),
        ("bytes", DoubleType(), "of the topic, as in topics; null for the volume, and so below"),
        ("soon_bytes", DoubleType(), "of these, the bytes that leave by themselves within an hour"),
        ("keep_hours", DoubleType(), "after which its records leave; 0 where none, or not known"),
    ),
    identity=("cluster_id", "broker_id", "volume_name", "topic", "at"),
    order=("cluster_id", "broker_id", "volume_name", "topic", "at"),
)

HOLDINGS = Table(
    "holdings",
    "one row per volume, day and topic: what the topic held on the volume; of closed days alone",
    (
        ("cluster_id", StringType(), "Kafka's cluster id"),
        ("broker_id", IntegerType(), "the broker"),
        ("volume_name", StringType(), "the volume's unique name within the broker"),
        ("topic", StringType(), "null for what is in no topic that a look names"),
        ("day", DateType(), "the UTC day"),
        ("byte_days", DoubleType(), "bytes times the time for which they were held, in days"),
        ("hours", IntegerType(), "of the day that have samples: others count for nothing"),
        ("inflow_bytes", DoubleType(), "that came to the topic on the volume, as far as looks show"),
    ),
    identity=("cluster_id", "broker_id", "volume_name", "topic", "day"),
    order=("cluster_id", "broker_id", "volume_name", "topic"),
)

WRITINGS = Table(
    "writings",
    "one row per client, day and topic: what the client wrote and read; of closed days alone",
    (
        ("cluster_id", StringType(), "Kafka's cluster id"),
        ("user", StringType(), "the principal's user; null for all clients that records do not list"),
        ("client_id", StringType(), "empty where absent; null for all that records do not list"),
        ("topic", StringType(), "null where the topics of the window are not known, and for bytes read"),
        ("day", DateType(), "the UTC day"),
        ("written_bytes", DoubleType(), "rate times window; of several topics each has the same part"),
        ("read_bytes", DoubleType(), "rate times window; null where nothing was read, or it was not counted"),
    ),
    identity=("cluster_id", "user", "client_id", "topic", "day"),
    order=("cluster_id", "user", "client_id", "topic"),
)

MAINTAINED = Table(
    "maintained",
    "one row each time that a day of a table was put in order",
    (
        ("table_name", StringType(), "which table"),
        ("day", DateType(), "which day"),
        ("at", TimestampType(), "when that was"),
        (
            "files_digest",
            StringType(),
            "of the names of the files that the day was made of or consists of; empty: dropped",
        ),
        ("rows", LongType(), "in the day after it; null for derived tables"),
        ("duplicates", LongType(), "rows that were removed because they had come before"),
    ),
    identity=("table_name", "day", "at"),
    order=("table_name", "at"),
)
