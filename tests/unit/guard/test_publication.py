"""When a record is due."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from kquota.disks.observation import VolumeObservation
from kquota.guard.own_record import own_record
from kquota.guard.publication import PublicationSchedule, regular_interval_seconds
from kquota.policy.limits import Limit, LimitType
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import VolumeRole
from kquota.settings.model import LimitsSection
from tests.unit.guard.cycles import SETTINGS, volume

NOW = datetime(2026, 11, 20, tzinfo=UTC)


# A million bytes from soft to hard limit: one byte more consumed is a millionth of headroom less.
MILLION_BETWEEN = LimitsSection(
    hard=Limit.of(LimitType.MIN_FREE_BYTES, 10**6), soft=Limit.of(LimitType.MIN_FREE_BYTES, 2 * 10**6)
)


def record(*volumes: VolumeObservation, limits: LimitsSection = SETTINGS.limits) -> UsageRecord:
    return own_record(volumes, limits, (), release_margin=Fraction(1, 10), snapshot_at=NOW)


def test_a_record_says_where_its_volumes_are_mounted_so_that_limits_can_be_set_by_it():
    assert [v.mount_point for v in record(volume(50)).volumes] == ["/mnt/dev/sda1"]


def published(*volumes: VolumeObservation, state: str | None = "OPEN") -> PublicationSchedule:
    schedule = PublicationSchedule(interval_seconds=5)
    schedule.published(record(*volumes), state, 100.0)
    return schedule


@pytest.mark.accepts("A11")
def test_the_first_record_is_due_and_then_one_each_interval() -> None:
    assert PublicationSchedule(5).due(record(volume(50)), None, 0.0)
    schedule = published(volume(50))
    assert not schedule.due(record(volume(50)), "OPEN", 104.9)
    assert schedule.due(record(volume(50)), "OPEN", 105.0)


@pytest.mark.parametrize(
    ("brokers", "interval_seconds", "staleness_seconds", "expected_seconds"),
    [
        (3, 5, 60, 5),
        (250, 5, 60, 5),
        (500, 5, 60, 10),  # 50 reports a second of all together
        (1000, 5, 60, 15),  # and yet four until the record is stale
        (1000, 5, 120, 20),
        (1000, 30, 60, 30),  # the requested interval is no less
    ],
)
def test_in_a_large_cluster_each_reports_less_often(
    brokers: int, interval_seconds: float, staleness_seconds: float, expected_seconds: float
) -> None:
    assert regular_interval_seconds(brokers, interval_seconds, staleness_seconds) == expected_seconds


@pytest.mark.parametrize(
    ("changed", "applied"),
    [
        (volume(15), "OPEN"),  # another state
        (volume(50, volume_id="another"), "OPEN"),
        (volume(50, name="/dev/sdb1"), "OPEN"),
        (volume(50, offline_log_dirs=("/mnt/dev/sda1/kafka",)), "OPEN"),
        (volume(50), "PAUSE"),
        (volume(50), None),
    ],
)
def test_a_change_is_due_at_once(changed: VolumeObservation, applied: str | None) -> None:
    schedule = published(volume(50))
    assert schedule.due(record(changed), applied, 100.01)
    assert schedule.is_news(record(changed), applied)


def test_more_consumed_without_a_change_of_state_can_wait() -> None:
    assert not published(volume(50)).due(record(volume(40)), "OPEN", 104)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_factor_that_moved_by_a_hundredth_is_due_after_a_second(direction: int) -> None:
    def of(headroom_millionths: int) -> UsageRecord:
        consumed = 2 * 10**6 - headroom_millionths
        return record(volume(0, capacity_bytes=3 * 10**6, consumed_bytes=consumed), limits=MILLION_BETWEEN)

    schedule = PublicationSchedule(5)
    schedule.published(of(500_000), "THROTTLE", 100.0)
    assert not schedule.due(of(500_000 + direction * 9_999), "THROTTLE", 104.0)
    moved = of(500_000 + direction * 10_000)
    assert not schedule.is_news(moved, "THROTTLE"), "its readers may rest, however many volumes move"
    assert not schedule.due(moved, "THROTTLE", 100.9)
    assert schedule.due(moved, "THROTTLE", 101.0)


def test_a_factor_that_has_no_vote_can_wait() -> None:
    """A volume that holds the metadata log alone slows no producer."""
    schedule = published(volume(19, role=VolumeRole.METADATA))
    assert not schedule.due(record(volume(11, role=VolumeRole.METADATA)), "OPEN", 104.0)


def test_a_forced_record_is_due_whatever_it_says() -> None:
    schedule = published(volume(50))
    assert not schedule.forced
    schedule.force()
    assert schedule.forced
    assert schedule.due(record(volume(50)), "OPEN", 100.01)
    assert schedule.is_news(record(volume(50)), "OPEN")


def test_a_failed_volume_without_figures_is_reported_as_such() -> None:
    (reported,) = record(volume(0, capacity_bytes=None, consumed_bytes=None)).volumes
    assert (reported.capacity_bytes, reported.consumed_bytes) == (0, 0)
