"""A cycle takes in the readers' events in their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.formats.records import TopicKind
from kquota.kafka.topic_records import CaughtUp, TopicRestarted
from tests.unit.guard.cycles import NEWS, Bench, arrival, cut, order, state
from tests.unit.wording import say


def test_what_comes_after_the_end_in_the_same_cycle_is_news_and_what_comes_before_is_not() -> None:
    bench = Bench()
    bench.behind = set(TopicKind)
    report = bench.run(
        arrival("hold", order(600, Action="open")),
        CaughtUp(1, TopicKind.ORDERS),
        arrival("hold", None, actor="bob", reason="done"),
        arrival(2, b"{"),
        CaughtUp(1),
        arrival(3, b"{"),
    )
    assert [news.sentence for news in report.fold.orders] == [
        say("hold-released", actor="bob", reason="done")
    ]
    assert len(report.fold.malformed) == 1
    assert report.fold.results["malformed"] == 2


def test_what_came_before_the_log_was_cut_counts_until_the_end_and_not_beside_it() -> None:
    bench = Bench()
    bench.settle()
    bench.behind = {TopicKind.ORDERS}
    lost = arrival("hold", order(600, Action="pause"))
    assert state(bench.run(lost, cut(TopicKind.ORDERS))) == "PAUSE"
    assert state(bench.run(CaughtUp(0, TopicKind.ORDERS))) == "OPEN", "it is not in the log any more"


@pytest.mark.accepts("F9")
def test_an_old_report_in_a_topic_that_was_created_again_is_not_the_present() -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.run(arrival(2, bench.usage(50)))
    assert state(bench.settle()) == "OPEN"
    published = len(bench.ports.published)
    again = TopicRestarted("id2", "the topic was deleted and created again")
    bench.behind = {TopicKind.USAGE}
    bench.run(again, arrival(2, bench.usage(5, age_seconds=500)))
    assert state(bench.run(after=0)) == "OPEN"
    assert len(bench.ports.published) == published + 1, "the own report is not in it"
    assert state(bench.run(arrival(2, bench.usage(5)))) == "PAUSE", "a later one counts at once"


def test_a_cycle_that_fails_loses_nothing_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    with monkeypatch.context() as failing:
        failing.setattr(bench.ports, "observe", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bench.run(arrival("hold", order(600, Action="pause")))
    bench.behind = set(TopicKind)
    for _ in range(3):
        report = bench.run()
    assert state(report) == "PAUSE"
    assert report.decision is not None
    assert not report.decision.undetermined, "that both topics were read to their ends is kept, too"
