"""An agent remembers whom its cluster has listed, and lets the reports of all others not count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.formats.records import TopicKind, TopicRecord
from kquota.guard.agent_state import AgentState, EverListed
from kquota.guard.listed import listed_brokers
from kquota.policy.known_brokers import ListedBrokers
from tests.unit.guard.cycles import CLUSTER, NEWS, SETTINGS, Bench, arrival, state

INVENTED = 999_999
STALENESS_SECONDS = SETTINGS.staleness_seconds


def remembering(*ids: int) -> Bench:
    return Bench(listed=listed_brokers(AgentState(ever_listed=EverListed(CLUSTER, ids))))


def full(bench: Bench, broker_id: int) -> TopicRecord:
    return arrival(broker_id, bench.usage(1, age_seconds=1e8))


def next_report(bench: Bench) -> dict[str, object]:
    bench.run(after=SETTINGS.interval_seconds)
    return bench.ports.published[-1]


@pytest.mark.accepts("G25")
def test_an_invented_full_broker_holds_no_producer() -> None:
    bench = remembering(1)
    bench.settle()
    report = bench.run(full(bench, INVENTED))
    assert state(report) == "OPEN"
    assert report.decision is not None
    assert report.decision.unvouched == (INVENTED,)
    assert next_report(bench)["Listed"] == []


@pytest.mark.accepts("A26", "G25")
def test_a_new_broker_that_was_listed_once_and_died_full_counts_also_after_a_restart() -> None:
    bench = remembering(1)
    bench.settle()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 3}))
    bench.run()
    assert bench.ports.listed[-1] == (CLUSTER, frozenset({1, 3}))
    bench.news = NEWS
    dead = full(bench, 3)
    assert state(bench.run(dead)) == "PAUSE"
    assert state(bench.run(after=10 * STALENESS_SECONDS)) == "PAUSE"
    assert next_report(bench)["Listed"] == [3]

    restarted = remembering(*bench.ports.listed[-1][1])
    restarted.run(dead)
    assert state(restarted.settle()) == "PAUSE"


def test_a_list_is_saved_once() -> None:
    bench = remembering(1, 7)
    for _ in range(5):
        bench.run()
    assert bench.ports.listed == [(CLUSTER, frozenset({1, 7}))]


@pytest.mark.accepts("A26", "G25")
def test_an_agent_without_a_memory_lets_all_count_and_then_takes_them_for_listed() -> None:
    bench = Bench()
    dead = full(bench, 3)
    bench.run(dead)
    assert state(bench.settle()) == "PAUSE"
    assert "Listed" not in bench.ports.published[-1]
    assert bench.ports.listed == []
    assert state(bench.run(after=STALENESS_SECONDS)) == "PAUSE"
    assert bench.ports.listed == [(CLUSTER, frozenset({1, 3}))]
    report = bench.run(full(bench, INVENTED))
    assert report.decision is not None
    assert report.decision.unvouched == (INVENTED,)


def test_as_long_as_the_cluster_has_listed_no_broker_all_reports_count() -> None:
    bench = remembering(1)
    bench.news = replace(NEWS, active_brokers=None)
    assert state(bench.run(full(bench, INVENTED), after=30)) == "PAUSE"
    bench.news = replace(NEWS, cluster_id="another")
    report = bench.run(after=1)
    assert state(report) == "PAUSE", "what is remembered is another cluster's"


@pytest.mark.accepts("A26")
def test_an_agent_whose_topic_was_never_read_to_its_end_concludes_nothing() -> None:
    bench = Bench()
    bench.behind = {TopicKind.USAGE}
    bench.run(after=2 * STALENESS_SECONDS)
    assert bench.ports.listed == []
    bench.behind = set()
    bench.run(full(bench, 3))
    bench.run()
    assert bench.ports.listed == [(CLUSTER, frozenset({1, 3}))]


def test_the_state_file_is_where_the_memory_comes_from() -> None:
    assert listed_brokers(AgentState()) == ListedBrokers()
    ever = AgentState(ever_listed=EverListed("c", (3, 1)))
    assert listed_brokers(ever) == ListedBrokers("c", frozenset({1, 3}), is_complete=True)
