"""From records that were read (`ingest.records.read_records`) to the rows of the tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kquota.retention.expiry import BUCKETS
from kquota_pipeline.ingest.problems import BROKER_OF_KEY, sum_of_bytes
from kquota_pipeline.ingest.timestamps import timestamp
from kquota_pipeline.tables import (
    CLIENTS,
    DECISIONS,
    EXPIRY,
    GROUPS,
    LIMIT_REASON,
    OPERATORS,
    QUARANTINE,
    REFUSALS,
    TOPICS,
    UNDETERMINED,
    USAGE,
    Table,
)

_ONE = (
    "array<struct<topic: string, other_topics: bigint, bytes: bigint, leaving_soon_bytes: bigint, "
    "grown_bytes: bigint, retention_seconds: double>>"
)


def usage_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `usage`: one per record and volume."""
    volume = F.col("volume")

    def limit(name: str, field: str) -> Column:
        own = volume[name]
        return F.when(own.isNotNull(), own[field]).otherwise(F.col(f"record.Body.{name}.{field}"))

    rows = _of_kind(records, "usage").withColumn("volume", F.explode("record.Body.Volumes"))
    status = F.coalesce(volume["Status"], F.lit("ok"))
    return rows.select(
        *_envelope(),
        volume["VolumeName"].alias("volume_name"),
        volume["VolumeId"].alias("volume_id"),
        volume["LogDirs"].alias("log_dirs"),
        volume["MountPoint"].alias("mount_point"),
        F.when(status.isin("ok", "offline"), status).otherwise("failed").alias("status"),
        F.when(volume["Role"] == "metadata", "metadata").otherwise("data").alias("role"),
        volume["Latched"].isNotNull().alias("latched"),
        volume["Capacity"].alias("capacity_bytes"),
        volume["Consumed"].alias("consumed_bytes"),
        limit("HardLimit", "type").alias("hard_limit_type"),
        limit("HardLimit", "level").alias("hard_limit_level"),
        limit("SoftLimit", "type").alias("soft_limit_type"),
        limit("SoftLimit", "level").alias("soft_limit_level"),
        F.col("record.Body.Applied.State").alias("applied_state"),
        F.col("record.Body.Applied.Factor").alias("applied_factor"),
        F.col("record.Body.Applied.Mechanism").alias("applied_mechanism"),
        F.when(volume["FillCeiling"] >= 0, volume["FillCeiling"]).alias("fill_ceiling_bytes_per_second"),
        F.when(volume["TopicsComplete"], volume["Topics"]).alias("topics"),
        volume["TopicsSequence"].alias("topics_sequence"),
        "kafka_partition",
        "kafka_offset",
    )


def decision_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `decisions`: one per record."""
    body = "record.Body"
    return _of_kind(records, "decision").select(
        *_envelope(),
        F.col(f"{body}.State").alias("state"),
        F.col(f"{body}.Factor").alias("factor"),
        F.col(f"{body}.Fallback").alias("fallback"),
        F.col(f"{body}.Mode").alias("mode"),
        F.col(f"{body}.PreviousState").alias("previous_state"),
        # Structs are cast field by field in their order; the messages spell the names otherwise.
        F.col(f"{body}.Reasons").cast(f"array<{LIMIT_REASON.simpleString()}>").alias("reasons"),
        F.col(f"{body}.Undetermined").cast(f"array<{UNDETERMINED.simpleString()}>").alias("undetermined"),
        F.when(
            F.col(f"{body}.Hold").isNotNull(),
            F.struct(
                F.col(f"{body}.Hold.Action").alias("action"),
                timestamp(F.col(f"{body}.Hold.Until")).alias("until"),
                F.col(f"{body}.Hold.Reason").alias("reason"),
                F.col(f"{body}.Hold.Actor").alias("actor"),
            ),
        ).alias("hold"),
        F.col(f"{body}.Sentence").alias("sentence"),
        F.col(f"{body}.Covered.BrokerId").alias("covered"),
        "kafka_partition",
        "kafka_offset",
    )


def client_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `clients`: one per record and client, or one without a client."""
    client = F.col("entry")
    return _clients_rows(
        records,
        F.explode_outer("record.Body.Clients"),
        client["User"].alias("user"),
        client["ClientId"].alias("client_id"),
        client["ProduceBytesPerSecond"].alias("produce_bytes_per_second"),
        client["ThrottledSeconds"].alias("throttled_seconds"),
        client["LimitBytesPerSecond"].alias("limit_bytes_per_second"),
        F.col("record.Body.ObservedBytesPerSecond").alias("observed_bytes_per_second"),
        F.col("record.Body.BaselineBytesPerSecond").alias("baseline_bytes_per_second"),
        F.col("record.Body.OmittedClients").alias("omitted_clients"),
        client["Topics"].alias("topics"),
        client["FetchBytesPerSecond"].alias("fetch_bytes_per_second"),
    )


def refusal_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `refusals`: one per record and client that was refused."""
    client = F.col("entry")
    return _clients_rows(
        records,
        F.explode("record.Body.Refused"),
        client["Principal"].alias("principal"),
        client["ClientId"].alias("client_id"),
        client["Requests"].alias("requests"),
    )


def group_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `groups`: one per record and quota group."""
    group = F.col("entry")
    return _clients_rows(
        records,
        F.explode("record.Body.Groups"),
        group["Name"].alias("group"),
        group["ProduceBytesPerSecond"].alias("produce_bytes_per_second"),
        group["ThrottledSeconds"].alias("throttled_seconds"),
        group["LimitBytesPerSecond"].alias("limit_bytes_per_second"),
        group["RefusedRequests"].alias("refused_requests"),
        group["FetchBytesPerSecond"].alias("fetch_bytes_per_second"),
    )


