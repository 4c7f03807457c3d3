"""A report of a broker that the cluster never listed does not count, one of a listed broker always does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.records import read_event
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, State
from kquota.policy.events import Decommission, DecommissionEvent, UsageEvent
from kquota.policy.known_brokers import ListedBrokers
from kquota.policy.view import MAX_UNLISTED_BROKERS, ClusterView
from tests.unit.policy.clusters import bounded
from tests.unit.policy.situations import (
    NOW,
    PAUSE,
    STALENESS,
    TOLERANCE,
    Record,
    fold,
    free,
    order,
    raw,
    usage,
    verdict,
)

INVENTED = 999_999
YEARS = 6 * 365 * 86_400.0
FULL = usage(free(1), age_seconds=YEARS)
FRESH_SINCE = NOW - STALENESS


def decided(
    *records: Record,
    active: Iterable[int],
    known: Iterable[int] | None,
    self_id: int | None = None,
    signed: Iterable[int] = (),
) -> Decision:
    view = ClusterView(TOLERANCE)
    for key, value in records:
        event = read_event(key, raw(value))
        if isinstance(event, UsageEvent) and event.broker_id in signed:
            event = replace(event, record=replace(event.record, signer=f"agent/{event.broker_id}"))
        view.fold(event, NOW)
    memory = None if known is None else frozenset(known)
    situation = Situation(frozenset(active), self_id=self_id, known_brokers=memory)
    return decide(view, situation, PolicySettings(staleness=STALENESS), NOW)


def healthy(*ids: int, **fields: object) -> list[Record]:
    return [(str(one), usage(free(50), **fields)) for one in ids]


def test_a_full_broker_that_the_cluster_never_listed_holds_no_producer() -> None:
    decision = decided(*healthy(1, 2), (str(INVENTED), FULL), active=(1, 2), known=(1, 2))
    assert decision.state is State.OPEN
    assert decision.unvouched == (INVENTED,)


@pytest.mark.accepts("A26")
def test_a_full_broker_that_was_listed_once_counts_however_long_it_has_been_away() -> None:
    decision = decided(*healthy(1, 2), ("3", FULL), active=(1, 2), known=(1, 2, 3))
    assert verdict(decision) == PAUSE
    assert decision.unvouched == ()


def test_an_agent_without_a_memory_lets_all_reports_count() -> None:
    assert verdict(decided(*healthy(1), ("3", FULL), active=(1,), known=None)) == PAUSE


@pytest.mark.accepts("A26")
def test_an_agent_that_is_new_goes_by_what_other_agents_have_seen() -> None:
    others = healthy(1, Listed=[3])
    assert verdict(decided(*others, ("3", FULL), active=(1, 2), known=(1, 2))) == PAUSE
    assert decided(*others, ("4", FULL), active=(1,), known=(1,)).unvouched == (4,)


@pytest.mark.parametrize("fields", [{"age_seconds": 61}, {"age_seconds": YEARS}])
def test_only_fresh_reports_vouch_for_a_broker(fields: dict[str, float]) -> None:
    records = [*healthy(1, Listed=[3], **fields), ("3", FULL)]
    assert decided(*records, active=(1,), known=(1,)).unvouched == (3,)


def test_only_active_brokers_that_are_not_quarantined_vouch() -> None:
    witness, dead = healthy(2, Listed=[3]), ("3", FULL)
    assert decided(*healthy(1), *witness, dead, active=(1,), known=(1,)).unvouched == (2, 3)
    quarantine = ("quarantine/2", order())
    assert decided(*healthy(1), *witness, dead, quarantine, active=(1, 2), known=(1, 2)).unvouched == (3,)
    assert decided(*healthy(1), *witness, dead, active=(1, 2), known=(1, 2)).unvouched == ()


def test_invented_brokers_do_not_vouch_for_each_other() -> None:
    records = [("7", usage(free(1), Listed=[8])), ("8", usage(free(1), Listed=[7]))]
    assert decided(*healthy(1), *records, active=(1,), known=(1,)).unvouched == (7, 8)


def test_a_verified_signature_vouches_for_a_broker_that_was_never_listed() -> None:
    decision = decided(*healthy(1), ("3", FULL), active=(1,), known=(1,), signed=(3,))
    assert (verdict(decision), decision.unvouched) == (PAUSE, ())


def test_a_broker_that_is_listed_or_decides_for_itself_needs_none_to_vouch() -> None:
    assert decided(("3", usage(free(50))), active=(3,), known=()).unvouched == ()
    assert decided(*healthy(1), ("3", usage(free(1))), active=(1,), known=(1,), self_id=3).unvouched == ()


def test_a_removed_or_unreadable_report_is_none_that_does_not_count() -> None:
    records: list[Record] = [*healthy(1), ("7", None), ("8", b"garbage")]
    assert decided(*records, active=(1,), known=(1,)).unvouched == ()


def listed(memory: ListedBrokers, view: ClusterView, *active: int, cluster_id: str = "c") -> ListedBrokers:
    memory.update(cluster_id, frozenset(active), view, NOW, FRESH_SINCE)
    return memory


def completed(memory: ListedBrokers, view: ClusterView, *active: int) -> ListedBrokers:
    listed(memory, view, *active)
    memory.complete(frozenset(active), view, NOW, FRESH_SINCE)
    return memory


def decommissioned(view: ClusterView, broker_id: int, *, age_seconds: float) -> ClusterView:
    at = NOW - timedelta(seconds=age_seconds)
    view.orders.fold(DecommissionEvent(broker_id, Decommission(at, "sold", "alice")), NOW)
    return view


def test_the_first_agent_takes_all_on_the_topic_for_listed() -> None:
    view = fold(*healthy(1), ("3", FULL), (str(INVENTED), None))
    first = completed(ListedBrokers(), view, 1, 2)
    assert first.known == {1, 2, 3}
    assert first.to_report(frozenset({1, 2}), view, NOW) == {3}


@pytest.mark.accepts("G25")
def test_a_new_agent_takes_over_what_the_others_have_seen_and_passes_it_on() -> None:
    """So a fleet whose hosts are all replaced one by one does not forget a broker that is away."""
    view = fold(*healthy(1, Listed=[3]), ("3", FULL), (str(INVENTED), FULL))
    later = completed(ListedBrokers(), view, 1, 2)
    assert later.known == {1, 2, 3}
    assert later.to_report(frozenset({1, 2}), view, NOW) == {3}


@pytest.mark.accepts("G25")
def test_others_make_an_agent_remember_nothing_after_its_first_minute() -> None:
    memory = completed(ListedBrokers(), fold(*healthy(1, Listed=[])), 1, 2)
    claimed = fold(*healthy(1, Listed=[INVENTED]), (str(INVENTED), FULL))
    assert completed(memory, claimed, 1, 2).known == {1, 2}


def test_a_memory_that_is_not_complete_judges_and_reports_nothing() -> None:
    memory = listed(ListedBrokers(), fold(), 1)
    assert memory.known is None
    assert memory.to_report(frozenset({1}), fold(), NOW) is None
    assert completed(memory, fold(), 1).to_report(None, fold(), NOW) is None


def test_the_memory_grows_with_the_list() -> None:
    memory = completed(ListedBrokers(), fold(), 1, 2)
    assert listed(memory, fold(*healthy(1, 2, 3)), 1, 3).ids == {1, 2, 3}
    assert listed(memory, fold(*healthy(1, 2, 3)), 1).ids == {1, 2, 3}


@pytest.mark.accepts("G25")
def test_a_decommissioned_broker_is_forgotten_once_its_agent_had_the_time_to_report_again() -> None:
    view = fold(*healthy(1), ("3", usage(free(1), age_seconds=100)))
    memory = ListedBrokers("c", frozenset({1, 3}), is_complete=True)
    assert listed(memory, decommissioned(view, 3, age_seconds=59), 1).ids == {1, 3}
    assert listed(memory, decommissioned(view, 3, age_seconds=60), 1).ids == {1}


@pytest.mark.accepts("G25", "F11")
@pytest.mark.parametrize("age_seconds", [1, 1000])
def test_the_agent_of_a_dead_full_broker_outlives_a_stranger_s_tombstone_and_a_wrong_decommission(
    age_seconds: float,
) -> None:
    memory = ListedBrokers("c", frozenset({1, 3}), is_complete=True)
    listed(memory, fold(*healthy(1), ("3", None)), 1)
    listed(memory, decommissioned(fold(*healthy(1)), 3, age_seconds=age_seconds), 1)
    reported = decommissioned(fold(*healthy(1), ("3", usage(free(1)))), 3, age_seconds=age_seconds)
    assert listed(memory, reported, 1).ids == {1, 3}


def test_an_active_broker_is_not_forgotten() -> None:
    memory = ListedBrokers("c", frozenset({1, 3}), is_complete=True)
    view = decommissioned(fold(("3", usage(free(1), age_seconds=100))), 3, age_seconds=90)
    assert listed(memory, view, 1, 3).ids == {1, 3}


def test_the_memory_is_of_one_cluster() -> None:
    memory = completed(ListedBrokers(), fold(), 1, 2)
    listed(memory, fold(), 5, cluster_id="d")
    assert (memory.ids, memory.known) == ({5}, None)


def test_the_memory_is_bounded() -> None:
    memory = ListedBrokers("c", frozenset(range(2 * MAX_UNLISTED_BROKERS)), is_complete=True)
    listed(memory, fold(), 1_000_000)
    assert len(memory.ids) == MAX_UNLISTED_BROKERS + 1
    assert {0, 1_000_000} <= memory.ids


ids = st.frozensets(st.integers(1, 6), max_size=4)
levels = st.lists(st.sampled_from([1, 15, 50]), min_size=6, max_size=6)
ages = st.lists(st.sampled_from([1.0, 59.0, 61.0, YEARS]), min_size=6, max_size=6)
lists = st.lists(st.none() | st.lists(st.integers(1, 6), max_size=3), min_size=6, max_size=6)


@given(ids, ids, ids, levels, ages, lists)
@bounded(400)
def test_a_stranger_changes_nothing_and_whoever_was_listed_decides_as_without_the_rule(
    active: frozenset[int],
    known: frozenset[int],
    signed: frozenset[int],
    free_gb: list[int],
    age: list[float],
    named: list[list[int] | None],
) -> None:
    records: list[Record] = []
    for one in range(1, 7):
        fields = {} if named[one - 1] is None else {"Listed": named[one - 1]}
        records.append((str(one), usage(free(free_gb[one - 1]), age_seconds=age[one - 1], **fields)))
    decision = decided(*records, active=active, known=known, signed=signed)
    strangers = set(decision.unvouched)
    assert not strangers & (active | known | signed)
    without = [record for record in records if int(str(record[0])) not in strangers]
    expected = decided(*without, active=active, known=None, signed=signed)
    assert replace(decision, unvouched=()) == expected
    assert decision.headroom >= decided(*records, active=active, known=None).headroom


@given(ids, ids, levels)
@bounded(200)
def test_agents_decide_alike_whatever_each_has_seen_if_all_reports_are_fresh(
    active: frozenset[int], away: frozenset[int], free_gb: list[int]
) -> None:
    """Each agent reports what it has seen, so that all know what one of them knows."""
    active, seen = active | {1}, {one: {other for other in away if (one + other) % 2} for one in active | {1}}
    records: list[Record] = []
    for one in range(1, 7):
        fields = {"Listed": sorted(seen[one] - active)} if one in active else {}
        records.append((str(one), usage(free(free_gb[one - 1]), age_seconds=1, **fields)))
    decisions = {replace(decided(*records, active=active, known=active | seen[one])) for one in active}
    assert len(decisions) == 1


def test_the_time_since_a_broker_was_listed_does_not_matter() -> None:
    view = fold(*healthy(1), ("3", usage(free(1), age_seconds=1)))
    situation = Situation(frozenset({1}), known_brokers=frozenset({1, 3}))
    for years in (0, 1, 10):
        now = NOW + timedelta(days=365 * years)
        decision = decide(view, situation, PolicySettings(staleness=STALENESS), now)
        assert decision.reasons[0].headroom == 0
