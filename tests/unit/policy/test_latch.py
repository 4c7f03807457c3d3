"""The hard-breach latch: set at the hard limit, released above the margin, bound to volume and limits."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kquota.policy.latch import latch_volumes
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota.policy.volume import Volume, VolumeStatus
from tests.unit.policy.situations import GB

MARGIN = Fraction(1, 10)
LIMITS = LimitPair(Limit.of(LimitType.MIN_FREE_BYTES, 20 * GB), Limit.of(LimitType.MIN_FREE_BYTES, 10 * GB))
NO_ZONE = LimitPair(Limit.of(LimitType.MIN_FREE_PERCENTAGE, 5), Limit.of(LimitType.MIN_FREE_BYTES, 10 * GB))


def volume(free_bytes: int, *, latched: bool = False, limits: LimitPair = LIMITS) -> Volume:
    return Volume("/dev/sda1", 100 * GB, 100 * GB - free_bytes, limits, volume_id="fs-1", latched=latched)


def latched_after(free_bytes: int, *, was: bool, limits: LimitPair = LIMITS) -> bool:
    previous = volume(0, latched=was, limits=limits)
    (fresh,) = latch_volumes([previous], [volume(free_bytes, limits=limits)], MARGIN)
    return fresh.latched


@pytest.mark.accepts("A30")
@pytest.mark.parametrize(
    ("free_bytes", "was", "latched"),
    [
        (10 * GB + 1, False, False),
        (10 * GB, False, True),  # the hard limit itself
        (9 * GB, False, True),
        (10 * GB + 1, True, True),
        (11 * GB, True, True),  # headroom is the margin: not above it
        (11 * GB + 1, True, False),
        (50 * GB, True, False),
    ],
)
def test_a_breach_holds_on_until_headroom_is_above_the_margin(
    free_bytes: int, was: bool, latched: bool
) -> None:
    assert latched_after(free_bytes, was=was) is latched


@pytest.mark.accepts("A29", "A30")
@pytest.mark.parametrize(
    ("free_bytes", "was", "latched"),
    [
        (10 * GB + 1, False, False),
        (10 * GB, False, True),
        (10 * GB + 1, True, True),
        (11 * GB, True, True),  # exactly 1 % of the capacity below the hard limit
        (11 * GB + 1, True, False),
    ],
)
def test_without_a_throttle_zone_it_is_released_by_one_percent_of_the_capacity(
    free_bytes: int, was: bool, latched: bool
) -> None:
    assert latched_after(free_bytes, was=was, limits=NO_ZONE) is latched


@pytest.mark.accepts("A29")
def test_without_a_zone_a_hard_limit_close_to_empty_can_still_be_released() -> None:
    limits = LimitPair(Limit.of(LimitType.MIN_FREE_PERCENTAGE, 1), Limit.of(LimitType.CONSUMED_SPACE, 1000))
    assert latched_after(100 * GB - 500, was=True, limits=limits)
    assert not latched_after(100 * GB - 499, was=True, limits=limits)


@pytest.mark.accepts("A30")
@pytest.mark.parametrize("margin", [Fraction(0), Fraction(1)])
def test_at_the_soft_limit_every_margin_releases(margin: Fraction) -> None:
    (fresh,) = latch_volumes([volume(0, latched=True)], [volume(20 * GB)], margin)
    assert not fresh.latched


@pytest.mark.accepts("A30")
@pytest.mark.parametrize(
    "previous",
    [
        volume(0, latched=True)._replace(volume_id="fs-2"),
        volume(0, latched=True)._replace(volume_id=None),
        volume(0, latched=True)._replace(limits=NO_ZONE),
    ],
    ids=["another file system", "an unknown file system", "other limits"],
)
def test_a_latch_ends_with_a_new_volume_or_new_limits(previous: Volume) -> None:
    (fresh,) = latch_volumes([previous], [volume(10 * GB + 1)], MARGIN)
    assert not fresh.latched


@pytest.mark.accepts("A30")
def test_a_latch_follows_the_volume_id_under_another_name() -> None:
    previous = volume(0, latched=True)._replace(name="/dev/sdz9")
    (fresh,) = latch_volumes([previous], [volume(10 * GB + 1)], MARGIN)
    assert fresh.latched


@pytest.mark.accepts("A30")
def test_without_volume_ids_the_name_decides() -> None:
    previous = volume(0, latched=True)._replace(volume_id=None)
    same, other = (
        volume(10 * GB + 1)._replace(volume_id=None),
        volume(10 * GB + 1)._replace(volume_id=None, name="/dev/sdb1"),
    )
    assert [v.latched for v in latch_volumes([previous], [same, other], MARGIN)] == [True, False]


@pytest.mark.accepts("A30", "A28")
@pytest.mark.parametrize("status", [VolumeStatus.OFFLINE, VolumeStatus.FAILED])
@pytest.mark.parametrize("was", [True, False])
def test_figures_of_a_volume_that_can_not_be_read_neither_set_nor_release(
    status: VolumeStatus, was: bool
) -> None:
    for free_bytes in (0, 50 * GB):
        fresh = volume(free_bytes)._replace(status=status)
        assert latch_volumes([volume(0, latched=was)], [fresh], MARGIN)[0].latched is was


@pytest.mark.accepts("A30", "F29")
def test_free_space_that_oscillates_at_the_hard_limit_makes_one_transition() -> None:
    (current,) = latch_volumes([], [volume(30 * GB)], MARGIN)
    transitions = 0
    for step in range(3600):
        wobble = 10 * GB + (900_000_000 if step % 2 else -900_000_000)
        (fresh,) = latch_volumes([current], [volume(wobble)], MARGIN)
        transitions += fresh.latched is not current.latched
        current = fresh
    assert (transitions, current.latched) == (1, True)
