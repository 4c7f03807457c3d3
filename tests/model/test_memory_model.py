"""A broker that died full holds producers whatever its cluster's agents have lost of their memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, State
from kquota.policy.view import ClusterView
from tests.model.exploration import INVARIANTS, Explored, Violated, explore
from tests.model.memory_model import MemoryModel

INVARIANT = "silence never releases"
DEPTH = 12
"""Two hosts can be reinstalled, one after the other, and conclude from what they know."""


def explored(model: MemoryModel) -> Explored:
    return explore(model, DEPTH, {INVARIANT: INVARIANTS[INVARIANT]})


@pytest.mark.accepts("A26", "F13", "G25")
def test_a_full_broker_outlives_all_hosts_that_have_seen_it() -> None:
    found = explored(MemoryModel())
    print(f"{found.states} states, {found.transitions} transitions, {found.by_state}")
    assert found.states > 500
    assert set(found.by_state) == {State.PAUSE}


def go_by_the_present_list(
    view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime
) -> Decision:
    """Let only the reports of those count that are listed now."""
    return decide(view, replace(situation, known_brokers=situation.active_brokers), settings, now)


def test_the_invariant_fails_where_the_agents_judge_without_a_memory() -> None:
    with pytest.raises(Violated, match=INVARIANT):
        explored(MemoryModel(decide=go_by_the_present_list))


def test_the_invariant_fails_where_a_new_agent_asks_no_other() -> None:
    with pytest.raises(Violated, match=INVARIANT):
        explored(MemoryModel(asks_others=False))