def operator_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `operators`: one per record. A broker id as key is a decommission."""
    key, order = F.col("record.Body.Key"), F.col("record.Body.Order")
    kind = F.regexp_extract(key, "^[a-z]*", 0)
    return _of_kind(records, "operator").select(
        *_envelope(),
        F.when(kind == "", "decommission").otherwise(kind).alias("order_kind"),
        F.regexp_extract(key, BROKER_OF_KEY, 1).try_cast("int").alias("subject_broker_id"),
        F.when(kind == "relief", F.substring_index(key, "/", -1)).alias("plan_id"),
        ((kind != "") & order.isNull()).alias("withdrawn"),
        order["Action"].alias("action"),
        timestamp(order["Until"]).alias("until"),
        F.coalesce(order["Reason"], F.col("record.Body.Reason")).alias("reason"),
        F.coalesce(order["Actor"], F.col("record.Body.Actor")).alias("actor"),
        "kafka_partition",
        "kafka_offset",
    )


def topic_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `topics`: one per record, volume and topic, and one for the other topics."""
    volume = F.col("volume")
    named = F.transform(
        volume["Topics"],
        lambda topic: F.struct(
            topic["Topic"], F.lit(None).cast("bigint"), *_sizes(topic), topic["RetentionSeconds"]
        ),
    )
    others = volume["Others"]
    nothing = F.lit(None).cast("double")
    rest = F.struct(F.lit(None).cast("string"), others["Count"], *_sizes(others), nothing)
    return (
        _of_kind(records, "topics")
        .withColumn("volume", F.explode("contents.Body.Volumes"))
        .withColumn("one", F.explode(F.concat(named.cast(_ONE), F.array(rest).cast(_ONE))))
        .select(
            *_envelope(),
            F.col("contents.Body.SpanSeconds").alias("span_seconds"),
            volume["VolumeName"].alias("volume_name"),
            volume["VolumeId"].alias("volume_id"),
            "one.*",
            "kafka_partition",
            "kafka_offset",
        )
    )


def expiry_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `expiry`: one per record and volume.

    Bytes of a time that is not among ours, of a later agent, are those that leave later: none is lost.
    """
    volume = F.col("volume")
    within = {name: volume["Leaving"][name] for name in BUCKETS}
    later = sum_of_bytes(volume["Leaving"]).cast("bigint") - reduce(Column.__add__, within.values())
    return (
        _of_kind(records, "expiry")
        .withColumn("volume", F.explode("record.Body.Volumes"))
        .select(
            *_envelope(),
            volume["VolumeName"].alias("volume_name"),
            volume["VolumeId"].alias("volume_id"),
            *[size.alias(f"leaving_{name}_bytes") for name, size in within.items()],
            later.alias("leaving_later_bytes"),
            volume["NeverBytes"].alias("never_bytes"),
            volume["WaitsForUploadBytes"].alias("waits_for_upload_bytes"),
            volume["StrayBytes"].alias("stray_bytes"),
            volume["FutureBytes"].alias("future_bytes"),
            volume["DeletedBytes"].alias("deleted_bytes"),
            volume["UnknownBytes"].alias("unknown_bytes"),
            "kafka_partition",
            "kafka_offset",
        )
    )


def quarantine_rows(records: DataFrame) -> DataFrame:
    """Return the rows of table `quarantine`: one per malformed record."""
    return records.where(F.col("problem").isNotNull()).select(
        F.to_date("kafka_timestamp").alias("day"),
        "kafka_topic",
        "kafka_partition",
        "kafka_offset",
        "kafka_timestamp",
        F.col("problem").alias("reason"),
        "key",
        "value",
    )


ROWS: dict[Table, Callable[[DataFrame], DataFrame]] = {
    USAGE: usage_rows,
    DECISIONS: decision_rows,
    CLIENTS: client_rows,
    REFUSALS: refusal_rows,
    GROUPS: group_rows,
    OPERATORS: operator_rows,
    TOPICS: topic_rows,
    EXPIRY: expiry_rows,
    QUARANTINE: quarantine_rows,
}
KIND_OF_TABLE = {
    USAGE: "usage",
    DECISIONS: "decision",
    CLIENTS: "clients",
    REFUSALS: "clients",
    GROUPS: "clients",
    OPERATORS: "operator",
    TOPICS: "topics",
    EXPIRY: "expiry",
}
# Tables of lists that most records of their kind do not have.
LIST_OF_TABLE = {REFUSALS: "Refused", GROUPS: "Groups"}


def _of_kind(records: DataFrame, kind: str) -> DataFrame:
    return records.where(F.col("problem").isNull() & (F.col("record.Kind") == kind))


def _clients_rows(records: DataFrame, entries: Column, *columns: Column) -> DataFrame:
    """Return a row per clients record and `entry` of one of its lists, with these columns of it."""
    return (
        _of_kind(records, "clients")
        .withColumn("entry", entries)
        .select(
            *_envelope(),
            F.col("record.Body.WindowSeconds").alias("window_seconds"),
            *columns,
            "kafka_partition",
            "kafka_offset",
        )
    )


def _sizes(entry: Column) -> list[Column]:
    return [entry["Bytes"], entry["LeavingSoonBytes"], entry["GrownBytes"]]


def _envelope() -> list[Column]:
    return [
        F.col("record.ClusterId").alias("cluster_id"),
        F.col("record.BrokerId").alias("broker_id"),
        F.col("record.InstanceId").alias("instance_id"),
        F.col("record.Sequence").alias("sequence"),
        F.col("at"),
        F.to_date("at").alias("day"),
    ]
