"""The topics of volumes and their expiry: sums, growth, bodies of messages, and a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kquota.disks.segments import BrokerRules, PartitionState
from kquota.retention.expiry import BUCKETS, LATER, MINUTE_MS
from kquota.retention.topic_sizes import (
    FILE_TOPICS,
    HISTORY_TOPICS,
    Contents,
    ContentsCount,
    contents_document,
    expiry_body,
    leaving_sentence,
    sizes_before,
    topics_body,
)
from tests.unit.policy.golden import Sample, complaints, each, refused_by_schema
from tests.unit.retention.test_expiry import DAY_MS, NOW, RULES, partition

AT = datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC)
NOTHING = dict.fromkeys((*BUCKETS, LATER), 0)


def counted(*partitions: tuple[str, int, str], known: bool = True) -> ContentsCount:
    """Partitions by topic, bytes of an expired segment, and log dir."""
    count = ContentsCount(BrokerRules(MINUTE_MS))
    for topic, size, log_dir in partitions:
        found = replace(partition((size - 10, 2 * DAY_MS), (0, 0)), topic=topic, log_dir=log_dir)
        count.add(found, RULES if known else None, NOW)
    return count


def contents(topics: int, *, span_seconds: float | None = None) -> Contents:
    count = counted(*((f"t{number:03}", 1000 + number, "/data/1") for number in range(topics)))
    before = None if span_seconds is None else {"t000": 500}
    return Contents(AT, span_seconds, (count.volume("/dev/sda", "id", ["/data/1"], before),))


def test_a_volume_has_the_partitions_of_its_log_dirs_the_largest_topic_first() -> None:
    count = counted(
        ("a", 1000, "/data/1"), ("b", 5000, "/data/1"), ("a", 7000, "/data/2"), ("c", 1, "/data/3")
    )
    volume = count.volume("/dev/sda", "id", ["/data/1", "/data/2"], {"a": 9000})
    assert [(one.name, one.size_bytes, one.grown_bytes) for one in volume.topics] == [
        ("a", 8020, -980),
        ("b", 5010, 5010),
    ]
    assert [one.soon_bytes for one in volume.topics] == [8000, 5000]
    assert volume.expiry.total_bytes == 13030
    assert volume.expiry.never_bytes == 30


@pytest.mark.parametrize(
    ("rules", "seconds"),
    [
        ({"retention_ms": 86_400_000}, 86_400.0),
        ({"retention_ms": 500, "cleanup_compact": True}, 0.5),
        ({"retention_ms": 86_400_000, "remote_storage": True, "local_retention_ms": 60_000}, 60.0),
        ({"retention_ms": None}, None),
        ({"retention_ms": 86_400_000, "cleanup_delete": False, "cleanup_compact": True}, None),
    ],
)
def test_a_topic_has_the_retention_after_which_its_records_leave_this_disk(
    rules: dict[str, Any], seconds: float | None
) -> None:
    count = ContentsCount(BrokerRules(MINUTE_MS))
    count.add(partition((500, 0)), replace(RULES, **rules), NOW)
    body = topics_body(Contents(AT, None, (count.volume("/dev/sda", "id", ["/data/1"], None),)))
    (topic,) = body["Volumes"][0]["Topics"]
    assert topic.get("RetentionSeconds") == seconds
    assert complaints("history", body, "topics") == []


def test_the_retention_of_a_topic_with_unknown_settings_is_not_known() -> None:
    (topic,) = counted(("a", 1000, "/data/1"), known=False).volume("/dev/sda", "id", ["/data/1"], None).topics
    assert topic.retention_ms is None


def test_growth_is_known_of_a_volume_that_was_looked_at_before() -> None:
    first = contents(2)
    assert all(one.grown_bytes is None for one in first.volumes[0].topics)
    assert sizes_before(first, "id") == {"t000": 1010, "t001": 1011}
    assert sizes_before(first, "another") is None
    assert sizes_before(None, "id") is None


@pytest.mark.parametrize("topics", [1, HISTORY_TOPICS, 300])
def test_the_bodies_fit_their_schema_and_add_up(topics: int) -> None:
    for span_seconds in (None, 600.0):
        found = contents(topics, span_seconds=span_seconds)
        body = topics_body(found)
        assert complaints("history", body, "topics") == []
        assert complaints("history", expiry_body(found), "expiry") == []
        document = contents_document(found)
        assert complaints("segments", json.loads(json.dumps(document))) == []
        (volume,) = body["Volumes"]
        assert len(volume["Topics"]) == min(topics, HISTORY_TOPICS)
        assert volume["Others"]["Count"] == topics - len(volume["Topics"])
        listed = [*volume["Topics"], volume["Others"]]
        assert sum(one["Bytes"] for one in listed) == found.volumes[0].expiry.total_bytes
        assert ("GrownBytes" in volume["Topics"][0]) is (span_seconds is not None)


def test_the_segments_file_names_more_topics_than_a_history_record() -> None:
    document = contents_document(contents(300))
    (volume,) = document["Topics"]["Volumes"]
    assert (len(volume["Topics"]), volume["Others"]["Count"]) == (FILE_TOPICS, 100)


@each("segments", "valid")
def test_a_valid_segments_file_is_accepted(golden: Sample) -> None:
    assert complaints("segments", golden.document) == []


@each("segments", "invalid")
def test_an_invalid_segments_file_is_refused(golden: Sample) -> None:
    assert refused_by_schema("segments", golden.text)


def test_stray_directories_are_no_topics_growth_but_a_part_of_the_volume() -> None:
    count = ContentsCount(BrokerRules(MINUTE_MS))
    count.add(partition((500, 0), state=PartitionState.STRAY), RULES, NOW)
    assert count.volume("/dev/sda", "id", ["/data/1"], None).expiry.stray_bytes == 510


@pytest.mark.parametrize(
    ("leaving", "deleted_bytes", "sentence"),
    [
        ({"10m": 3e9, "1h": 6e9}, 0, "24 GB to free; 9 GB of it leaves by itself within 1 hour"),
        ({"10m": 3e9, "1d": 30e9}, 0, "24 GB to free; all of it leaves by itself within 1 day"),
        ({"3d": 2e9}, 0, "24 GB to free; 2 GB of it leaves by itself within 3 days"),
        ({"later": 90e9}, 0, "24 GB to free; none of it leaves by itself"),
        ({}, 25e9, "24 GB to free; all of it leaves by itself within 10 minutes"),
    ],
)
def test_a_sentence_says_how_much_leaves_by_itself(
    leaving: dict[str, int], deleted_bytes: int, sentence: str
) -> None:
    assert leaving_sentence(24e9, NOTHING | leaving, deleted_bytes) == sentence
