"""Active brokers, and those that only just became so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.policy.membership import SAME_JOIN, Membership
from kquota.policy.timestamps import format_utc
from kquota.policy.view import ClusterView
from tests.unit.policy.clusters import bounded
from tests.unit.policy.situations import NOW, fold, free, usage

NOBODY: Mapping[int, Sequence[datetime]] = {}
GRACE_SECONDS = 60


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def followed(*lists: tuple[float, set[int]], grace_seconds: float = GRACE_SECONDS) -> Membership:
    membership = Membership(timedelta(seconds=grace_seconds), timedelta(0))
    for seconds, active in lists:
        membership.update(frozenset(active), at(seconds), NOBODY)
    return membership


def joining(
    membership: Membership,
    seconds: float,
    recorded: Mapping[int, Sequence[datetime]] = NOBODY,
    removed: Mapping[int, datetime] | None = None,
) -> set[int]:
    return set(membership.joining(at(seconds), recorded, (removed or {}).get))


@pytest.mark.accepts("A31")
def test_brokers_of_the_first_list_are_not_joining() -> None:
    membership = followed((0, {1, 2}))
    assert membership.active == frozenset({1, 2})
    assert joining(membership, 0) == set()


@pytest.mark.accepts("A31", "F31")
def test_brokers_of_the_first_list_are_joining_where_a_record_says_so() -> None:
    membership = followed((10, {1, 3}))
    recorded = {3: [at(5)], 9: [at(5)]}
    assert joining(membership, 64, recorded) == {3}, "9 is not active"
    assert joining(membership, 65, recorded) == set()


@pytest.mark.accepts("A31")
@pytest.mark.parametrize(("now_seconds", "expected"), [(10, {3}), (69.9, {3}), (70, set()), (700, set())])
def test_a_newcomer_joins_for_the_length_of_the_grace(now_seconds: float, expected: set[int]) -> None:
    assert joining(followed((0, {1}), (10, {1, 3})), now_seconds) == expected


@pytest.mark.accepts("A31")
def test_seeing_a_newcomer_again_does_not_prolong_its_grace() -> None:
    membership = followed((0, {1}), (10, {1, 3}), (40, {1, 3}), (69, {1, 3}))
    assert joining(membership, 69) == {3}
    assert joining(membership, 70) == set()


@pytest.mark.accepts("A31", "F39")
@pytest.mark.parametrize(("back_seconds", "expected"), [(30, {3}), (3600, set())])
def test_a_wall_clock_that_is_set_back_excuses_no_broker_until_it_has_made_up_for_that(
    back_seconds: float, expected: set[int]
) -> None:
    membership = followed((3600, {1}), (3610, {1, 3}))
    assert joining(membership, 3610 - back_seconds) == expected
    membership.update(frozenset({1, 3}), at(3611 - back_seconds), NOBODY)
    assert membership.sightings.keys() == expected


@pytest.mark.accepts("A31", "F11")
@pytest.mark.parametrize(("removed_seconds", "expected"), [(89.999, {3}), (90, set()), (110, set())])
@pytest.mark.parametrize("is_own_sight", [True, False])
def test_a_report_removed_since_the_join_is_no_report_that_never_came(
    removed_seconds: float, expected: set[int], is_own_sight: bool
) -> None:
    """Clocks may differ by as much as sights of one join; one that was decommissioned before may return."""
    removed = {3: at(removed_seconds)}
    if is_own_sight:
        assert joining(followed((0, {1}), (100, {1, 3})), 120, removed=removed) == expected
    else:
        assert joining(followed((95, {1, 3})), 120, {3: [at(100), at(103)]}, removed) == expected


@pytest.mark.accepts("A31")
def test_a_broker_that_went_and_came_back_joins_again() -> None:
    membership = followed((0, {1, 2}), (100, {1}), (200, {1, 2}))
    assert membership.active == frozenset({1, 2})
    assert joining(membership, 200) == {2}


@pytest.mark.accepts("A26")
def test_a_broker_that_went_is_neither_active_nor_joining() -> None:
    membership = followed((0, {1}), (10, {1, 3}), (20, {1}))
    assert membership.active == frozenset({1})
    assert joining(membership, 20, {3: [at(10)]}) == set()


@pytest.mark.accepts("F11")
def test_an_empty_list_is_no_list() -> None:
    assert followed((0, set())).active is None
    membership = followed((0, set()), (10, {1, 2}), (20, set()))
    assert membership.active == frozenset({1, 2})
    assert joining(membership, 20) == set()


def test_a_changed_grace_counts_at_once() -> None:
    membership = followed((0, {1}), (10, {1, 3}), grace_seconds=11)
    membership.grace = timedelta(0)
    assert joining(membership, 10) == set()
    membership.grace = timedelta(seconds=5)
    assert joining(membership, 14) == {3}


def test_what_another_agent_has_recorded_is_not_recorded_again() -> None:
    membership = followed((0, {1}))
    assert not membership.update(frozenset({1, 3}), at(12), {3: [at(11)]})
    assert membership.sightings == {}
    assert not membership.update(frozenset({1}), at(20), {3: [at(11)]})
    assert membership.update(frozenset({1, 3}), at(30), {3: [at(11)]}), "it went, and came back"
    assert membership.sightings == {3: at(30)}


@pytest.mark.accepts("A31")
def test_each_record_counts_but_no_quarantined_one_and_none_from_the_future() -> None:
    def says(seconds: float) -> dict[str, object]:
        return usage(free(100), Joined={"7": format_utc(at(seconds)), "x": "?", "8": "yesterday"})

    order = {"Until": format_utc(at(600)), "Reason": "it lies", "Actor": "alice"}
    view = fold(
        ("1", says(-40)), ("2", says(-20)), ("3", says(-1)), ("4", says(3600)), ("quarantine/3", order)
    )
    assert view.joined(NOW) == {7: [at(-40), at(-20)]}
    assert view.joined(NOW, self_id=3) == {7: [at(-40), at(-20), at(-1)]}


@pytest.mark.accepts("A31", "G11")
@given(
    claims=st.lists(st.integers(min_value=-100, max_value=200), max_size=20),
    now=st.integers(min_value=0, max_value=200),
)
def test_claims_of_others_excuse_no_broker_for_longer_than_a_join(claims: list[int], now: int) -> None:
    """However often a record says that broker 2 has only just joined: this agent saw it at second 0."""
    claimed = {2: [at(claim) for claim in claims]}
    membership = Membership(timedelta(seconds=GRACE_SECONDS), timedelta(0))
    for second in range(now + 1):
        membership.update(frozenset({1, 2}), at(second), claimed)
    if joining(membership, now, claimed):
        assert now < GRACE_SECONDS + SAME_JOIN.total_seconds()


@pytest.mark.accepts("A31", "G11")
@pytest.mark.parametrize(("claim", "expected"), [(10, {2}), (10.001, set())])
def test_a_join_is_believed_until_ten_seconds_after_its_broker_was_seen(
    claim: float, expected: set[int]
) -> None:
    membership = followed(*((second, {1, 2}) for second in range(31)))
    assert joining(membership, 30, {2: [at(claim)]}) == expected
    assert joining(membership, 30, {2: [at(claim), at(29), at(5)]}) == {2}, "a wrong claim hides no right one"
    gone = followed((0, {1, 2}), (20, {1}), (21, {1, 2}))
    assert joining(gone, 25, {2: [at(24)]}) == {2}, "it went, and came back"


@pytest.mark.accepts("A31", "F31")
@given(
    starts=st.lists(st.integers(min_value=0, max_value=100), min_size=2, max_size=4),
    lists=st.lists(st.frozensets(st.integers(min_value=7, max_value=9)), min_size=11, max_size=11),
    until=st.integers(min_value=101, max_value=109),
)
@bounded(60)
def test_agents_that_started_at_different_times_grant_the_same_grace_from_the_same_records(
    starts: list[int], lists: list[frozenset[int]], until: int
) -> None:
    """Every second each running agent asks for the brokers, writes what it saw, and reads what all wrote."""
    agents = {
        number: (start, Membership(timedelta(seconds=GRACE_SECONDS), timedelta(0)))
        for number, start in enumerate(starts)
    }
    for second in range(until + 1):
        view = _view_of(agents)
        for start, membership in agents.values():
            if start <= second:
                active = frozenset({1, 2}) | lists[second // 10]
                membership.update(active, at(second), view.joined(at(second)))
    recorded = _view_of(agents).joined(at(until))
    verdicts = {membership.joining(at(until), recorded, lambda _: None) for _, membership in agents.values()}
    assert len(verdicts) == 1
    eldest = min(starts)
    became = [i for i in (7, 8, 9) if i in lists[until // 10] and _became_active(lists, i, until) > eldest]
    assert verdicts == {
        frozenset(i for i in became if until - _became_active(lists, i, until) < GRACE_SECONDS)
    }


def _became_active(lists: list[frozenset[int]], broker_id: int, until: int) -> int:
    second = until
    while second >= 0 and broker_id in lists[second // 10]:
        second -= 1
    return second + 1


def _view_of(agents: Mapping[int, tuple[int, Membership]]) -> ClusterView:
    """The records of all agents, as they are read."""
    records = []
    for number, (_, membership) in agents.items():
        joined = {str(broker): format_utc(when) for broker, when in membership.sightings.items()}
        records.append((str(number), usage(free(100), Joined=joined)))
    return fold(*records)


@pytest.mark.accepts("A31")
def test_an_agent_recalls_what_the_instance_before_it_saw() -> None:
    before = Membership(timedelta(seconds=GRACE_SECONDS), timedelta(0))
    before.recall({2: at(0), 3: at(-GRACE_SECONDS)}, at(0))
    assert before.sightings == {2: at(0)}, "any broker may be active, but 3's grace is over"
    membership = followed((0, {1}), (10, {1, 2}))
    membership.recall({2: at(5), 3: at(5)}, at(20))
    assert membership.sightings == {2: at(10)}, "its own sight counts, and 3 is not active"
