"""When bytes leave a disk, against Kafka's own procedure, played check by check."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks.segments import BrokerRules, PartitionOnDisk, PartitionState, Segment, TopicRules
from kquota.retention.expiry import (
    BUCKETS,
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    Departure,
    DepartureCause,
    Departures,
    Expiry,
    departures,
    expiry_of,
)
from tests.unit.policy.clusters import bounded

NOW = 10 * DAY_MS
EVERY_5_MINUTES = BrokerRules(5 * MINUTE_MS)
RULES = TopicRules(
    cleanup_delete=True,
    cleanup_compact=False,
    retention_ms=DAY_MS,
    retention_bytes=None,
    segment_ms=HOUR_MS,
    segment_bytes=1000,
    file_delete_delay_ms=MINUTE_MS,
)


def partition(*segments: tuple[int, int], **other: object) -> PartitionOnDisk:
    """Return a partition of segments (bytes of the log, milliseconds since the newest record).

    The indexes of each have 10 bytes, and each has 100 offsets.
    """
    made = tuple(
        Segment(100 * index, size + 10, NOW - age_ms, index == len(segments) - 1, size)
        for index, (size, age_ms) in enumerate(segments)
    )
    return replace(PartitionOnDisk("t", 0, "/data/1", PartitionState.LOG, made), **other)  # type: ignore[arg-type]


def played(
    found: PartitionOnDisk, rules: TopicRules, check_ms: int, delay_ms: int, checks: int
) -> list[Departure]:
    """Kafka's deletion, as its log does it at each check: below the start, then by size, then by time."""
    left, gone = list(found.segments), []

    def delete(why: DepartureCause, at_ms: int) -> None:
        too_many = sum(one.log_bytes for one in left) - (rules.retention_bytes or 0)
        while left:
            first, end = left[0], left[1].base_offset if len(left) > 1 else None
            if end is None and first.log_bytes == 0:
                return
            # The last segment is known to have one record, and not how many.
            least_end = first.base_offset + 1 if end is None else end
            if found.high_watermark is not None and found.high_watermark < least_end:
                return
            too_many -= first.log_bytes
            may_go = {
                DepartureCause.LOG_START: end is not None
                and found.log_start_offset is not None
                and end <= found.log_start_offset,
                DepartureCause.SIZE: rules.cleanup_delete
                and rules.retention_bytes is not None
                and too_many >= 0,
                DepartureCause.TIME: rules.cleanup_delete
                and rules.retention_ms is not None
                and at_ms - first.newest_ms > rules.retention_ms,
            }[why]
            if not may_go:
                return
            gone.append(Departure(left.pop(0).size_bytes, at_ms + delay_ms, why))

    for number in range(checks):
        for why in (DepartureCause.LOG_START, DepartureCause.SIZE, DepartureCause.TIME):
            delete(why, check_ms + number * 10)
    return gone


small = st.integers(0, 30)
found_partitions = st.builds(
    lambda sizes, **other: partition(*sizes, **other),
    st.lists(st.tuples(small, st.integers(-20, 60)), min_size=1, max_size=6),
    log_start_offset=st.none() | st.integers(0, 600),
    high_watermark=st.none() | st.integers(0, 600),
)
found_rules = st.builds(
    replace,
    st.just(replace(RULES, file_delete_delay_ms=3)),
    cleanup_delete=st.booleans(),
    retention_ms=st.none() | st.integers(0, 60),
    retention_bytes=st.none() | st.integers(0, 90),
)


@given(found=found_partitions, rules=found_rules, phase_ms=st.integers(0, 9))
@bounded(500)
def test_segments_leave_at_the_check_at_which_kafka_deletes_them(
    found: PartitionOnDisk, rules: TopicRules, phase_ms: int
) -> None:
    expected = played(found, rules, NOW + phase_ms, 3, checks=40)
    seen = departures(found, rules, BrokerRules(10, NOW + phase_ms - 70), NOW)
    assert sorted(seen.leaving) == sorted(expected)
    assert seen.never_bytes == found.size_bytes - sum(one.size_bytes for one in expected)
    # Without a check that was seen, bytes are gone at the latest when that says, and no interval earlier.
    latest = departures(found, rules, BrokerRules(10), NOW)
    assert latest.never_bytes == seen.never_bytes
    for one, other in zip(latest.leaving, seen.leaving, strict=True):
        assert one.at_ms - 10 <= other.at_ms <= one.at_ms


@given(
    found=found_partitions,
    rules=found_rules,
    tiered=st.booleans(),
    uploaded=st.none() | st.integers(0, 600),
    state=st.sampled_from(PartitionState),
    removed=small,
)
@bounded(300)
def test_each_byte_is_in_one_part(
    found: PartitionOnDisk,
    rules: TopicRules,
    uploaded: int | None,
    state: PartitionState,
    removed: int,
    *,
    tiered: bool,
) -> None:
    found = replace(found, state=state, uploaded_to_offset=uploaded, removed_bytes=removed, other_bytes=7)
    rules = replace(rules, remote_storage=tiered, local_retention_ms=rules.retention_ms)
    seen = departures(found, rules, BrokerRules(10), NOW)
    leaving_bytes = sum(one.size_bytes for one in seen.leaving)
    assert leaving_bytes + seen.never_bytes + seen.waits_for_upload_bytes == found.size_bytes
    assert all(one.at_ms >= NOW for one in seen.leaving)
    assert list(seen.leaving) == sorted(seen.leaving, key=lambda one: one.at_ms)
    assert expiry_of(found, rules, BrokerRules(10), NOW).total_bytes == found.size_bytes


