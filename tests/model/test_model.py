"""Every state of a small cluster, checked; and that each invariant can fail.

`make test` goes so deep that all faults meet once; `make test-long` goes further and to three brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Cause, Decision, FallbackAction, Scope, State
from kquota.policy.latch import latch_volumes
from kquota.policy.limit_breaches import LimitBreach, Votes
from kquota.policy.topic_scope import Topics, narrowed
from kquota.policy.usage import UsageRecord
from kquota.policy.view import BrokerHistory, ClusterView
from kquota.policy.volume import Volume
from tests.model.cluster_model import Model
from tests.model.exploration import INVARIANTS, Explored, Violated, explore


def show(found: Explored, model: Model) -> None:
    states = ", ".join(f"{state} {count}" for state, count in sorted(found.by_state.items()))
    print(
        f"\n{model.brokers} brokers, fallback {model.fallback}, {found.depth} ticks,"
        f" {model.max_faults} faults: {found.states} states, {found.transitions} transitions;"
        f" brokers met in {states}"
    )


@pytest.mark.accepts("A10", "A18", "A26", "A30", "F13")
@pytest.mark.parametrize("fallback", FallbackAction)
def test_no_state_within_four_ticks_breaks_an_invariant(fallback: FallbackAction) -> None:
    model = Model(fallback=fallback, max_faults=3)
    found = explore(model, 4)
    show(found, model)
    assert found.states > 4000, "the model became smaller: what can happen no longer does"
    assert set(found.by_state) == set(State)


@pytest.mark.accepts("G6")
def test_a_silent_volume_that_fills_at_its_bound_is_full_only_in_pause() -> None:
    """Deep enough for a silence to outlast its cover; one fault begins it."""
    model = Model(fallback=FallbackAction.BOUNDED, max_faults=1)
    found = explore(model, 10, {"silent volumes are covered": INVARIANTS["silent volumes are covered"]})
    show(found, model)
    assert set(found.by_state) == set(State)


@pytest.mark.parametrize("fallback", [FallbackAction.PAUSE, FallbackAction.OPEN])
def test_with_the_scope_of_the_volume_no_state_breaks_an_invariant(fallback: FallbackAction) -> None:
    model = Model(fallback=fallback, scope=Scope.VOLUME, max_faults=2)
    found = explore(model, 4)
    show(found, model)
    assert set(found.by_state) == set(State)


def test_a_topic_that_comes_to_a_silent_volume_is_held_before_that_is_full() -> None:
    model = Model(fallback=FallbackAction.BOUNDED, scope=Scope.VOLUME, max_faults=1)
    found = explore(model, 10, {"silent volumes are covered": INVARIANTS["silent volumes are covered"]})
    show(found, model)
    assert set(found.by_state) == set(State)


@pytest.mark.long
@pytest.mark.accepts("A10", "A18", "A26", "A30", "F13")
@pytest.mark.parametrize("fallback", FallbackAction)
@pytest.mark.parametrize(("brokers", "depth", "faults"), [(2, 6, 3), (3, 4, 3)])
def test_no_state_further_away_breaks_an_invariant(
    fallback: FallbackAction, brokers: int, depth: int, faults: int
) -> None:
    model = Model(fallback=fallback, brokers=brokers, max_faults=faults)
    found = explore(model, depth)
    show(found, model)
    assert set(found.by_state) == set(State)


def forget_the_stale(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Take silence for recovery."""
    fresh = {}
    for broker_id, history in view.brokers.items():
        record = view.record_of(broker_id, now)
        if not isinstance(record, UsageRecord) or now - record.snapshot_at <= settings.staleness:
            fresh[broker_id] = history
    return decide(replace(view, brokers=fresh), situation, settings, now)


