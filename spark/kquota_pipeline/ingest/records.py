"""Reading history records: the value's JSON, and its problem.

The form is `schemas/history.schema.json`. All kinds are read by one parser with one type: a body has the
fields of its own kind, the others are null. Topics of a volume are names in one kind and objects in another,
so kind topics is read once more, with a type of its own. Unknown keys are ignored, and any SchemaVersion is
read.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from kquota_pipeline.ingest.problems import problem
from kquota_pipeline.ingest.timestamps import timestamp

_UNREADABLE = "_unreadable"
_QUARANTINED_BYTES = 65_536


def _struct(**fields: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])  # type: ignore[arg-type]


_TEXT, _WHOLE, _LONG, _NUMBER, _YES_NO = StringType(), IntegerType(), LongType(), DoubleType(), BooleanType()
_LIMIT = _struct(type=_TEXT, level=_NUMBER)
_VOLUME = _struct(
    VolumeName=_TEXT,
    Capacity=_LONG,
    Consumed=_LONG,
    VolumeId=_TEXT,
    LogDirs=ArrayType(_TEXT),
    MountPoint=_TEXT,
    HardLimit=_LIMIT,
    SoftLimit=_LIMIT,
    Status=_TEXT,
    Role=_TEXT,
    Latched=_TEXT,
    FillCeiling=_LONG,
    Topics=ArrayType(_TEXT),
    TopicsComplete=_YES_NO,
    TopicsSequence=_LONG,
    Leaving=MapType(_TEXT, _LONG),
    NeverBytes=_LONG,
    WaitsForUploadBytes=_LONG,
    StrayBytes=_LONG,
    FutureBytes=_LONG,
    DeletedBytes=_LONG,
    UnknownBytes=_LONG,
)
_ORDER = _struct(Action=_TEXT, Until=_TEXT, Reason=_TEXT, Actor=_TEXT)
_BODY = _struct(
    # usage
    SnapshotAt=_TEXT,
    HardLimit=_LIMIT,
    SoftLimit=_LIMIT,
    Volumes=ArrayType(_VOLUME),
    Applied=_struct(State=_TEXT, Factor=_NUMBER, Mechanism=_TEXT),
    # decision
    State=_TEXT,
    Factor=_NUMBER,
    Fallback=_YES_NO,
    Mode=_TEXT,
    PreviousState=_TEXT,
    Reasons=ArrayType(_struct(BrokerId=_WHOLE, Volume=_TEXT, Cause=_TEXT, Headroom=_NUMBER)),
    Undetermined=ArrayType(_struct(BrokerId=_WHOLE, Cause=_TEXT)),
    Covered=ArrayType(_struct(BrokerId=_WHOLE)),
    Hold=_ORDER,
    Sentence=_TEXT,
    # clients
    WindowSeconds=_NUMBER,
    Clients=ArrayType(
        _struct(
            User=_TEXT,
            ClientId=_TEXT,
            ProduceBytesPerSecond=_NUMBER,
            FetchBytesPerSecond=_NUMBER,
            ThrottledSeconds=_NUMBER,
            LimitBytesPerSecond=_NUMBER,
            Topics=ArrayType(_TEXT),
        )
    ),
    ObservedBytesPerSecond=_NUMBER,
    BaselineBytesPerSecond=_NUMBER,
    OmittedClients=_WHOLE,
    Refused=ArrayType(_struct(Principal=_TEXT, ClientId=_TEXT, Requests=_LONG)),
    Groups=ArrayType(
        _struct(
            Name=_TEXT,
            ProduceBytesPerSecond=_NUMBER,
            FetchBytesPerSecond=_NUMBER,
            ThrottledSeconds=_NUMBER,
            LimitBytesPerSecond=_NUMBER,
            RefusedRequests=_LONG,
        )
    ),
    # operator
    Key=_TEXT,
    Order=_ORDER,
    Actor=_TEXT,
    Reason=_TEXT,
)
VALUE = _struct(
    SchemaVersion=_LONG,
    Kind=_TEXT,
    ClusterId=_TEXT,
    BrokerId=_WHOLE,
    InstanceId=_TEXT,
    Sequence=_LONG,
    At=_TEXT,
    Body=_BODY,
    **{_UNREADABLE: _TEXT},
)
_SIZES = {"Bytes": _LONG, "LeavingSoonBytes": _LONG, "GrownBytes": _LONG}
TOPICS_VALUE = _struct(
    Body=_struct(
        SpanSeconds=_NUMBER,
        Volumes=ArrayType(
            _struct(
                VolumeName=_TEXT,
                VolumeId=_TEXT,
                Topics=ArrayType(_struct(Topic=_TEXT, RetentionSeconds=_NUMBER, **_SIZES)),
                Others=_struct(Count=_LONG, **_SIZES),
            )
        ),
    ),
    **{_UNREADABLE: _TEXT},
)


def read_records(messages: DataFrame) -> DataFrame:
    """Read the values of Kafka messages.

    In: the columns of Spark's Kafka source. Out: `kafka_topic`, `kafka_partition`, `kafka_offset`,
    `kafka_timestamp`, `content` (its digest), `record` (the value's fields), `contents` (of kind topics its
    own), `at` (timestamp), `problem` (null, or the defect), and, of a record with a problem, its `key` and
    `value`.
    """
    options = {"columnNameOfCorruptRecord": _UNREADABLE, "allowNonNumericNumbers": "false"}
    text = F.when(F.is_valid_utf8(F.col("value").cast("string")), F.col("value").cast("string"))
    parsed = messages.select(
        F.col("topic").alias("kafka_topic"),
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
        F.col("timestamp").alias("kafka_timestamp"),
        "key",
        "value",
        content("key", "value").alias("content"),
        F.from_json(text, VALUE, options).alias("record"),
    )
    of_topics = F.when(F.col("record.Kind") == "topics", F.from_json(text, TOPICS_VALUE, options))
    judged = parsed.withColumns({"at": timestamp(F.col("record.At")), "contents": of_topics}).withColumn(
        "problem",
        problem(F.col("value"), F.col("record"), F.col("contents"), F.col("at"), F.col("kafka_timestamp")),
    )
    bad = F.col("problem").isNotNull()
    return judged.withColumns(
        {"key": F.when(bad, F.col("key")), "value": F.when(bad, F.substring("value", 1, _QUARANTINED_BYTES))}
    )


def content(key: str, value: str) -> Column:
    """Return a digest of a record, the same of a record as it came and of its row in quarantine."""
    return F.xxhash64(key, F.substring(value, 1, _QUARANTINED_BYTES))