def test_an_expired_segment_leaves_after_the_next_check_and_the_delay() -> None:
    seen = departures(partition((500, 2 * DAY_MS), (500, 0)), RULES, EVERY_5_MINUTES, NOW)
    at_ms = NOW + DAY_MS + 1 + 6 * MINUTE_MS
    assert seen == Departures(
        (
            Departure(510, NOW + 6 * MINUTE_MS, DepartureCause.TIME),
            Departure(510, at_ms, DepartureCause.TIME),
        ),
        0,
        0,
    )


def test_a_future_timestamp_keeps_all_segments_behind_it() -> None:
    seen = departures(partition((500, -3 * DAY_MS), (500, 2 * DAY_MS)), RULES, EVERY_5_MINUTES, NOW)
    assert [one.at_ms for one in seen.leaving] == [NOW + 4 * DAY_MS + 1 + 6 * MINUTE_MS] * 2


def test_a_directory_without_a_segment_yet_has_nothing_that_leaves() -> None:
    assert departures(partition(), RULES, EVERY_5_MINUTES, NOW) == Departures((), 0, 0)


def test_nothing_goes_that_the_replicas_in_sync_lack() -> None:
    old = partition((100, 2 * DAY_MS), (100, 2 * DAY_MS), (100, 2 * DAY_MS))
    for high_watermark, gone in ((None, 3), (250, 3), (200, 2), (199, 1), (99, 0)):
        seen = departures(replace(old, high_watermark=high_watermark), RULES, BrokerRules(1), NOW)
        assert (len(seen.leaving), seen.never_bytes) == (gone, (3 - gone) * 110), high_watermark
    only = partition((100, 2 * DAY_MS), high_watermark=0)
    assert departures(only, RULES, BrokerRules(1), NOW).never_bytes == 110


def test_compacted_data_and_an_empty_active_segment_never_leave() -> None:
    compacted = replace(RULES, cleanup_delete=False, cleanup_compact=True, retention_bytes=0)
    assert (
        departures(partition((500, 2 * DAY_MS), (500, 0)), compacted, EVERY_5_MINUTES, NOW).never_bytes
        == 1020
    )
    seen = departures(partition((500, 2 * DAY_MS), (0, 2 * DAY_MS)), RULES, EVERY_5_MINUTES, NOW)
    assert (len(seen.leaving), seen.never_bytes) == (1, 10)


def test_compact_and_delete_follows_the_time() -> None:
    both = replace(RULES, cleanup_compact=True)
    assert departures(partition((500, 2 * DAY_MS)), both, EVERY_5_MINUTES, NOW).never_bytes == 0


def test_tiered_segments_leave_by_the_local_retention_once_they_are_uploaded() -> None:
    tiered = replace(RULES, remote_storage=True, local_retention_ms=HOUR_MS)
    found = partition((500, 8 * MINUTE_MS + HOUR_MS), (500, 8 * MINUTE_MS + HOUR_MS), (500, 0))
    seen = departures(replace(found, uploaded_to_offset=99), tiered, EVERY_5_MINUTES, NOW)
    assert seen.waits_for_upload_bytes == 510
    # The active one is rolled at one check, and goes at another.
    assert [one.at_ms - NOW for one in seen.leaving] == [6 * MINUTE_MS, HOUR_MS + 1 + 11 * MINUTE_MS]
    assert departures(found, tiered, EVERY_5_MINUTES, NOW).waits_for_upload_bytes == 0
    late = partition((500, 11 * MINUTE_MS + HOUR_MS), (500, 0))
    assert departures(late, tiered, EVERY_5_MINUTES, NOW).waits_for_upload_bytes == 510
    # A segment before the start of the log need not be uploaded.
    begun = replace(late, uploaded_to_offset=0, log_start_offset=100)
    assert departures(begun, tiered, EVERY_5_MINUTES, NOW).waits_for_upload_bytes == 0


@pytest.mark.parametrize(
    ("state", "part"),
    [
        (PartitionState.STRAY, "stray_bytes"),
        (PartitionState.FUTURE, "future_bytes"),
        (PartitionState.DELETED, "deleted_bytes"),
    ],
)
def test_what_is_no_partition_in_use_has_a_part_of_its_own(state: PartitionState, part: str) -> None:
    found = partition((500, 2 * DAY_MS), (500, 0), state=state, other_bytes=5)
    assert expiry_of(found, None, EVERY_5_MINUTES, NOW) == replace(Expiry(), **{part: 1025})


def test_a_removed_replica_leaves_after_the_brokers_delay_and_not_its_topics() -> None:
    removed = partition((500, 0), state=PartitionState.DELETED)
    found = departures(removed, RULES, replace(EVERY_5_MINUTES, removal_delay_ms=7), NOW)
    assert [(one.size_bytes, one.at_ms - NOW) for one in found.leaving] == [(510, 7)]


def test_a_topic_without_settings_is_unknown() -> None:
    assert expiry_of(partition((500, 0)), None, EVERY_5_MINUTES, NOW) == Expiry(unknown_bytes=510)


def test_the_buckets_say_until_when_bytes_leave() -> None:
    every_minute = BrokerRules(MINUTE_MS)
    ages_ms = (DAY_MS, DAY_MS - 30 * MINUTE_MS, DAY_MS - 5 * HOUR_MS, 0)
    seen = expiry_of(partition(*((100, age_ms) for age_ms in ages_ms)), RULES, every_minute, NOW)
    assert dict(zip(BUCKETS, seen.leaving_bytes, strict=False)) == {
        "10m": 110,
        "1h": 110,
        "6h": 110,
        "1d": 0,
        "3d": 110,
        "7d": 0,
        "30d": 0,
    }
    assert [seen.leaving_within(bucket) for bucket in ("10m", "6h", "later")] == [110, 330, 440]
