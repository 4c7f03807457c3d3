"""The defect of a malformed history record, as one column: null, or the wrong key and the allowed values.

These are the rules of `schemas/history.schema.json` and of the prose with it. As everywhere, an unknown
limit type or an unknown status of a volume is no reason to refuse a usage record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from kquota.retention.expiry import BUCKETS, LATER
from kquota_pipeline.ingest.timestamps import timestamp

MAX_TEXT = 1024
_MAX_TOPIC_NAME = 249
_MAX_BYTES = 2**63 - 1
_KINDS = ("usage", "decision", "clients", "operator", "topics", "expiry")
_NO_OBJECT = "the value is no JSON object whose keys have the right types"
_STATES = ("OPEN", "THROTTLE", "PAUSE")
_CAUSES = ("soft", "hard", "latched", "fallback", "hold", "own", "bounded")
_UNDETERMINED_CAUSES = (
    *("missing", "stale", "clock", "tombstone", "malformed", "future", "failed", "invalid-limit", "revoked"),
    *("topic-refused", "not-read", "no-broker-list"),
)
# Of an expiry record's volume: the times of its Leaving, and its other figures.
_TIMES = (*BUCKETS, LATER)
_STAYING = ("NeverBytes", "WaitsForUploadBytes", "StrayBytes", "FutureBytes", "DeletedBytes", "UnknownBytes")
_ORDER_KEY = (
    r"^(hold|(quarantine|maintenance)/(0|[1-9][0-9]{0,9})|relief/[A-Za-z0-9._-]{1,64}|0|[1-9][0-9]{0,9})$"
)
BROKER_OF_KEY = r"^(?:(?:quarantine|maintenance)/)?([0-9]+)$"
_MAX_BROKER_ID = 2**31 - 1
# An agent's clock may be ahead; one that has never been set is years behind.
_MINUTES_AHEAD, _FIRST_YEAR = 10, 2020
_UNPRINTABLE = r"[\x00-\x1f\x7f-\x9f]"
_Rule = tuple[Column, str]


def problem(value: Column, record: Column, contents: Column, at: Column, arrived_at: Column) -> Column:
    """Return the first problem of a record; null if it has none.

    `value` are the bytes of the message, `record` its parsed fields (`ingest.records.VALUE`), `contents`
    those of kind topics (`TOPICS_VALUE`), `at` the time read of its At, `arrived_at` Kafka's own time of the
    message.
    """
    kind, body = record["Kind"], record["Body"]
    return F.coalesce(
        _first(
            (value.isNull(), "no value: a tombstone is no history record"),
            (record.isNull(), "the value is no JSON object in UTF-8"),
            (record["_unreadable"].isNotNull(), _NO_OBJECT),
            (kind.isNull(), "Kind is missing"),
            (~_in(kind, _KINDS), "Kind: usage, decision, clients, operator, topics or expiry"),
            (~_at_least(record["SchemaVersion"], 1), "SchemaVersion: a whole number from 1 on"),
            (~_text(record["ClusterId"]), "ClusterId: a text of 1 to 1024 characters"),
            (~_at_least(record["BrokerId"], 0), "BrokerId: a whole number from 0 to 2147483647"),
            (~_text(record["InstanceId"]), "InstanceId: a text of 1 to 1024 characters"),
            (~_at_least(record["Sequence"], 0), "Sequence: a whole number from 0 to 9223372036854775807"),
            (at.isNull(), "At: an ISO 8601 time with its offset from UTC"),
            # One record from next year would be the end of every series.
            (
                (at > arrived_at + F.expr(f"INTERVAL {_MINUTES_AHEAD} MINUTES")) | (F.year(at) < _FIRST_YEAR),
                f"At: a time from {_FIRST_YEAR} on, and at most {_MINUTES_AHEAD} minutes after Kafka's own",
            ),
            (body.isNull(), "Body: an object"),
        ),
        F.when(kind == "usage", _usage(body, record["At"]))
        .when(kind == "decision", _decision(body))
        .when(kind == "clients", _clients(body))
        .when(kind == "topics", _topics(contents))
        .when(kind == "expiry", _expiry(body))
        .otherwise(_operator(body)),
    )


def _usage(body: Column, at: Column) -> Column:
    volumes = body["Volumes"]
    return _first(
        # Usually it is the record's At, which has been read already.
        (
            F.when(body["SnapshotAt"] == at, F.lit(False)).otherwise(timestamp(body["SnapshotAt"]).isNull()),
            "Body.SnapshotAt: an ISO 8601 time with its offset from UTC",
        ),
        (_no_limit(body["HardLimit"]), "Body.HardLimit: {type, level}"),
        (_no_limit(body["SoftLimit"]), "Body.SoftLimit: {type, level}"),
        (~F.coalesce(F.size(volumes).between(1, 4096), F.lit(False)), "Body.Volumes: 1 to 4096 volumes"),
        (
            # One look at all names: in a lambda, Spark would interpret it for each volume.
            F.exists(volumes, _bad_volume) | F.concat_ws("", volumes["VolumeName"]).rlike(_UNPRINTABLE),
            "Body.Volumes: each has VolumeName (1 to 1024 printable characters), "
            "Capacity and Consumed (bytes, Consumed at most Capacity), and limits with type and level",
        ),
        (_twice(volumes, "VolumeName"), "Body.Volumes: a VolumeName stands twice"),
    )


def _bad_volume(volume: Column) -> Column:
    return ~F.coalesce(
        _text(volume["VolumeName"])
        & (volume["Consumed"] >= 0)
        & (volume["Consumed"] <= volume["Capacity"])
        & (volume["HardLimit"].isNull() | ~_no_limit(volume["HardLimit"]))
        & (volume["SoftLimit"].isNull() | ~_no_limit(volume["SoftLimit"])),
        F.lit(False),
    )


def _no_limit(limit: Column) -> Column:
    return limit["type"].isNull() | limit["level"].isNull()


def _decision(body: Column) -> Column:
    state, factor = body["State"], body["Factor"]
    fits = (
        F.when(state == "OPEN", factor == 1)
        .when(state == "PAUSE", factor == 0)
        .otherwise((factor > 0) & (factor < 1))
    )
    return _first(
        (~_in(state, _STATES), "Body.State: OPEN, THROTTLE or PAUSE"),
        (~F.coalesce(fits, F.lit(False)), "Body.Factor: 1 in OPEN, 0 in PAUSE, between in THROTTLE"),
        (body["Fallback"].isNull(), "Body.Fallback: true or false"),
        (~_in(body["Mode"], ("observe", "enforce")), "Body.Mode: observe or enforce"),
        (
            body["PreviousState"].isNotNull() & ~_in(body["PreviousState"], _STATES),
            "Body.PreviousState: OPEN, THROTTLE, PAUSE or absent",
        ),
        (body["Sentence"].isNull(), "Body.Sentence: a text"),
        (
            _list_of(body["Reasons"], 64, _bad_reason),
            "Body.Reasons: at most 64 of {BrokerId, Volume, Cause, Headroom}",
        ),
        (
            _list_of(body["Undetermined"], 64, _bad_undetermined),
            "Body.Undetermined: at most 64 of {BrokerId, Cause}",
        ),
        (
            body["Hold"].isNotNull() & _bad_order(body["Hold"], F.lit(True)),
            "Body.Hold: null or {Action: pause or open, Until}",
        ),
    )


def _bad_reason(reason: Column) -> Column:
    return (
        ~_in(reason["Cause"], _CAUSES)
        | ~F.coalesce(reason["Headroom"].between(0, 1), F.lit(False))
        | _below_zero(reason["BrokerId"])
    )


def _bad_undetermined(entry: Column) -> Column:
    return ~_in(entry["Cause"], _UNDETERMINED_CAUSES) | _below_zero(entry["BrokerId"])


def _clients(body: Column) -> Column:
    return _first(
        (~(_at_least(body["WindowSeconds"], 0) & (body["WindowSeconds"] > 0)), "Body.WindowSeconds: above 0"),
        (
            _list_of(body["Clients"], 1000, _bad_client),
            "Body.Clients: at most 1000 of {User, ClientId, "
            "ProduceBytesPerSecond, ThrottledSeconds}, figures from 0 on",
        ),
        (_twice(body["Clients"], "User", "ClientId"), "Body.Clients: a user and client id stand twice"),
        (_below_zero(body["ObservedBytesPerSecond"]), "Body.ObservedBytesPerSecond: from 0 on"),
        (_below_zero(body["BaselineBytesPerSecond"]), "Body.BaselineBytesPerSecond: from 0 on"),
        (_below_zero(body["OmittedClients"]), "Body.OmittedClients: from 0 on"),
        (
            body["Refused"].isNotNull() & _list_of(body["Refused"], 1000, _bad_refusal),
            "Body.Refused: at most 1000 of {Principal, ClientId, Requests}, Requests from 1 on",
        ),
        (_twice(body["Refused"], "Principal", "ClientId"), "Body.Refused: a client stands twice"),
        (
            body["Groups"].isNotNull() & _list_of(body["Groups"], 200, _bad_group),
            "Body.Groups: at most 200 of {Name, ProduceBytesPerSecond, ThrottledSeconds, RefusedRequests}, "
            "figures from 0 on",
        ),
        (_twice(body["Groups"], "Name"), "Body.Groups: a Name stands twice"),
    )


def _bad_client(client: Column) -> Column:
    return ~(
        client["User"].isNotNull()
        & client["ClientId"].isNotNull()
        & _at_least(client["ProduceBytesPerSecond"], 0)
        & ~_below_zero(client["FetchBytesPerSecond"])
        & _at_least(client["ThrottledSeconds"], 0)
        & ~_below_zero(client["LimitBytesPerSecond"])
    )


def _bad_refusal(client: Column) -> Column:
    return ~(
        client["Principal"].isNotNull() & client["ClientId"].isNotNull() & _at_least(client["Requests"], 1)
    )


def _bad_group(group: Column) -> Column:
    return ~(
        _text(group["Name"])
        & _at_least(group["ProduceBytesPerSecond"], 0)
        & ~_below_zero(group["FetchBytesPerSecond"])
        & _at_least(group["ThrottledSeconds"], 0)
        & _at_least(group["RefusedRequests"], 0)
        & ~_below_zero(group["LimitBytesPerSecond"])
    )


def _topics(contents: Column) -> Column:
    body = contents["Body"]
    volumes = body["Volumes"]
    return _first(
        (contents["_unreadable"].isNotNull(), _NO_OBJECT),
        (_below_zero(body["SpanSeconds"]), "Body.SpanSeconds: from 0 on"),
        (
            _list_of(volumes, 4096, _bad_contents),
            "Body.Volumes: at most 4096 of {VolumeName, Topics, Others}, each with at most 200 topics of "
            "{Topic, Bytes, LeavingSoonBytes, RetentionSeconds}, figures from 0 on",
        ),
        (_twice(volumes, "VolumeName"), "Body.Volumes: a VolumeName stands twice"),
        (
            F.exists(volumes, lambda volume: _twice(volume["Topics"], "Topic")),
            "Body.Volumes: a Topic stands twice",
        ),
    )


def _bad_contents(volume: Column) -> Column:
    others = volume["Others"]
    return (
        ~_text(volume["VolumeName"])
        | _list_of(volume["Topics"], 200, _bad_topic)
        | ~_at_least(others["Count"], 0)
        | _bad_sizes(others)
    )


def _bad_topic(topic: Column) -> Column:
    return (
        ~_text(topic["Topic"], _MAX_TOPIC_NAME) | _bad_sizes(topic) | _below_zero(topic["RetentionSeconds"])
    )


def _bad_sizes(sizes: Column) -> Column:
    return ~(_at_least(sizes["Bytes"], 0) & _at_least(sizes["LeavingSoonBytes"], 0))


def _expiry(body: Column) -> Column:
    volumes = body["Volumes"]
    return _first(
        (
            _list_of(volumes, 4096, _bad_expiry),
            "Body.Volumes: at most 4096 of {VolumeName, Leaving}, bytes from 0 on, those of Leaving "
            f"for all of {', '.join(_TIMES)}, and at most {_MAX_BYTES} together",
        ),
        (_twice(volumes, "VolumeName"), "Body.Volumes: a VolumeName stands twice"),
    )


def _bad_expiry(volume: Column) -> Column:
    leaving = volume["Leaving"]
    return (
        ~_text(volume["VolumeName"])
        | reduce(Column.__or__, [leaving[name].isNull() for name in _TIMES])
        | F.exists(F.map_values(leaving), lambda size: size < 0)
        | (sum_of_bytes(leaving) > F.lit(_MAX_BYTES))
        | reduce(Column.__or__, [_below_zero(volume[name]) for name in _STAYING])
    )


def sum_of_bytes(leaving: Column) -> Column:
    """Return the sum of an expiry record's Leaving over all times, as a decimal: a long may be too small."""
    wide = "decimal(38,0)"
    return F.aggregate(
        F.map_values(leaving),
        F.lit(0).cast(wide),
        lambda total, size: (total + F.coalesce(size, F.lit(0))).cast(wide),
    )


