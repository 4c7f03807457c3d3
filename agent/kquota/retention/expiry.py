"""When the bytes on a disk leave it by themselves: Kafka's own deletion, played on what is there.

    gone = the broker's next check once a segment may go + file.delete.delay.ms

A segment may go once the log starts behind it, while the partition is larger than ``retention.bytes`` without
it, or ``retention.ms`` after its largest timestamp. Segments go in order: one whose time has not come keeps
all behind it. The active one goes, too, unless it is empty. Records that are yet to be written are no part
of this.

The check comes once in an interval. Where no check was seen, each time here is the latest at which the bytes
are gone, and up to an interval earlier is as likely.
Source: Kafka 4.x, ``UnifiedLog.deleteOldSegments``; docs/adr/0027-expiry.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kquota.disks.segments import BrokerRules, PartitionOnDisk, PartitionState, Segment, TopicRules

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
BUCKETS: Mapping[str, int] = {
    "10m": 10 * MINUTE_MS,
    "1h": HOUR_MS,
    "6h": 6 * HOUR_MS,
    "1d": DAY_MS,
    "3d": 3 * DAY_MS,
    "7d": 7 * DAY_MS,
    "30d": 30 * DAY_MS,
}
"""The bounds of the histogram, in milliseconds from now, by the names that people see."""
LATER = "later"


class DepartureCause(StrEnum):
    """Why Kafka deletes a segment."""

    LOG_START = "log-start"
    SIZE = "size"
    TIME = "time"
    DELETED = "deleted"
    """It is deleted already, and its files are removed after a while."""


class Departure(NamedTuple):
    """Bytes that leave the disk at a time, in milliseconds since 1970."""

    size_bytes: int
    at_ms: int
    why: DepartureCause


class Departures(NamedTuple):
    """The bytes that leave, by time; those that never do as things are; those that wait for their upload."""

    leaving: tuple[Departure, ...]
    never_bytes: int
    waits_for_upload_bytes: int


def departures(
    partition: PartitionOnDisk, rules: TopicRules, broker_rules: BrokerRules, now_ms: int
) -> Departures:
    """Return when the bytes of a partition leave, at `now_ms` (milliseconds since 1970).

    The bytes of the three parts add up to those of the partition. A segment that not all replicas have is
    among those that never leave.
    """
    delay_ms = rules.file_delete_delay_ms
    deleted = Departure(partition.removed_bytes, now_ms + delay_ms, DepartureCause.DELETED)
    if partition.state is PartitionState.DELETED:
        at_ms = now_ms + broker_rules.removal_delay_ms
        return Departures((Departure(partition.size_bytes, at_ms, DepartureCause.DELETED),), 0, 0)
    if partition.state is PartitionState.STRAY:
        return Departures((), partition.size_bytes, 0)
    found, waiting_bytes, left_bytes = [deleted], 0, partition.size_bytes - partition.removed_bytes
    for segment, end_offset, may_go_ms, why in going(partition, rules):
        left_bytes -= segment.size_bytes
        if why is not DepartureCause.LOG_START and _waits(
            partition.uploaded_to_offset, end_offset, rules, broker_rules, may_go_ms, now_ms
        ):
            waiting_bytes += segment.size_bytes
            continue
        at_ms = _check_after(max(may_go_ms, now_ms), broker_rules) + delay_ms
        if rules.is_tiered and segment.is_active:
            at_ms += broker_rules.retention_check_interval_ms  # rolled at one check, gone at a later one
        found.append(Departure(segment.size_bytes, at_ms, why))
    leaving = sorted((one for one in found if one.size_bytes), key=lambda one: one.at_ms)
    return Departures(tuple(leaving), left_bytes, waiting_bytes)


def going(
    partition: PartitionOnDisk, rules: TopicRules
) -> Iterator[tuple[Segment, int | None, int, DepartureCause]]:
    """Yield the segments that go, up to the first that stays: with their end (None of the last one), the time
    from which on they may go (0 for now), and why.
    """
    log_start, high_watermark = partition.log_start_offset, partition.high_watermark
    too_many_bytes = -1
    if rules.cleanup_delete and rules.on_disk_bytes is not None:
        too_many_bytes = sum(one.log_bytes for one in partition.segments) - rules.on_disk_bytes
    may_go_ms = 0
    ends: list[int | None] = [one.base_offset for one in partition.segments[1:]]
    # Not strict: a directory that has just been made has no segment yet.
    for segment, end in zip(partition.segments, [*ends, None], strict=False):
        too_many_bytes -= segment.log_bytes
        if end is None:
            behind = high_watermark is not None and high_watermark <= segment.base_offset
            if behind or not segment.log_bytes:
                return
        elif high_watermark is not None and end > high_watermark:
            return
        if end is not None and log_start is not None and end <= log_start:
            yield segment, end, may_go_ms, DepartureCause.LOG_START
        elif too_many_bytes >= 0:
            yield segment, end, may_go_ms, DepartureCause.SIZE
        elif rules.cleanup_delete and rules.on_disk_ms is not None:
            may_go_ms = max(may_go_ms, segment.newest_ms + rules.on_disk_ms + 1)
            yield segment, end, may_go_ms, DepartureCause.TIME
        else:
            return


def _waits(
    uploaded_to_offset: int | None,
    end_offset: int | None,
    rules: TopicRules,
    broker_rules: BrokerRules,
    may_go_ms: int,
    now_ms: int,
) -> bool:
    """Whether a segment that may go waits until it has been uploaded.

    Where it is not known how far the upload has come, one that should have been gone by now waits.
    """
    if not rules.is_tiered:
        return False
    if uploaded_to_offset is not None:
        return may_go_ms <= now_ms and (end_offset is None or end_offset - 1 > uploaded_to_offset)
    return 0 < may_go_ms < now_ms - 2 * broker_rules.retention_check_interval_ms


def _check_after(at_ms: int, rules: BrokerRules) -> int:
    """Return the first check from this time on, or the latest time at which it may come."""
    interval_ms = max(rules.retention_check_interval_ms, 1)
    if rules.checked_ms is None:
        return at_ms + interval_ms
    return at_ms + (rules.checked_ms - at_ms) % interval_ms


@dataclass(frozen=True, slots=True)
class Expiry:
    """Bytes by the time until which they leave: one number for each of BUCKETS, and one for later.

    ``unknown_bytes`` are of topics whose settings are not known. All other bytes are in exactly one part.
    """

    leaving_bytes: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    never_bytes: int = 0
    waits_for_upload_bytes: int = 0
    stray_bytes: int = 0
    future_bytes: int = 0
    deleted_bytes: int = 0
    unknown_bytes: int = 0

    def __add__(self, other: Expiry) -> Expiry:
        return Expiry(
            tuple(map(sum, zip(self.leaving_bytes, other.leaving_bytes, strict=True))),
            self.never_bytes + other.never_bytes,
            self.waits_for_upload_bytes + other.waits_for_upload_bytes,
            self.stray_bytes + other.stray_bytes,
            self.future_bytes + other.future_bytes,
            self.deleted_bytes + other.deleted_bytes,
            self.unknown_bytes + other.unknown_bytes,
        )

    @property
    def total_bytes(self) -> int:
        """All bytes that were looked at."""
        parked_bytes = self.stray_bytes + self.future_bytes + self.deleted_bytes + self.unknown_bytes
        return sum(self.leaving_bytes) + self.never_bytes + self.waits_for_upload_bytes + parked_bytes

    def leaving_within(self, bucket: str) -> int:
        """Return the bytes of partitions that leave until the end of a bucket, and those of deleted ones."""
        last = (*BUCKETS, LATER).index(bucket)
        return sum(self.leaving_bytes[: last + 1]) + self.deleted_bytes


def expiry_of(
    partition: PartitionOnDisk, rules: TopicRules | None, broker_rules: BrokerRules, now_ms: int
) -> Expiry:
    """Return when the bytes of a partition leave, at `now_ms`; without rules its topic's are not known."""
    match partition.state:
        case PartitionState.STRAY:
            return Expiry(stray_bytes=partition.size_bytes)
        case PartitionState.FUTURE:
            return Expiry(future_bytes=partition.size_bytes)
        case PartitionState.DELETED:
            return Expiry(deleted_bytes=partition.size_bytes)
    if rules is None:
        return Expiry(unknown_bytes=partition.size_bytes)
    found = departures(partition, rules, broker_rules, now_ms)
    leaving_bytes = [0] * (len(BUCKETS) + 1)
    for one in found.leaving:
        leaving_bytes[_bucket(one.at_ms - now_ms)] += one.size_bytes
    return Expiry(tuple(leaving_bytes), found.never_bytes, found.waits_for_upload_bytes)


def _bucket(in_ms: int) -> int:
    return next((index for index, bound in enumerate(BUCKETS.values()) if in_ms <= bound), len(BUCKETS))
