"""The topic records when a broker became active: the agent that sees it writes it, and all judge by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.core.timestamps import format_utc
from tests.unit.daemon.cycles import NEWS, START, Bench, arrival, moment, state


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
