"""The history records that are read, and the reasons for refusing others."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from pyspark.sql import functions as F
from referencing import Registry, Resource

from kquota.policy.timestamps import InvalidTimestamp, parse_utc
from kquota_pipeline.ingest.records import read_records
from kquota_pipeline.ingest.timestamps import timestamp
from tests.spark.ingest.messages import changed, messages, sample
from tests.unit.policy.golden import SCHEMAS, samples


def problems(spark, values) -> list[str | None]:
    rows = read_records(messages(spark, values)).select("kafka_offset", "problem").collect()
    return [row["problem"] for row in sorted(rows)]


def test_every_valid_sample_is_read(spark):
    valid = samples("history", "valid")
    found = problems(spark, [one.text.encode() for one in valid])
    assert {one.name: text for one, text in zip(valid, found, strict=True) if text is not None} == {}


def test_every_invalid_sample_is_refused(spark):
    invalid = samples("history", "invalid")
    found = problems(spark, [one.text.encode() for one in invalid])
    assert [one.name for one, text in zip(invalid, found, strict=True) if text is None] == []


USAGE, DECISION, CLIENTS, ORDER, TOPICS, EXPIRY = (
    sample(name) for name in ("usage", "decision-transition", "clients", "operator-hold", "topics", "expiry")
)
WRONG = [
    (None, "no value"),
    (b"", "no JSON object"),
    (b"{", "right types"),
    (b"null", "no JSON object"),
    (b"[]", ""),
    (json.dumps(USAGE).encode().replace(b"fs uuid", b"\xff\xfe"), "UTF-8"),
    (changed(USAGE, "SchemaVersion", 0), "SchemaVersion: a whole number from 1 on"),
    (changed(USAGE, "BrokerId", 2**31), "right types"),
    (changed(USAGE, "BrokerId", -1), "BrokerId: a whole number from 0"),
    (changed(USAGE, "InstanceId", "x" * 1025), "InstanceId: a text of 1 to 1024"),
    (changed(USAGE, "At", "yesterday"), "At: an ISO 8601 time"),
    (changed(USAGE, "At", "2026-02-30T00:00:00Z"), "At: an ISO 8601 time"),
    (
        changed(USAGE, "At", "2026-11-21T01:12:03.001Z"),
        "At: a time from 2020 on, and at most 10 minutes after",
    ),
    (changed(USAGE, "At", "2027-11-21T01:02:03Z"), "At: a time from 2020 on, and at most 10 minutes after"),
    (changed(USAGE, "At", "1970-01-01T00:05:00Z"), "At: a time from 2020 on, and at most 10 minutes after"),
    (changed(USAGE, "Body.HardLimit", {"type": "MinFreeBytes"}), "Body.HardLimit: {type, level}"),
    (changed(USAGE, "Body.Volumes.0.Consumed", 1_000_001), "Consumed at most Capacity"),
    (changed(USAGE, "Body.Volumes.0.Consumed", -1), "Consumed at most Capacity"),
    (changed(USAGE, "Body.Volumes.0.VolumeName", "a\u0007"), "printable"),
    (changed(USAGE, "Body.Volumes.0", None), "Body.Volumes: each has"),
    (changed(USAGE, "Body.Volumes", USAGE["Body"]["Volumes"] * 2), "stands twice"),
    (changed(DECISION, "Body.Factor", 1), "Body.Factor: 1 in OPEN"),
    (changed(DECISION, "Body.PreviousState", "SHUT"), "Body.PreviousState"),
    (changed(DECISION, "Body.Reasons.0.Cause", "whim"), "Body.Reasons"),
    (changed(DECISION, "Body.Undetermined.0", None), "Body.Undetermined"),
    (changed(DECISION, "Body.Hold", {"Action": "open", "Until": "soon"}), "Body.Hold"),
    (changed(CLIENTS, "Body.Clients.0.ThrottledSeconds", -0.1), "Body.Clients: at most 1000"),
    (changed(CLIENTS, "Body.Clients.1", CLIENTS["Body"]["Clients"][0]), "stand twice"),
    (changed(CLIENTS, "Body.WindowSeconds", 0), "Body.WindowSeconds"),
    (changed(CLIENTS, "Body.Refused.0.Requests", 0), "Body.Refused: at most 1000"),
    (changed(CLIENTS, "Body.Refused.1", CLIENTS["Body"]["Refused"][0]), "stands twice"),
    (changed(CLIENTS, "Body.Groups.0.Name", ""), "Body.Groups: at most 200"),
    (changed(CLIENTS, "Body.Groups.1", CLIENTS["Body"]["Groups"][0]), "stands twice"),
    (json.dumps(CLIENTS).encode().replace(b"5000000.0", b"1e999"), "Body.Clients"),
    (changed(ORDER, "Body.Key", "quarantine/99999999999"), "Body.Key"),
    (changed(ORDER, "Body.Key", "quarantine/2147483648"), "Body.Key"),
    (changed(ORDER, "Body.Key", "relief/"), "Body.Key"),
    (changed(ORDER, "Body.Order.Action", "close"), "Body.Order"),
    (changed(TOPICS, "Body.Volumes.0.Topics.0", "orders"), "right types"),
    (changed(TOPICS, "Body.Volumes.0.Topics.0.Topic", "x" * 250), "Body.Volumes: at most 4096"),
    (changed(TOPICS, "Body.Volumes.0.Topics.1.Topic", "orders"), "a Topic stands twice"),
    (changed(TOPICS, "Body.Volumes", TOPICS["Body"]["Volumes"] * 2), "a VolumeName stands twice"),
    (changed(TOPICS, "Body.Volumes.0.Others", None), "Body.Volumes: at most 4096"),
    (changed(TOPICS, "Body.SpanSeconds", -1), "Body.SpanSeconds"),
    (changed(EXPIRY, "Body.Volumes.0.NeverBytes", -1), "Body.Volumes: at most 4096"),
    (changed(EXPIRY, "Body.Volumes.0.Leaving", {"1h": 1, "later": 0}), "10m, 1h, 6h, 1d, 3d, 7d, 30d, later"),
    (changed(EXPIRY, "Body.Volumes", EXPIRY["Body"]["Volumes"] * 2), "a VolumeName stands twice"),
    (changed(EXPIRY, "Body.Volumes.0.Leaving.later", 2**63 - 1), "at most 9223372036854775807 together"),
]


def test_what_is_wrong_with_a_record_is_said(spark):
    found = problems(spark, [value for value, _ in WRONG])
    said = [(expected, text) for (_, expected), text in zip(WRONG, found, strict=True)]
    assert [(expected, text) for expected, text in said if text is None or expected not in text] == []


def test_a_record_may_be_a_little_ahead_and_may_have_waited_for_its_cluster(spark):
    times = ["2026-11-21T01:12:03Z", "2026-10-01T00:00:00Z", "2020-01-01T00:00:00Z"]
    assert problems(spark, [changed(USAGE, "At", at) for at in times]) == [None] * 3


READ_AS_WORSE = [
    changed(USAGE, "Body.HardLimit.type", "MinFreeInodes"),
    changed(USAGE, "Body.Volumes.0.Status", "melted"),
    changed(USAGE, "Body.Volumes.0.Latched", "VERY"),
    changed(USAGE, "SchemaVersion", 99),
    changed(USAGE, "Body.Future", {"any": ["thing"]}),
    changed(ORDER, "Body.Key", "maintenance/2147483647"),
    changed(ORDER, "Body.Key", "relief/plan-99999999999"),
]


def test_what_a_reader_does_not_know_is_no_reason_to_refuse(spark):
    assert problems(spark, READ_AS_WORSE) == [None] * len(READ_AS_WORSE)


def validator() -> Draft202012Validator:
    documents = [json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.schema.json")]
    registry = Registry().with_resources(
        [(document["$id"], Resource.from_contents(document)) for document in documents]
    )
    history = next(document for document in documents if document["$id"] == "urn:kquota:schema:history:1")
    return Draft202012Validator(history, registry=registry, format_checker=FormatChecker())


def paths(document, prefix=""):
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield f"{prefix}{key}"
        if isinstance(value, dict | list):
            yield from paths(value, f"{prefix}{key}.")


# A value that is read as the worse by rule is not damaged.
# Repetitions in the body of a usage record are not read there.
REPEATED = ("Body.ClusterId", "Body.InstanceId", "Body.Sequence")
LOOSE = (
    *REPEATED,
    "type",
    "level",
    "Status",
    "Latched",
    "Role",
    "Applied",
    "LogDirs",
    "MountPoint",
    "VolumeId",
    "SchemaVersion",
)
VALUES = [None, -1, 2**63, "", [], {}, True, "2026-11-20T10:15:30+0130", "x" * 2000, 0.5]


def damaged():
    """Each key of each kind of record, with each of the values."""
    for document in (USAGE, DECISION, CLIENTS, ORDER, TOPICS, EXPIRY):
        for path in paths(document):
            if not any(word in path for word in LOOSE):
                yield from ((path, value, changed(document, path, value)) for value in VALUES)


def test_what_the_schema_refuses_never_reaches_a_table(spark):
    """By the samples the other way round holds; here the schema is shown many damaged records."""
    check = validator()
    cases = list(damaged())
    refused = [not is_fine(document, check) for _, _, document in cases]
    found = problems(spark, [document for _, _, document in cases])
    assert sum(refused) > 300
    assert [
        (document["Kind"], path, value)
        for (path, value, document), bad, text in zip(cases, refused, found, strict=True)
        if bad and text is None
    ] == []


def is_fine(document, check) -> bool:
    """Whether the schema only finds values that are read as something harmless: of a number, a list or an
    object its text where a text is wanted, and a null or an empty list where a key may be absent.
    """
    return all(
        error.instance in (None, []) or "string" in str(error.validator_value)
        for error in leaves(document, check)
        if error.validator_value != "null"  # of "this, or null": it is about this
    )


def leaves(document, check):
    def inner(error):
        return [leaf for child in error.context for leaf in inner(child)] if error.context else [error]

    return [leaf for error in check.iter_errors(document) for leaf in inner(error)]


def test_times_are_read_as_the_core_reads_them(spark):
    texts = [
        "2026-11-20T10:15:30.123Z",
        "2026-11-20T10:15Z",
        "2026-11-20T10:15:30,5Z",
        "2026-11-20T10:15:30.123456789Z",
        "2026-11-20T10:15:30+01",
        "2026-11-20T10:15:30.5-0130",
        "2026-11-20T10:15:30+05:45",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59-01:00",
        "2026-11-20T24:00:00Z",
        "2026-11-20T23:59:60Z",
        "2026-11-20 10:15:30Z",
        "2026-11-20T10:15:30",
        "2025-02-29T00:00:00Z",
        "2026-11-20",
        "now",
        "",
        None,
    ]

    def of_the_core(text):
        try:
            return (parse_utc(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        except InvalidTimestamp:
            return None

    frame = spark.createDataFrame(pa.table({"number": range(len(texts)), "text": texts}))
    rows = frame.select("number", F.unix_micros(timestamp(F.col("text"))).alias("micros")).collect()
    found = {texts[row["number"]]: row["micros"] for row in rows}
    assert found == {text: of_the_core(text) for text in texts}


@pytest.mark.parametrize("table_of", ["usage"])
def test_of_a_record_without_a_problem_the_bytes_are_dropped(spark, table_of):
    rows = read_records(messages(spark, [sample(table_of), b"nonsense"])).orderBy("kafka_offset").collect()
    assert [(row["key"], row["value"]) for row in rows] == [(None, None), (b"1", b"nonsense")]
