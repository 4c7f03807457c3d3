"""Who is active, and who only just became so."""

from __future__ import annotations

import pytest

from kquota.core.membership import Membership


def followed(*lists: tuple[float, set[int]], grace_seconds: float = 60) -> Membership:
    membership = Membership(grace_seconds)
    for at_seconds, active in lists:
        membership.update(frozenset(active), at_seconds)
    return membership


@pytest.mark.accepts("A31")
def test_brokers_of_the_first_list_are_not_joining() -> None:
    membership = followed((0, {1, 2}))
    assert membership.active == frozenset({1, 2})
    assert membership.joining(0) == set()


@pytest.mark.accepts("A31")
@pytest.mark.parametrize(("now_seconds", "joining"), [(10, {3}), (69.9, {3}), (70, set()), (700, set())])
def test_a_newcomer_joins_for_the_length_of_the_grace(now_seconds: float, joining: set[int]) -> None:
    assert followed((0, {1}), (10, {1, 3})).joining(now_seconds) == joining


@pytest.mark.accepts("A31")
def test_seeing_a_newcomer_again_does_not_prolong_its_grace() -> None:
    membership = followed((0, {1}), (10, {1, 3}), (40, {1, 3}), (69, {1, 3}))
    assert membership.joining(69) == {3}
    assert membership.joining(70) == set()


@pytest.mark.accepts("A31")
def test_a_broker_that_went_and_came_back_joins_anew() -> None:
    membership = followed((0, {1, 2}), (100, {1}), (200, {1, 2}))
    assert membership.active == frozenset({1, 2})
    assert membership.joining(200) == {2}


@pytest.mark.accepts("A26")
def test_a_broker_that_went_is_neither_active_nor_joining() -> None:
    membership = followed((0, {1}), (10, {1, 3}), (20, {1}))
    assert membership.active == frozenset({1})
    assert membership.joining(20) == set()


@pytest.mark.accepts("F11")
def test_an_empty_list_is_no_list() -> None:
    assert followed((0, set())).active is None
    membership = followed((0, set()), (10, {1, 2}), (20, set()))
    assert membership.active == frozenset({1, 2})
    assert membership.joining(20) == set()


def test_a_changed_grace_counts_at_once() -> None:
    membership = followed((0, {1}), (10, {1, 3}), grace_seconds=0)
    assert membership.joining(10) == set()
    membership.grace_seconds = 5
    assert membership.joining(14) == {3}
