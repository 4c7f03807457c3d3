"""The tables of what the history topic says, parsed: each record's rows, and the malformed records."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kquota_pipeline.tables.table import ENVELOPE, PLACE, RECORD_IDENTITY, Table

LIMIT_REASON = StructType(
    [
        StructField("broker_id", IntegerType()),
        StructField("volume", StringType()),
        StructField("cause", StringType()),
        StructField("headroom", DoubleType()),
    ]
)
UNDETERMINED = StructType([StructField("broker_id", IntegerType()), StructField("cause", StringType())])
HOLD = StructType(
    [
        StructField("action", StringType()),
        StructField("until", TimestampType()),
        StructField("reason", StringType()),
        StructField("actor", StringType()),
    ]
)

USAGE = Table(
    "usage",
    "one row per usage record and volume",
    (
        *ENVELOPE,
        ("volume_name", StringType(), "the volume's unique name within the broker"),
        ("volume_id", StringType(), "the file system's own id; null where not known"),
        ("log_dirs", ArrayType(StringType()), "the broker's log dirs on the volume; null where not known"),
        ("mount_point", StringType(), "where it is mounted: the key of its own limits; null where not known"),
        ("status", StringType(), "ok, offline or failed; an unknown status is failed"),
        ("role", StringType(), "data or metadata"),
        ("latched", BooleanType(), "over the hard limit and not yet back above the release margin"),
        ("capacity_bytes", LongType(), "size of the volume"),
        ("consumed_bytes", LongType(), "capacity less the space available to the broker's user"),
        (
            "hard_limit_type",
            StringType(),
            "of the limit in force: ConsumedSpace, MinFreeBytes or MinFreePercentage",
        ),
        (
            "hard_limit_level",
            DoubleType(),
            "bytes, or percent of the capacity",
        ),
        ("soft_limit_type", StringType(), "as hard_limit_type"),
        ("soft_limit_level", DoubleType(), "as hard_limit_level"),
        ("applied_state", StringType(), "the plug-in's last reported state; null without a report"),
        ("applied_factor", DoubleType(), "the share of their rate that producers kept, as reported"),
        ("applied_mechanism", StringType(), "none, governor or fence"),
        ("fill_ceiling_bytes_per_second", LongType(), "the most that it may fill; null where not reported"),
        ("topics", ArrayType(StringType()), "all with a partition on it; null where not named"),
        ("topics_sequence", LongType(), "of the instance's record that names the same topics; or null"),
        *PLACE,
    ),
    identity=(*RECORD_IDENTITY, "volume_name"),
    order=("cluster_id", "broker_id", "volume_name", "at", "sequence"),
)
DECISIONS = Table(
    "decisions",
    "one row per decision record",
    (
        *ENVELOPE,
        ("state", StringType(), "OPEN, THROTTLE or PAUSE"),
        ("factor", DoubleType(), "the share of their rate that producers keep"),
        ("fallback", BooleanType(), "whether the fallback action decided"),
        ("mode", StringType(), "observe or enforce"),
        ("previous_state", StringType(), "of a transition the state before; null in a sample"),
        ("reasons", ArrayType(LIMIT_REASON), "why, the one that decides first"),
        ("undetermined", ArrayType(UNDETERMINED), "whose state was not known"),
        ("hold", HOLD, "the operator's hold in force, or null"),
        ("sentence", StringType(), "state and cause for people"),
        ("covered", ArrayType(IntegerType()), "silent brokers that count with a bound on their growth"),
        *PLACE,
    ),
    identity=RECORD_IDENTITY,
    order=("cluster_id", "broker_id", "at", "sequence"),
)
CLIENTS = Table(
    "clients",
    "one row per clients record and client; one without a client where a record lists none",
    (
        *ENVELOPE,
        ("window_seconds", DoubleType(), "the length of the window before at"),
        ("user", StringType(), "the principal's user; empty where not authenticated"),
        ("client_id", StringType(), "empty where absent"),
        ("produce_bytes_per_second", DoubleType(), "the client's produce rate on this broker"),
        ("throttled_seconds", DoubleType(), "how much of the window it was above its limit"),
        ("limit_bytes_per_second", DoubleType(), "its quota at the end of the window; null without one"),
        ("observed_bytes_per_second", DoubleType(), "of all producers on this broker that are not exempt"),
        (
            "baseline_bytes_per_second",
            DoubleType(),
            "their produce rate before OPEN ended",
        ),
        ("omitted_clients", IntegerType(), "how many smaller clients the record does not list"),
        ("topics", ArrayType(StringType()), "all that it wrote to; null where not all are known"),
        ("fetch_bytes_per_second", DoubleType(), "what it read on this broker; null where not counted"),
        *PLACE,
    ),
    identity=(*RECORD_IDENTITY, "user", "client_id"),
    order=("cluster_id", "broker_id", "user", "client_id", "at", "sequence"),
)
REFUSALS = Table(
    "refusals",
    "one row per clients record and client whose produce requests were refused",
    (
        *ENVELOPE,
        ("window_seconds", DoubleType(), "the length of the window before at"),
        ("principal", StringType(), "as Type:name"),
        ("client_id", StringType(), "empty where absent"),
        ("requests", LongType(), "refused in the window, in PAUSE or by a topic's threshold"),
        *PLACE,
    ),
    identity=(*RECORD_IDENTITY, "principal", "client_id"),
    order=("cluster_id", "broker_id", "principal", "client_id", "at", "sequence"),
)
GROUPS = Table(
    "groups",
    "one row per clients record and quota group: its members' joint usage",
    (
        *ENVELOPE,
        ("window_seconds", DoubleType(), "the length of the window before at"),
        ("group", StringType(), "its name in the brokers' properties"),
        ("produce_bytes_per_second", DoubleType(), "the group's produce rate on this broker"),
        ("throttled_seconds", DoubleType(), "how much of the window it was above its limit"),
        ("limit_bytes_per_second", DoubleType(), "its limit at the end of the window; null without one"),
        ("refused_requests", LongType(), "of its members in the window"),
        ("fetch_bytes_per_second", DoubleType(), "what its members read on this broker; null likewise"),
        *PLACE,
    ),
    identity=(*RECORD_IDENTITY, "group"),
    order=("cluster_id", "broker_id", "group", "at", "sequence"),
)
OPERATORS = Table(
    "operators",
    "one row per operator's order, its withdrawal, or a decommission",
    (
        *ENVELOPE,
        ("order_kind", StringType(), "hold, quarantine, maintenance, relief or decommission"),
        ("subject_broker_id", IntegerType(), "the broker that it is about; null for a hold and a relief"),
        ("plan_id", StringType(), "of a relief the plan; otherwise null"),
        ("withdrawn", BooleanType(), "whether the order was ended before its time"),
        ("action", StringType(), "of a hold: pause or open"),
        ("until", TimestampType(), "when the order ends by itself"),
        ("reason", StringType(), "for people"),
        ("actor", StringType(), "for people"),
        *PLACE,
    ),
    # Two agents may write down one order; its time is the topic's, whichever agent did.
    identity=("cluster_id", "at", "order_kind", "subject_broker_id", "plan_id"),
    order=("cluster_id", "at", "sequence"),
)
TOPICS = Table(
    "topics",
    "one row per topics record, volume and topic that it names; one for the others together",
    (
        *ENVELOPE,
        ("span_seconds", DoubleType(), "the time since the look before; null of a first one"),
        ("volume_name", StringType(), "the volume's unique name within the broker"),
        ("volume_id", StringType(), "the file system's own id; null where not known"),
        ("topic", StringType(), "null for the topics that the record does not name, together"),
        ("other_topics", LongType(), "how many those are; null for a topic"),
        ("bytes", LongType(), "on the volume, indexes included"),
        ("leaving_soon_bytes", LongType(), "of these, the bytes that leave by themselves within an hour"),
        ("grown_bytes", LongType(), "the change in the span, negative where it shrank; null where not known"),
        ("retention_seconds", DoubleType(), "after which its records leave; null where none, or not known"),
        *PLACE,
    ),
    identity=(*RECORD_IDENTITY, "volume_name", "topic"),
    order=("cluster_id", "broker_id", "volume_name", "topic", "at", "sequence"),
)
EXPIRY = Table(
    "expiry",
    "one row per expiry record and volume: when its bytes leave by themselves, each byte in one column",
    (
        *ENVELOPE,
        ("volume_name", StringType(), "the volume's unique name within the broker"),
        ("volume_id", StringType(), "the file system's own id; null where not known"),
        ("leaving_10m_bytes", LongType(), "within ten minutes at the latest"),
        ("leaving_1h_bytes", LongType(), "after that, within an hour"),
        ("leaving_6h_bytes", LongType(), "after that, within six hours"),
        ("leaving_1d_bytes", LongType(), "after that, within a day"),
        ("leaving_3d_bytes", LongType(), "after that, within three days"),
        ("leaving_7d_bytes", LongType(), "after that, within seven days"),
        ("leaving_30d_bytes", LongType(), "after that, within thirty days"),
        ("leaving_later_bytes", LongType(), "after that, and those of times that are not known here"),
        ("never_bytes", LongType(), "as things are never; null where not reported, and so below"),
        ("waits_for_upload_bytes", LongType(), "once they have been uploaded by tiered storage"),
        ("stray_bytes", LongType(), "of partitions that the broker does not have: never"),
        ("future_bytes", LongType(), "of copies that moves between log dirs are filling"),
        ("deleted_bytes", LongType(), "that Kafka removes within file.delete.delay.ms"),
        ("unknown_bytes", LongType(), "of topics whose settings are not known"),
        *PLACE,
    ),
    identity=(*RECORD_IDENTITY, "volume_name"),
    order=("cluster_id", "broker_id", "volume_name", "at", "sequence"),
)
QUARANTINE = Table(
    "quarantine",
    "one row per record of the history topic that is malformed",
    (
        ("day", DateType(), "the UTC day of kafka_timestamp"),
        ("kafka_topic", StringType(), "the history topic"),
        *PLACE,
        ("kafka_timestamp", TimestampType(), "the record's own time in Kafka"),
        ("reason", StringType(), "the defect"),
        ("key", BinaryType(), "as it was"),
        ("value", BinaryType(), "as it was, its first 65,536 bytes; null for a tombstone"),
    ),
    # As of `records`.
    identity=("kafka_topic", "kafka_partition", "kafka_offset", "key", "value"),
    order=("kafka_partition", "kafka_offset"),
)

FROM_HISTORY = (USAGE, DECISIONS, CLIENTS, REFUSALS, GROUPS, OPERATORS, TOPICS, EXPIRY, QUARANTINE)
