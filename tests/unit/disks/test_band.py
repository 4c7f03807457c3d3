"""The band of a volume: within it nothing changes, and at its ends something does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kquota.disks.band import band, bands, own_log_dirs
from kquota.policy.decision import State
from kquota.policy.latch import latch_volumes
from kquota.policy.limits import InvalidLimit, Limit, LimitPair, LimitType
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus

LIMITS = st.builds(Limit.of, st.sampled_from(LimitType), st.integers(0, 100))


@st.composite
def pairs(draw: st.DrawFn) -> LimitPair:
    try:
        return LimitPair(soft=draw(LIMITS), hard=draw(LIMITS))
    except InvalidLimit:
        assume(False)
        raise


def judged(volume: Volume, consumed_bytes: int, margin: Fraction) -> tuple[State, bool]:
    """State and latch after a look at the volume with this consumption."""
    fresh = volume._replace(consumed_bytes=consumed_bytes, latched=False)
    (after,) = latch_volumes([volume], [fresh], margin)
    headroom = after.headroom()
    assert headroom is not None
    return State.of_headroom(headroom), after.latched


@given(
    limits=pairs(),
    capacity=st.integers(1, 60),
    consumed=st.integers(0, 60),
    was_latched=st.booleans(),
    margin=st.fractions(0, 1, max_denominator=10),
)
def test_nothing_changes_within_the_band_and_something_does_at_its_ends(
    limits: LimitPair, capacity: int, consumed: int, was_latched: bool, margin: Fraction
) -> None:
    assume(consumed <= capacity)
    seen = Volume("v", capacity, consumed, limits, volume_id="v", latched=was_latched)
    (volume,) = latch_volumes([seen], [seen._replace(latched=False)], margin)
    found = band(volume, margin)
    assert found is not None
    low, high = found
    available = capacity - consumed
    assert low < available < high
    now = judged(volume, consumed, margin)
    for other in range(capacity + 1):
        if low < other < high:
            assert judged(volume, capacity - other, margin) == now
    for end in (low, high):
        if 0 <= end <= capacity:
            assert judged(volume, capacity - end, margin) != now


def volume(**fields: object) -> Volume:
    limits = LimitPair(Limit.of(LimitType.CONSUMED_SPACE, 60), Limit.of(LimitType.CONSUMED_SPACE, 80))
    return Volume("v", 100, 10, limits, log_dirs=("/a", "/b"))._replace(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (39, 101)),
        ({"consumed_bytes": 60}, (39, 101)),
        ({"consumed_bytes": 61}, (20, 40)),
        ({"consumed_bytes": 79}, (20, 40)),
        ({"consumed_bytes": 80, "latched": True}, (-1, 23)),
        ({"consumed_bytes": 90, "latched": True}, (-1, 23)),
    ],
)
def test_the_ends_are_the_limits_and_the_release(
    fields: dict[str, object], expected: tuple[int, int]
) -> None:
    assert band(volume(**fields), Fraction(1, 10)) == expected


def test_a_volume_that_cannot_be_judged_has_none() -> None:
    assert band(volume(limits=None), Fraction(1, 10)) is None
    assert band(volume(status=VolumeStatus.FAILED), Fraction(1, 10)) is None


def test_each_log_dir_of_a_volume_has_its_band() -> None:
    failed = volume(log_dirs=("/c",), status=VolumeStatus.FAILED)
    assert bands([volume(), failed], Fraction(1, 10)) == {"/a": (39, 101), "/b": (39, 101)}


@given(limits=pairs(), capacity=st.integers(1, 60))
def test_the_plug_in_gets_the_figures_at_which_the_state_changes(limits: LimitPair, capacity: int) -> None:
    one = volume(capacity_bytes=capacity, consumed_bytes=0, limits=limits, log_dirs=("/a",))
    (found,) = own_log_dirs([one]) or ()
    soft, hard = found["soft_available_bytes"], found["hard_available_bytes"]
    assert -1 <= hard < soft
    for available in range(capacity + 1):
        state = State.of_headroom(limits.headroom(capacity, capacity - available))
        assert (available >= soft, available <= hard) == (state is State.OPEN, state is State.PAUSE)


def test_every_log_dir_with_a_vote_is_named_or_none() -> None:
    ends = {"soft_available_bytes": 40, "hard_available_bytes": 20}
    metadata, offline = volume(role=VolumeRole.METADATA), volume(status=VolumeStatus.OFFLINE)
    assert own_log_dirs([volume(), metadata, offline, volume(log_dirs=("/c",))]) == [
        {"log_dir": "/a", **ends},
        {"log_dir": "/b", **ends},
        {"log_dir": "/c", **ends},
    ]
    assert own_log_dirs([volume(), volume(status=VolumeStatus.FAILED)]) is None
    assert own_log_dirs([volume(limits=None), volume()]) is None
