"""Listing the worst without sorting all: the same as sorting all, and as cheap as it has to be."""

from __future__ import annotations

import time
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.records import read_event
from kquota.formats.sentences import decision_sentence
from kquota.formats.usage_format import parse_usage
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import MAX_LISTED, Cause, Decision, FallbackAction, Reason
from kquota.policy.limit_breaches import LimitBreach, sorted_votes
from kquota.policy.ranking import Ranking, volumes_of
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView
from tests.unit.policy.clusters import bounded, cases, view_of
from tests.unit.policy.oracle import Case
from tests.unit.policy.plain_policy import all_reasons
from tests.unit.policy.situations import GB, NOW, STALENESS, TOLERANCE, raw, usage

SETTINGS = PolicySettings(FallbackAction.PAUSE, STALENESS)


@pytest.mark.accepts("A8", "A10")
@given(case=cases())
@bounded(100)
def test_the_reasons_are_those_of_a_plain_policy(case: Case) -> None:
    view = view_of(case)
    own = None if case.own is None else parse_usage(raw(case.own) or b"")
    situation = Situation(case.active, case.joining, case.self_id, own)
    settings = PolicySettings(FallbackAction(case.fallback), STALENESS)
    for _ in range(2):  # with each record's votes known, too
        decision = decide(view, situation, settings, case.now)
        plain = all_reasons(view, situation, settings, case.now, decision.undetermined)
        assert list(decision.reasons) == plain
        assert decision.unlisted_volumes == 0


def vote_of(left: int, scale: int, figures: bool, name: str) -> LimitBreach:
    # not reduced, so that votes at the same headroom are written differently
    return (
        LimitBreach.over_soft(left * scale, 7 * scale, name)
        if left
        else LimitBreach.at_hard(name, by_latch=not figures)
    )


broker_votes = st.lists(
    st.builds(
        vote_of, st.integers(0, 6), st.integers(1, 5), st.booleans(), st.sampled_from("abcdefgh"),
    ),
    max_size=8,
    unique_by=lambda vote: vote.volume,
)  # fmt: skip


@given(votes=st.lists(broker_votes, max_size=12), count=st.integers(1, 9))
@bounded(100)
def test_the_worst_are_the_beginning_of_all(votes: list[list[LimitBreach]], count: int) -> None:
    ranking = Ranking([Reason(Cause.FALLBACK, Fraction(0), 3), Reason(Cause.OWN, Fraction(1, 7), 2, "a")])
    for broker_id, entries in enumerate(votes):
        ranking.add(broker_id, sorted_votes(entries))
    everything = ranking.worst(1000)
    assert ranking.worst(count) == everything[:count]
    assert len(everything) == sum(len(entries) for entries in votes) + 2
    assert ranking.smallest() == min(reason.headroom for reason in everything) == everything[0].headroom
    assert ranking.volumes() == len(volumes_of(everything))


def cluster(brokers: int, volumes: int = 8) -> ClusterView:
    """Every volume over its soft limit, each by another amount."""
    view = ClusterView(TOLERANCE)
    for broker_id in range(brokers):
        entries = [
            {"VolumeName": f"/dev/sd{i}", "Capacity": 100 * GB, "Consumed": 81 * GB + broker_id * volumes + i}
            for i in range(volumes)
        ]
        view.fold(read_event(str(broker_id), raw(usage(*entries))), NOW)
    return view


def decided(view: ClusterView) -> Decision:
    return decide(view, Situation(frozenset(view.brokers), self_id=1), SETTINGS, NOW)


@pytest.mark.accepts("F6")
def test_thousands_of_volumes_over_a_limit_are_counted_and_the_worst_listed() -> None:
    view = cluster(200)
    decision = decided(view)
    plain = all_reasons(view, Situation(frozenset(view.brokers), self_id=1), SETTINGS, NOW, ())
    assert list(decision.reasons) == plain[:MAX_LISTED]
    assert decision.unlisted_volumes == len(plain) - MAX_LISTED
    assert f"and {len(plain) - 1} more volumes over a limit" in decision_sentence(decision)


def test_deciding_again_costs_a_fraction_of_deciding_first() -> None:
    view = cluster(300)
    first, again = seconds(view), min(seconds(view) for _ in range(10))
    assert again < first / 3
    record = view.record_of(7, NOW)
    assert isinstance(record, UsageRecord)
    assert record.votes is record.votes, "the votes of a record are made once"


def test_a_later_moment_needs_no_new_votes_but_is_judged_anew() -> None:
    view = cluster(2)
    situation = Situation(frozenset({0, 1}))
    assert decide(view, situation, SETTINGS, NOW).undetermined == ()
    later = decide(view, situation, SETTINGS, NOW + timedelta(seconds=61))
    assert [entry.cause.value for entry in later.undetermined] == ["stale", "stale"]
    assert decide(view, situation, SETTINGS, NOW) == decided(view)


def seconds(view: ClusterView) -> float:
    started = time.process_time()
    decided(view)
    return time.process_time() - started
