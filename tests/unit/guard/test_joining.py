"""The topic records when a broker became active: the agent that sees it writes it, and all judge by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.formats.records import TopicRecord
from kquota.policy.timestamps import format_utc
from tests.unit.guard.cycles import NEWS, START, Bench, arrival, moment, state


def removal(seconds: float) -> TopicRecord:
    """The tombstone of broker 2, as appended this long after the start."""
    return arrival(2, None)._replace(appended_ms=round(moment(seconds).wall.timestamp() * 1000))


@pytest.mark.accepts("A31", "F31")
def test_an_agent_that_starts_after_a_broker_joined_grants_it_the_grace_that_the_others_grant() -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2, 3}))
    bench.run(arrival(2, bench.usage(50, Joined={"3": format_utc(START)})))
    assert state(bench.settle()) == "OPEN"
    report = bench.run(arrival(2, bench.usage(50)), after=61)
    assert state(report) == "PAUSE", "the grace is over for all, and 3 has never reported"


@pytest.mark.accepts("A31")
def test_what_an_agent_sees_is_on_the_topic_at_once_and_is_not_forgotten_in_a_restart() -> None:
    bench = Bench()
    bench.settle()
    assert "Joined" not in bench.ports.published[-1]
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    assert state(bench.run()) == "OPEN"
    assert bench.cycle.publishes_next
    bench.run(after=0.01)
    seen = bench.ports.published[-1]
    assert seen["Joined"] == {"2": format_utc(moment(bench.seconds - 0.01).wall)}

    restarted = Bench()
    restarted.seconds = bench.seconds + 5
    restarted.news = bench.news
    restarted.run(arrival(1, seen))
    assert state(restarted.settle()) == "OPEN"
    assert restarted.ports.published[-1]["Joined"] == seen["Joined"]


def test_what_a_record_says_already_calls_for_no_report_of_our_own() -> None:
    bench = Bench()
    bench.settle()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.run(arrival(2, bench.usage(50, Joined={"2": format_utc(moment(bench.seconds).wall)})))
    assert not bench.cycle.publishes_next
    assert "Joined" not in bench.ports.published[-1]


@pytest.mark.accepts("A31", "F11", "F13")
def test_to_remove_the_report_of_a_full_broker_that_has_just_come_back_opens_nothing() -> None:
    bench = Bench()
    bench.run(arrival(2, bench.usage(5)))
    assert state(bench.settle()) == "PAUSE"
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    assert state(bench.run()) == "PAUSE"
    report = bench.run(removal(bench.seconds))
    assert state(report) == "PAUSE"
    assert report.decision is not None
    assert [(one.broker_id, one.cause) for one in report.decision.undetermined] == [(2, "tombstone")]
    assert state(bench.run(arrival(2, bench.usage(50)))) == "OPEN", "its agent has reported again"


@pytest.mark.accepts("A31", "F11", "F41")
@pytest.mark.parametrize("behind_seconds", [0, 15, 29])
def test_a_removal_by_a_clock_that_is_behind_is_no_removal_before_the_join(behind_seconds: float) -> None:
    bench = Bench()
    bench.run(arrival(2, bench.usage(5)))
    assert state(bench.settle()) == "PAUSE"
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    assert state(bench.run()) == "PAUSE"
    assert state(bench.run(removal(bench.seconds - behind_seconds))) == "PAUSE"


@pytest.mark.accepts("A31", "F12")
def test_a_broker_that_returns_after_its_decommission_has_its_grace() -> None:
    bench = Bench()
    bench.run(arrival(2, bench.usage(5)), removal(-60))
    assert state(bench.settle()) == "OPEN"
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    assert state(bench.run()) == "OPEN"
    assert state(bench.run(after=61)) == "PAUSE", "it has never reported"
