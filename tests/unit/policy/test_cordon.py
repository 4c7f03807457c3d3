"""Which log dirs the agent cordons, and that it leaves alone what others have cordoned."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.policy.cordon import ALL, Change, Cordon, change, log_dirs_to_cordon
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus

CAPACITY = 1000
LIMITS = LimitPair(soft=Limit.of(LimitType.MIN_FREE_BYTES, 300), hard=Limit.of(LimitType.MIN_FREE_BYTES, 100))
MARGIN = Fraction(1, 10)  # of the 200 bytes between the limits
NOTHING = frozenset[str]()
A = frozenset({"/a"})


def volume(consumed: int, *log_dirs: str, **others: object) -> Volume:
    return Volume("/dev/sda", CAPACITY, consumed, LIMITS, log_dirs=log_dirs or ("/a",))._replace(**others)


def wanted(one: Volume, since: Cordon = Cordon.SOFT, cordoned: frozenset[str] = NOTHING) -> frozenset[str]:
    return log_dirs_to_cordon([one], since, cordoned, MARGIN)


@pytest.mark.accepts("G17")
@pytest.mark.parametrize(("consumed", "is_cordoned"), [(700, False), (701, True), (1000, True)])
def test_a_cordon_begins_where_the_soft_limit_is_passed(consumed: int, is_cordoned: bool) -> None:
    assert wanted(volume(consumed)) == (A if is_cordoned else NOTHING)


@pytest.mark.accepts("G17")
@pytest.mark.parametrize(("consumed", "is_cordoned"), [(681, True), (680, False)])
def test_it_ends_below_the_soft_limit_by_the_release_margin(consumed: int, is_cordoned: bool) -> None:
    assert wanted(volume(consumed), cordoned=A) == (A if is_cordoned else NOTHING)


@pytest.mark.accepts("G17")
def test_from_the_hard_limit_on_it_lasts_as_long_as_the_latch() -> None:
    assert wanted(volume(899), Cordon.HARD) == NOTHING
    assert wanted(volume(900, latched=True), Cordon.HARD) == A
    assert wanted(volume(890, latched=True), Cordon.HARD, A) == A
    assert wanted(volume(870), Cordon.HARD, A) == NOTHING


def test_all_log_dirs_of_the_volume_are_cordoned_and_no_others() -> None:
    full, empty = volume(800, "/a", "/b"), volume(100, "/c")
    assert log_dirs_to_cordon([full, empty], Cordon.SOFT, NOTHING, MARGIN) == {"/a", "/b"}


@pytest.mark.parametrize(
    "unknown", [{"status": VolumeStatus.FAILED}, {"status": VolumeStatus.OFFLINE}, {"limits": None}]
)
def test_a_volume_that_cannot_be_judged_keeps_its_cordon_and_gets_none(unknown: dict[str, object]) -> None:
    for consumed in (0, 1000):
        assert wanted(volume(consumed, **unknown)) == NOTHING
        assert wanted(volume(consumed, **unknown), cordoned=A) == A


def test_a_log_dir_whose_volume_is_not_seen_keeps_its_cordon() -> None:
    assert log_dirs_to_cordon([], Cordon.SOFT, A, MARGIN) == A


def test_a_volume_with_the_metadata_log_alone_gets_none_and_loses_its_own() -> None:
    assert wanted(volume(1000, role=VolumeRole.METADATA), cordoned=A) == NOTHING


@pytest.mark.accepts("G17")
def test_switched_off_nothing_is_wanted() -> None:
    assert wanted(volume(1000, latched=True), Cordon.OFF, A) == NOTHING


@pytest.mark.accepts("G17")
def test_an_operators_cordon_stays_and_is_never_ours() -> None:
    assert change(["/a"], NOTHING, A) is None
    assert change(["/a", "/b"], frozenset({"/b"}), NOTHING) == Change(("/a",), NOTHING)
    assert change([ALL], NOTHING, A) is None, "all log dirs are cordoned"


def test_a_value_that_was_lost_is_set_again() -> None:
    assert change([], A, A) == Change(("/a",), A)


def test_what_is_remembered_and_gone_is_forgotten() -> None:
    assert change([], A, NOTHING) == Change((), NOTHING)


DIRS = st.frozensets(st.sampled_from(["/a", "/b", "/c", "/d"]))


@pytest.mark.accepts("G17")
@given(DIRS, DIRS, DIRS)
def test_the_setting_is_always_that_of_the_operators_and_what_the_agent_wants(
    theirs: frozenset[str], ours: frozenset[str], wanted: frozenset[str]
) -> None:
    ours -= theirs  # never owned by both
    found = change(sorted(theirs | ours), ours, wanted)
    value, mine = (theirs | ours, ours) if found is None else (set(found.value), found.ours)
    assert value == theirs | wanted
    assert mine == wanted - theirs
    assert change(sorted(value), mine, wanted) is None, "a second look changes nothing"
    ended = change(sorted(value), mine, NOTHING)
    assert (set(ended.value) if ended else value) == theirs, "the operators' cordons are as before"
