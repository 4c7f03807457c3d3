"""Records that lie where later ones of their keys no longer go."""

from __future__ import annotations

import pytest

from kquota.formats.records import TopicRecord
from kquota.kafka.misplaced import MisplacedRecords, partition_of

VALUE = b"{}"


def record(key: bytes | None, partition: int, value: bytes | None = VALUE) -> TopicRecord:
    return TopicRecord(key, value, None, partition)


@pytest.mark.parametrize(
    ("key", "digest"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_placed_as_kafka_s_own_tests_say(key: bytes, digest: int) -> None:
    """The digests are those of org.apache.kafka.common.utils.UtilsTest."""
    for partitions in (1, 2, 7, 1000):
        assert partition_of(key, partitions) == (digest & 0x7FFFFFFF) % partitions


@pytest.mark.accepts("F10")
@pytest.mark.parametrize("grown_first", [False, True])
def test_a_record_that_new_ones_do_not_replace_is_a_reason_to_refuse(grown_first: bool) -> None:
    records = MisplacedRecords("usage")
    records.partitions_are(4 if grown_first else 1)
    keys = [b"1", b"2", b"3", b"5", b"8"]
    moved = [key for key in keys if partition_of(key, 4) != 0]
    assert moved
    for key in keys:
        records.take(record(key, 0))
    assert (records.sentence is not None) is grown_first
    records.partitions_are(4)
    assert "Topic usage is refused: partitions were added" in str(records.sentence)
    assert "It has 4 now" in str(records.sentence)
    for key in moved:
        assert records.sentence is not None
        records.take(record(key, partition_of(key, 4), None))  # where an operator's tombstone goes
        assert records.sentence is not None, "the old record is still there"
        records.take(record(key, 0, None))
    assert records.sentence is None
    records.take(record(moved[0], 0))
    records.forget()
    assert records.sentence is None


def test_what_is_no_record_of_ours_may_lie_anywhere() -> None:
    records = MisplacedRecords("usage")
    records.partitions_are(4)
    for key in (None, b"", b"foreign", b"007", b"\xff"):
        for partition in range(4):
            records.take(record(key, partition))
    assert records.sentence is None


def test_invented_keys_take_a_bounded_memory() -> None:
    records = MisplacedRecords("usage")
    for number in range(20_000):
        records.take(record(b"%d" % number, 0))
    assert len(records._live) <= 10_000
