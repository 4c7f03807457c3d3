"""The rows that the tables get of records."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from kquota_pipeline.ingest.records import read_records
from kquota_pipeline.ingest.rows import ROWS
from kquota_pipeline.tables import (
    CLIENTS,
    DECISIONS,
    EXPIRY,
    GROUPS,
    OPERATORS,
    QUARANTINE,
    REFUSALS,
    TOPICS,
    USAGE,
)
from tests.spark.ingest.messages import KAFKA_TIME, changed, messages, sample

AT = datetime(2026, 11, 20, 10, 15, 30, 123000, tzinfo=UTC)


@pytest.fixture
def rows_of(spark):
    def rows(table, *values):
        made = ROWS[table](read_records(messages(spark, values)))
        assert [(field.name, field.dataType) for field in made.schema] == [
            (field.name, field.dataType) for field in made.select(*table.schema.fieldNames()).schema
        ]
        assert {field.name: field.dataType for field in made.schema} == {
            field.name: field.dataType for field in table.schema
        }
        return [row.asDict(recursive=True) for row in made.orderBy("kafka_offset").collect()]

    return rows


def moment(row_value: datetime) -> datetime:
    """Spark gives local times without their zone."""
    return row_value.astimezone(UTC)


def test_a_usage_record_gives_a_row_per_volume_with_the_limits_in_force(rows_of):
    usage = sample("usage")
    second = {
        "VolumeName": "/dev/sdb1",
        "Capacity": 500,
        "Consumed": 500,
        "SoftLimit": {"type": "ConsumedSpace", "level": 450},
    }
    first, other = rows_of(USAGE, changed(usage, "Body.Volumes", [*usage["Body"]["Volumes"], second]))
    assert moment(first.pop("at")) == AT
    assert first == {
        "cluster_id": "4L6g3nShT-eMCtK--X86sw",
        "broker_id": 1,
        "instance_id": "7d1f6a52-2a3e-4a63-9d7a-6b4b4c2d1e0f",
        "sequence": 17,
        "day": date(2026, 11, 20),
        "volume_name": "/dev/sda1",
        "volume_id": "fs uuid",
        "log_dirs": ["/data/1"],
        "mount_point": "/data/1",
        "status": "ok",
        "role": "data",
        "latched": True,
        "capacity_bytes": 1_000_000,
        "consumed_bytes": 400_000,
        "hard_limit_type": "MinFreeBytes",
        "hard_limit_level": 10_000.0,
        "soft_limit_type": "MinFreePercentage",
        "soft_limit_level": 15.0,
        "applied_state": "OPEN",
        "applied_factor": 1.0,
        "applied_mechanism": "governor",
        "fill_ceiling_bytes_per_second": None,
        "topics": None,
        "topics_sequence": None,
        "kafka_partition": 3,
        "kafka_offset": 0,
    }
    assert (other["status"], other["role"], other["latched"], other["volume_id"]) == (
        "ok",
        "data",
        False,
        None,
    )
    assert (other["hard_limit_type"], other["hard_limit_level"]) == ("MinFreePercentage", 5.0)
    assert (other["soft_limit_type"], other["soft_limit_level"]) == ("ConsumedSpace", 450.0)


def test_topics_of_a_volume_are_named_or_referred_to_or_not_known(rows_of):
    usage = sample("usage-topics")
    incomplete = changed(usage, "Body.Volumes.0.TopicsComplete", False)
    found = rows_of(USAGE, usage, incomplete)
    assert [(row["topics"], row["topics_sequence"]) for row in found] == [
        (["orders", "payments.eu"], None),
        (None, 12),
        (None, None),
        (None, 12),
    ]
    assert {row["fill_ceiling_bytes_per_second"] for row in found} == {125_000_000}


def test_what_a_reader_does_not_know_of_a_volume_is_read_as_the_worse(rows_of):
    usage = sample("usage")
    (row,) = rows_of(
        USAGE,
        changed(
            changed(changed(usage, "Body.Volumes.0.Status", "melted"), "Body.Volumes.0.Latched", "VERY"),
            "Body.Volumes.0.Role",
            "metadata",
        ),
    )
    assert (row["status"], row["latched"], row["role"]) == ("failed", True, "metadata")


def test_a_decision_record_gives_a_row_with_its_reasons(rows_of):
    transition, held = rows_of(DECISIONS, sample("decision-transition"), sample("decision-held"))
    assert (transition["state"], transition["factor"], transition["mode"]) == ("THROTTLE", 0.42, "enforce")
    assert (transition["previous_state"], transition["fallback"], transition["hold"]) == ("OPEN", False, None)
    assert transition["reasons"] == [
        {"broker_id": 3, "volume": "/dev/sdb1", "cause": "soft", "headroom": 0.42}
    ]
    assert transition["undetermined"] == [{"broker_id": 7, "cause": "stale"}]
    assert transition["sentence"].startswith("THROTTLE to 0.42")
    assert held["hold"]["action"] in ("pause", "open")
    assert (transition["covered"], held["covered"]) == (None, None)
    (bounded,) = rows_of(DECISIONS, sample("decision-bounded"))
    assert (bounded["covered"], bounded["reasons"][0]["cause"]) == ([3, 4], "bounded")
    assert held["hold"]["until"] is not None


def test_a_clients_record_gives_a_row_per_client_or_one_without(rows_of):
    first, second, none = rows_of(CLIENTS, sample("clients"), sample("clients-none"))
    assert (first["user"], first["client_id"], first["limit_bytes_per_second"]) == (
        "CN=orders",
        "orders-1",
        4_200_000,
    )
    assert (second["user"], second["client_id"], second["limit_bytes_per_second"]) == ("", "", None)
    assert (first["fetch_bytes_per_second"], second["fetch_bytes_per_second"]) == (0, 250_000)
    assert {row["observed_bytes_per_second"] for row in (first, second)} == {5_500_000}
    assert (none["user"], none["produce_bytes_per_second"]) == (None, None)


def test_the_topics_of_a_client_are_those_that_its_record_names(rows_of):
    first, second = rows_of(CLIENTS, sample("clients-topics"))
    assert (first["topics"], second["topics"]) == (["orders", "payments.eu"], None)
    assert first["fetch_bytes_per_second"] is None, "of an agent that does not report it"


def test_a_clients_record_gives_a_row_per_refused_client_and_per_group(rows_of):
    often, once = rows_of(REFUSALS, sample("clients"), sample("clients-none"))
    assert (often["principal"], often["client_id"], often["requests"]) == ("User:CN=orders", "orders-1", 12)
    assert (once["principal"], once["client_id"], once["window_seconds"]) == ("User:ANONYMOUS", "", 30)
    etl, web = rows_of(GROUPS, sample("clients"), sample("clients-none"))
    assert (etl["group"], etl["throttled_seconds"], etl["limit_bytes_per_second"]) == ("etl", 0.5, 1e6)
    assert (etl["fetch_bytes_per_second"], web["fetch_bytes_per_second"]) == (300_000, None)
    assert (web["group"], web["refused_requests"], web["limit_bytes_per_second"]) == ("web", 0, None)


def test_an_operator_record_says_what_was_ordered_about_whom(rows_of):
    names = ("hold", "quarantine", "withdrawn", "decommission", "relief")
    found = rows_of(OPERATORS, *(sample(f"operator-{name}") for name in names))
    hold, quarantine, _, decommission, relief = found
    assert (relief["order_kind"], relief["subject_broker_id"], relief["plan_id"]) == (
        "relief",
        None,
        "2026-11-20.17",
    )
    assert {row["plan_id"] for row in found[:4]} == {None}
    assert (hold["order_kind"], hold["subject_broker_id"], hold["action"]) == ("hold", None, "pause")
    assert (hold["reason"], hold["actor"], moment(hold["until"])) == (
        "moving the log dirs",
        "alice",
        datetime(2026, 11, 20, 10, 45, 30, 123000, tzinfo=UTC),
    )
    assert quarantine["order_kind"] == "quarantine"
    assert quarantine["subject_broker_id"] == int(sample("operator-quarantine")["Body"]["Key"].split("/")[1])
    assert [row["withdrawn"] for row in found] == [False, False, True, False, False]
    assert decommission["order_kind"] == "decommission"
    assert decommission["subject_broker_id"] == int(sample("operator-decommission")["Body"]["Key"])


def test_a_topics_record_gives_a_row_per_topic_and_one_for_the_others(rows_of):
    orders, payments, others, *first_look = rows_of(
        TOPICS, sample("topics"), sample("topics-of-a-first-look")
    )
    assert moment(orders.pop("at")) == AT
    assert orders == {
        "cluster_id": "4L6g3nShT-eMCtK--X86sw",
        "broker_id": 1,
        "instance_id": "7d1f6a52-2a3e-4a63-9d7a-6b4b4c2d1e0f",
        "sequence": 3,
        "day": date(2026, 11, 20),
        "span_seconds": 600.012,
        "volume_name": "/dev/sda1",
        "volume_id": "8f0c7a61",
        "topic": "orders",
        "other_topics": None,
        "bytes": 24_000_000_000,
        "leaving_soon_bytes": 9_000_000_000,
        "grown_bytes": -120_000_000,
        "retention_seconds": 259_200.0,
        "kafka_partition": 3,
        "kafka_offset": 0,
    }
    assert (payments["topic"], payments["bytes"], payments["grown_bytes"]) == ("payments", 8_000_000_000, 0)
    assert (others["topic"], others["other_topics"], others["bytes"]) == (None, 41, 1_200_000)
    assert payments["retention_seconds"] is others["retention_seconds"] is None
    assert {(row["span_seconds"], row["grown_bytes"]) for row in first_look} == {(None, None)}
    assert [row["topic"] for row in first_look] == ["orders", "payments", None]


def test_a_volume_whose_topics_are_all_unnamed_keeps_its_bytes(rows_of):
    (row,) = rows_of(TOPICS, changed(sample("topics"), "Body.Volumes.0.Topics", []))
    assert (row["topic"], row["bytes"], row["leaving_soon_bytes"]) == (None, 1_200_000, 5_000)


def test_an_expiry_record_gives_a_row_per_volume_with_each_byte_once(rows_of):
    (row,) = rows_of(EXPIRY, sample("expiry"))
    sizes = {name: row[name] for name in row if name.endswith("_bytes")}
    assert sizes == {
        "leaving_10m_bytes": 3_000_000_000,
        "leaving_1h_bytes": 6_000_000_000,
        "leaving_6h_bytes": 0,
        "leaving_1d_bytes": 0,
        "leaving_3d_bytes": 0,
        "leaving_7d_bytes": 12_000_000_000,
        "leaving_30d_bytes": 0,
        "leaving_later_bytes": 0,
        "never_bytes": 9_001_200_000,
        "waits_for_upload_bytes": 0,
        "stray_bytes": 1_000_000_000,
        "future_bytes": 0,
        "deleted_bytes": 1_000_000_000,
        "unknown_bytes": 0,
    }
    assert (row["volume_name"], row["volume_id"], row["sequence"]) == ("/dev/sda1", "8f0c7a61", 3)


def test_bytes_of_times_that_are_not_known_here_leave_later(rows_of):
    expiry = sample("expiry")
    leaving = expiry["Body"]["Volumes"][0]["Leaving"]
    finer = {**leaving, "12h": 5, "90d": 7, "later": 11}
    most = {**dict.fromkeys(leaving, 0), "1h": 2**62, "12h": 2**62 - 1}
    found = rows_of(EXPIRY, *(changed(expiry, "Body.Volumes.0.Leaving", one) for one in (finer, most)))
    assert [row["leaving_later_bytes"] for row in found] == [23, 2**62 - 1]
    assert [row["leaving_1h_bytes"] for row in found] == [6_000_000_000, 2**62]


def test_a_malformed_record_is_kept_with_reason_and_offset(rows_of):
    whole, *bad = rows_of(QUARANTINE, b"nonsense", sample("usage"), b"x" * 100_000, None)
    assert moment(whole.pop("kafka_timestamp")) == KAFKA_TIME
    assert whole == {
        "day": date(2026, 11, 21),
        "kafka_topic": "history",
        "kafka_partition": 3,
        "kafka_offset": 0,
        "reason": "the value is no JSON object whose keys have the right types",
        "key": b"1",
        "value": b"nonsense",
    }
    assert [(row["kafka_offset"], row["value"] and len(row["value"])) for row in bad] == [
        (2, 65_536),
        (3, None),
    ]


def test_each_record_goes_to_one_table_alone(rows_of):
    values = [
        sample("usage"),
        sample("decision-sample"),
        sample("clients-none"),
        sample("operator-hold"),
        b"{",
        sample("topics"),
        sample("expiry"),
    ]
    assert {table.name: [row["kafka_offset"] for row in rows_of(table, *values)] for table in ROWS} == {
        "usage": [0],
        "decisions": [1],
        "clients": [2],
        "refusals": [],
        "groups": [],
        "operators": [3],
        "topics": [5, 5, 5],
        "expiry": [6],
        "quarantine": [4],
    }
