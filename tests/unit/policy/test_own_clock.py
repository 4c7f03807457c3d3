"""An agent whose own clock is behind: to it, all others report from the future."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.replays import read_events
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, State
from kquota.policy.own_clock import own_clock_behind
from kquota.policy.view import ClusterView
from tests.unit.policy.situations import NOW, STALENESS, TOLERANCE, causes, free, own_look, usage

LEADS = st.floats(-100, 200)


def view_of(leads: dict[int, list[float]], stored_seconds_before: float = 0) -> ClusterView:
    """Return a view of reports, oldest first, that are this far in the future."""
    lines = []
    for broker_id, seconds in leads.items():
        for lead in seconds:
            stored_at = NOW + timedelta(seconds=lead - stored_seconds_before)
            line = {"key": str(broker_id), "timestamp_ms": round(stored_at.timestamp() * 1000)}
            lines.append(json.dumps(line | {"value": usage(free(50), age_seconds=-lead)}))
    view = ClusterView(TOLERANCE)
    view.fold_all(read_events(lines), NOW)
    return view


def decided(view: ClusterView, self_id: int | None = 1) -> Decision:
    own = None if self_id is None else own_look(free(50))
    situation = Situation(frozenset(view.brokers) | {1}, self_id=self_id, own=own)
    return decide(view, situation, PolicySettings(staleness=STALENESS), NOW)


@pytest.mark.accepts("F41")
def test_an_agent_that_reads_reports_of_a_minute_ago_and_later_ones_knows_its_clock_is_behind() -> None:
    # to it, those of a minute ago are fresh, and those of now are from the future
    view = view_of({1: [-1], 2: [0, 61], 3: [-2, 60]})
    decision = decided(view)
    assert (decision.state, causes(decision)) == (State.PAUSE, [(1, "clock")])
    assert decision.undetermined[0].clock_behind_seconds == 60
    assert decided(view, self_id=None).state is State.OPEN


@pytest.mark.parametrize(
    "leads",
    [
        {1: [-1], 2: [0, 61], 3: [-1]},  # that one may be ahead
        {1: [-1], 2: [0, 61]},  # one of the two is wrong, and neither is known to be
        {1: [-1], 2: [0, 61], 3: [0, 61], 4: [-1], 5: [-1]},  # most others agree with it
        {1: [-1], 2: [0, 30], 3: [0, 30]},  # within the tolerance
        {1: [-1], 2: [0, 61, 1], 3: [0, 61, 1]},  # they have come back
    ],
)
def test_it_does_not_mistrust_its_clock_without_a_majority(leads: dict[int, list[float]]) -> None:
    assert decided(view_of(leads)).state is State.OPEN


def test_hosts_that_are_ahead_of_the_topic_s_leader_are_the_wrong_ones() -> None:
    assert decided(view_of({1: [-1], 2: [0, 61], 3: [0, 61]}, stored_seconds_before=60)).state is State.OPEN


@given(st.lists(LEADS, max_size=5), st.lists(LEADS, max_size=5))
def test_clocks_that_are_right_never_make_it_mistrust_its_own(some: list[float], more: list[float]) -> None:
    """A majority within the tolerance outvotes any others."""
    right = [lead for lead in some + more if lead <= TOLERANCE.total_seconds()]
    view = view_of({i: [lead] for i, lead in enumerate(some + more, 2)})
    behind = own_clock_behind(view, view.brokers, NOW)
    assert behind is None or (behind > TOLERANCE and 2 * len(right) < len(some + more))
