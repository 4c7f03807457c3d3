"""Which volumes name their topics in the record, and of which the log dirs are listed before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks.observation import Failure, VolumeObservation
from kquota.guard.own_record import own_record
from kquota.kafka.documents import to_json
from kquota.policy.affected_topics import NEAR_SECONDS, log_dirs_near_a_limit, with_topics_at_stake
from kquota.policy.inodes import InodeLimits, Inodes
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota.policy.topic_scope import MAX_TOPICS, MAX_TOPICS_BYTES
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus
from kquota.settings.model import LimitsSection
from tests.unit.guard.cycles import SETTINGS, volume

CAPACITY = 1000
# soft at 800 consumed, hard at 900
LIMITS = LimitPair(soft=Limit.of(LimitType.MIN_FREE_BYTES, 200), hard=Limit.of(LimitType.MIN_FREE_BYTES, 100))
NO_ZONE = LimitPair(
    soft=Limit.of(LimitType.MIN_FREE_BYTES, 100), hard=Limit.of(LimitType.CONSUMED_SPACE, 800)
)


def seen(consumed: int, name: str = "/dev/a", **fields: Any) -> Volume:
    return Volume(name, CAPACITY, consumed, fields.pop("limits", LIMITS), log_dirs=(f"{name}/k",), **fields)


@pytest.mark.parametrize("limits", [LIMITS, NO_ZONE])
@pytest.mark.parametrize(
    ("consumed", "near"), [(749, False), (750, True), (800, True), (899, True), (1000, True)]
)
def test_a_volume_is_near_its_first_limit_from_a_twentieth_of_its_capacity_below_it(
    limits: LimitPair, consumed: int, near: bool
) -> None:
    assert log_dirs_near_a_limit([seen(consumed, limits=limits)]) == ({"/dev/a/k"} if near else set())


@pytest.mark.parametrize(("rate", "near"), [(9, False), (10, True), (None, False), (-10, False)])
def test_a_volume_is_near_a_limit_that_it_reaches_within_a_minute(rate: int | None, near: bool) -> None:
    assert NEAR_SECONDS == 60
    assert bool(log_dirs_near_a_limit([seen(200, fill_bytes_per_second=rate)])) == near


@pytest.mark.parametrize(("free", "near"), [(101, False), (100, True), (50, True), (0, True)])
def test_a_volume_is_near_its_limit_of_inodes_from_a_twentieth_of_them_above_it(
    free: int, near: bool
) -> None:
    inodes = Inodes(1000, free, InodeLimits.of(5, 2))
    assert bool(log_dirs_near_a_limit([seen(0, inodes=inodes)])) == near


@pytest.mark.parametrize(
    ("fields", "near"),
    [
        ({"latched": True}, True),
        ({"latched": True, "role": VolumeRole.METADATA}, False),
        ({"latched": True, "status": VolumeStatus.FAILED}, False),
        ({"latched": True, "status": VolumeStatus.OFFLINE}, False),
        ({"latched": True, "limits": None}, False),
    ],
)
def test_a_latched_volume_that_can_be_judged_and_holds_data_is_listed(
    fields: dict[str, Any], near: bool
) -> None:
    assert bool(log_dirs_near_a_limit([seen(0, **fields)])) == near


def test_all_log_dirs_of_a_volume_are_listed_and_none_of_another() -> None:
    first = seen(900)._replace(log_dirs=("/1", "/2"))
    assert log_dirs_near_a_limit([first, seen(0, "/dev/b"), seen(800, "/dev/c")]) == {"/1", "/2", "/dev/c/k"}


def topics_of(*volumes: Volume) -> list[tuple[str, ...] | None]:
    named = with_topics_at_stake(volumes)
    assert [volume._replace(topics=None) for volume in named] == [v._replace(topics=None) for v in volumes]
    return [volume.topics for volume in named]


@pytest.mark.parametrize(
    ("consumed", "fields", "named"),
    [
        (800, {}, False),
        (801, {}, True),
        (900, {}, True),
        (0, {"latched": True}, True),
        (900, {"role": VolumeRole.METADATA}, False),
        (900, {"status": VolumeStatus.OFFLINE}, True),  # counts while its broker is away, if it is latched
        (900, {"limits": None}, False),
        (900, {"limits": None, "latched": True}, True),
    ],
)
def test_topics_are_named_over_the_soft_limit_and_while_latched(
    consumed: int, fields: dict[str, Any], named: bool
) -> None:
    assert topics_of(seen(consumed, topics=("a",), **fields)) == [("a",) if named else None]


def test_a_volume_without_topics_names_that_and_one_whose_topics_are_not_known_does_not() -> None:
    assert topics_of(seen(900, topics=()), seen(900, "/dev/b")) == [(), None]


@pytest.mark.parametrize(("count", "named"), [(MAX_TOPICS, True), (MAX_TOPICS + 1, False)])
def test_a_volume_names_so_many_topics_at_most(count: int, named: bool) -> None:
    topics = tuple(f"{number:04}" for number in range(count))
    assert topics_of(seen(900, topics=topics)) == [topics if named else None]


def test_where_a_record_has_no_room_for_all_the_fullest_volumes_name_theirs() -> None:
    # what is left after three of them is too little for a fourth, and enough for a short list
    long = tuple(f"{number:0>120}" for number in range(MAX_TOPICS // 2))
    volumes = [seen(consumed, f"/dev/{consumed}", topics=long) for consumed in (810, 820, 830, 840, 850, 860)]
    few = seen(805, topics=("a",))
    fullest = [None, None, long, long, long, long]
    assert topics_of(few, *volumes) == [("a",), *fullest]
    assert topics_of(few, *reversed(volumes)) == [("a",), *reversed(fullest)]


def test_the_room_is_what_names_take_in_the_record() -> None:
    def bytes_of(names: tuple[str, ...]) -> int:
        return len(to_json({"": names})) - len(to_json({"": []})) + 1  # and a comma

    names = tuple(f"{number:0>200}" for number in range(MAX_TOPICS))
    rest = tuple(f"{number:0>{116 if number < 288 else 115}}" for number in range(1000))
    assert bytes_of(names) + bytes_of(rest) == MAX_TOPICS_BYTES
    assert topics_of(seen(900, topics=names), seen(890, "/dev/b", topics=rest)) == [names, rest]
    one_more = (*rest[:-1], f"{rest[-1]}x")
    assert topics_of(seen(900, topics=names), seen(890, "/dev/b", topics=one_more)) == [names, None]


@given(
    st.lists(
        st.tuples(
            st.integers(0, CAPACITY),
            st.one_of(st.none(), st.tuples(st.integers(0, 2 * MAX_TOPICS), st.integers(5, 249))),
        ),
        max_size=8,
    )
)
def test_a_record_keeps_its_bounds_and_names_all_topics_of_a_volume_or_none(
    cases: list[tuple[int, tuple[int, int] | None]],
) -> None:
    volumes = [
        seen(
            consumed,
            f"/dev/{index}",
            topics=None if size is None else tuple(f"{number:0>{size[1]}}" for number in range(size[0])),
        )
        for index, (consumed, size) in enumerate(cases)
    ]
    named = with_topics_at_stake(volumes)
    lists = [volume.topics for volume in named if volume.topics is not None]
    assert len(to_json({"": [name for names in lists for name in names]})) <= MAX_TOPICS_BYTES + 10
    for before, after in zip(volumes, named, strict=True):
        assert after.topics is None or (after.topics == before.topics and len(after.topics) <= MAX_TOPICS)


def reported(observed: VolumeObservation, limits: LimitsSection = SETTINGS.limits) -> tuple[str, ...] | None:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    record = own_record([observed], limits, (), release_margin=Fraction(1, 10), snapshot_at=at)
    return record.volumes[0].topics


def test_the_own_record_names_the_topics_of_a_volume_over_its_soft_limit() -> None:
    assert reported(volume(15, topics=("a", "b"))) == ("a", "b")
    assert reported(volume(50, topics=("a", "b"))) is None
    assert reported(volume(15)) is None


def test_the_topics_of_a_volume_that_can_not_be_read_are_not_known() -> None:
    failed = volume(5, topics=("a",), failures=(Failure(None, "it hangs"),))
    assert reported(failed) is None
    assert reported(replace(failed, offline_log_dirs=failed.log_dirs)) == ("a",)