def _operator(body: Column) -> Column:
    key, order = body["Key"], body["Order"]
    broker_id = F.regexp_extract(key, BROKER_OF_KEY, 1)
    too_large = F.coalesce(broker_id.try_cast("bigint") > _MAX_BROKER_ID, F.lit(False))
    return _first(
        (
            ~F.coalesce(key.rlike(_ORDER_KEY), F.lit(False)) | too_large,
            "Body.Key: hold, quarantine/<id>, maintenance/<id>, relief/<plan> or a broker id",
        ),
        (
            order.isNotNull() & _bad_order(order, key == "hold"),
            "Body.Order: null or {Until}, and of a hold Action: pause or open",
        ),
    )


def _bad_order(order: Column, is_hold: Column) -> Column:
    return timestamp(order["Until"]).isNull() | (is_hold & ~_in(order["Action"], ("pause", "open")))


def _first(*rules: _Rule) -> Column:
    (condition, text), *others = rules
    found = F.when(condition, F.lit(text))
    for condition, text in others:
        found = found.when(condition, F.lit(text))
    return found


def _in(value: Column, allowed: Iterable[str]) -> Column:
    return F.coalesce(value.isin(*allowed), F.lit(False))


def _text(value: Column, longest: int = MAX_TEXT) -> Column:
    return F.coalesce(F.char_length(value).between(1, longest), F.lit(False))


def _at_least(value: Column, smallest: int) -> Column:
    """Whether a value is there, finite, and not below `smallest`."""
    return F.coalesce((value >= smallest) & (value < F.lit(float("inf"))), F.lit(False))


def _below_zero(value: Column) -> Column:
    """Whether a value is there and not a finite one from 0 on."""
    return value.isNotNull() & ~_at_least(value, 0)


def _list_of(entries: Column, most: int, bad: Callable[[Column], Column]) -> Column:
    """Whether it is no list, too long a one, or has a null or bad entry."""
    any_bad = F.exists(entries, lambda entry: entry.isNull() | bad(entry))
    return ~F.coalesce((F.size(entries) <= most) & ~any_bad, F.lit(False))


def _twice(entries: Column, *keys: str) -> Column:
    if len(keys) == 1:
        identities = entries[keys[0]]  # of plain texts, which Spark compares much faster than structs
    else:
        identities = F.transform(entries, lambda entry: F.struct(*(entry[key] for key in keys)))
    return F.size(F.array_distinct(identities)) < F.size(entries)
