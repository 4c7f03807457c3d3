"""Records from the topic's beginning, before it is known which of them still hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.formats.records import TopicKind
from tests.unit.guard.cycles import (
    NEWS,
    SETTINGS,
    Bench,
    MemoryPorts,
    arrival,
    cut,
    order,
    settings_with,
    state,
)
from tests.unit.wording import say


def test_a_reload_tells_nothing_again() -> None:
    bench = Bench()
    bench.settle()
    bench.replace_ports(MemoryPorts(), SETTINGS)
    report = bench.run(arrival("hold", order(600, Action="pause")), arrival("hold", None), arrival(2, b"{"))
    assert (report.fold.orders, report.fold.malformed) == ([], [])
    report = bench.run(arrival("hold", None, actor="bob", reason="done"))
    assert [news.sentence for news in report.fold.orders] == [
        say("hold-released", actor="bob", reason="done")
    ]


def test_another_cluster_s_records_count_no_more_when_it_is_known_which_this_is() -> None:
    bench = Bench()
    bench.news = replace(NEWS, cluster_id=None, active_brokers=None)
    bench.run(arrival(9, bench.usage(5, ClusterId="another")))
    bench.news = NEWS
    assert state(bench.settle()) == "OPEN"


@pytest.mark.accepts("F34")
def test_a_reload_keeps_the_view_until_the_topic_was_read_again() -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.run(arrival(2, bench.usage(5)))
    assert state(bench.settle()) == "PAUSE"
    ports = MemoryPorts()
    bench.replace_ports(ports, settings_with(staleness_seconds=600.0))
    bench.behind = {TopicKind.USAGE}
    old = bench.usage(50, age_seconds=500)
    assert state(bench.run(arrival(2, old))) == "PAUSE", "what is read on the way is not the present"
    bench.behind = set()
    assert state(bench.run(arrival(2, bench.usage(15)))) == "THROTTLE"
    assert ports.published, "it reports at once"


@pytest.mark.parametrize("portions", [1, 2])
def test_old_records_of_a_log_that_was_cut_do_not_pass_for_the_present(portions: int) -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.run(arrival(2, bench.usage(50)))
    assert state(bench.settle()) == "OPEN"
    old, present = arrival(2, bench.usage(5, age_seconds=500)), arrival(2, bench.usage(15))
    if portions == 2:
        bench.behind = {TopicKind.USAGE}
        assert state(bench.run(cut(), old)) == "OPEN"
        bench.behind = set()
        report = bench.run(present)
    else:
        report = bench.run(cut(), old, present)
    assert state(report) == "THROTTLE"


def test_a_log_that_was_cut_gets_our_own_report_at_once() -> None:
    bench = Bench()
    bench.settle()
    published = len(bench.ports.published)
    bench.behind = {TopicKind.USAGE}
    bench.run(cut())
    assert bench.cycle.publishes_next
    bench.run(after=0)
    assert len(bench.ports.published) == published + 1


@pytest.mark.accepts("A31")
@pytest.mark.parametrize("again", [False, True])
def test_brokers_that_the_cluster_lists_are_not_crowded_out(
    again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kquota.policy.view.MAX_UNLISTED_BROKERS", 2)
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 9}))
    crowd = [arrival(broker_id, bench.usage(50)) for broker_id in (2, 3, 4)]
    bench.run(*crowd)
    if again:
        bench.replace_ports(MemoryPorts(), SETTINGS)
        bench.run(*crowd)
    report = bench.run(arrival(9, bench.usage(15)))
    assert report.fold.results["excess"] == 0
    bench.run()
    assert state(bench.run()) == "THROTTLE"