def forget_the_time(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Take what a silent volume last had for what it has."""
    histories = {}
    for broker_id, history in view.brokers.items():
        records = [
            replace(one, volumes=tuple(v._replace(fill_ceiling_bytes_per_second=0) for v in one.volumes))
            for one in history.records
        ]
        histories[broker_id] = replace(history, records=records)
    return decide(replace(view, brokers=histories), situation, settings, now)


def cover_though_cut_off(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Take one's own deafness for the silence of the others."""
    heard = BrokerHistory([UsageRecord(now, (), None, None)])
    return decide(replace(view, brokers={**view.brokers, 9: heard}), situation, settings, now)


def forget_the_time_in_the_join_grace(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Take a silent volume for what it last had when its broker starts again."""
    histories = dict(view.brokers)
    for broker_id in situation.joining_brokers & view.brokers.keys():
        records = [
            replace(one, volumes=tuple(v._replace(fill_ceiling_bytes_per_second=None) for v in one.volumes))
            for one in histories[broker_id].records
        ]
        histories[broker_id] = replace(histories[broker_id], records=records)
    return decide(replace(view, brokers=histories), situation, settings, now)


def forget_the_inactive(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Take a dead broker for an empty one, as others do."""
    active = situation.active_brokers or frozenset()
    known = {broker_id: history for broker_id, history in view.brokers.items() if broker_id in active}
    return decide(replace(view, brokers=known), situation, settings, now)


def ignore_the_own_look(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Wait for the topic to report the own disk."""
    return decide(view, replace(situation, own=None), settings, now)


def narrow(view: ClusterView, decision: Decision, trust: Callable[[LimitBreach], Topics | None]) -> Decision:
    """Return the decision with a scope of all records, whatever their age."""
    votes = [v for i in view.brokers for v in _votes(view, i, decision.decided_at)]
    wide = (Cause.FALLBACK, Cause.HOLD)
    everywhere = [reason.headroom for reason in decision.reasons if reason.cause in wide]
    return replace(decision, scope=narrowed([(v.headroom, trust(v)) for v in votes], everywhere))


def _votes(view: ClusterView, broker_id: int, now: datetime) -> Votes:
    record = view.record_of(broker_id, now)
    if not isinstance(record, UsageRecord):
        return ()
    return record.votes_after(max(now - record.snapshot_at, timedelta())) or record.votes


def trust_old_lists(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Take the topics that a silent volume last had for those that it has."""
    decision = decide(view, situation, settings, now)
    return narrow(view, decision, lambda vote: vote.topics) if decision.covered else decision


def hold_only_what_is_named(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Take a volume whose topics are not known for one without any."""
    return narrow(view, decide(view, situation, settings, now), lambda vote: vote.topics or ())


def wait_for_the_own_list(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Learn of a topic on the own disk from the usage topic alone."""
    decision = decide(view, situation, settings, now)
    blind = decide(view, replace(situation, own=None), settings, now)
    return decision if decision.scope is None else replace(decision, scope=blind.scope)


def hold_all(view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime) -> Decision:
    """Hold every topic for one volume."""
    return replace(decide(view, situation, settings, now), scope=None)


def judge_by_oneself(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Trust no other broker, at one of the brokers."""
    trusted = {i: history for i, history in view.brokers.items() if situation.self_id in (1, i)}
    return decide(replace(view, brokers=trusted), situation, settings, now)


def latch_for_ever(
    previous: Iterable[Volume], fresh: Iterable[Volume], release_margin: Fraction
) -> tuple[Volume, ...]:
    """Never release."""
    before = list(previous)
    return tuple(
        volume._replace(latched=volume.latched or any(other.latched for other in before))
        for volume in latch_volumes(before, fresh, release_margin)
    )


BROKEN: list[Any] = [
    ("silence never releases", {"decide": forget_the_stale, "fallback": FallbackAction.OPEN}),
    ("silence never releases", {"decide": forget_the_inactive}),
    ("breaches hold producers", {"decide": ignore_the_own_look, "fallback": FallbackAction.OPEN}),
    ("lost agents leave no broker open", {"lost": State.OPEN}),
    ("equal inputs decide equally", {"decide": judge_by_oneself}),
    (
        "silent volumes are covered",
        {"decide": forget_the_time, "fallback": FallbackAction.BOUNDED, "max_faults": 1},
    ),
    ("silent volumes are covered", {"decide": cover_though_cut_off, "fallback": FallbackAction.BOUNDED}),
    pytest.param(
        "silent volumes are covered",
        {
            "decide": forget_the_time_in_the_join_grace,
            "fallback": FallbackAction.BOUNDED,
            "max_faults": 3,
        },
        marks=pytest.mark.long,
    ),
    ("other topics flow", {"decide": hold_all, "scope": Scope.VOLUME}),
    ("breaches hold producers", {"decide": hold_only_what_is_named, "scope": Scope.VOLUME}),
    ("breaches hold producers", {"decide": wait_for_the_own_list, "scope": Scope.VOLUME}),
    (
        "silent volumes are covered",
        {
            "decide": trust_old_lists,
            "fallback": FallbackAction.BOUNDED,
            "scope": Scope.VOLUME,
            "max_faults": 1,
        },
    ),
    ("every pause ends", {"latch": latch_for_ever}),
]


@pytest.mark.parametrize(("invariant", "broken"), BROKEN, ids=lambda value: str(value)[:40])
def test_each_invariant_fails_on_a_core_that_breaks_it(invariant: str, broken: dict[str, Any]) -> None:
    model = Model(**{"max_faults": 2, **broken})
    with pytest.raises(Violated, match=invariant) as violated:
        explore(model, 10, {invariant: INVARIANTS[invariant]})
    story = str(violated.value).splitlines()
    print(*(line for line in story if not line.startswith("    ")), sep="\n  ")
    assert "start" in story, "the counterexample begins at the beginning"
