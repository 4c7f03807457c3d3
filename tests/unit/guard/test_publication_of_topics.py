"""A changed list of topics is published at once, and several changes in a row each second."""

from __future__ import annotations

from kquota.guard.publication import PublicationSchedule
from kquota.policy.decision import Scope, State
from kquota.policy.usage import UsageRecord
from tests.unit.guard.cycles import VERIFIED, Bench, applied_state, settings_with, volume
from tests.unit.guard.test_publication import record


def over_soft(*topics: str, free: int = 15, known: bool = True) -> UsageRecord:
    return record(volume(free, topics=topics if known else None))


def test_changed_topics_are_due_at_once_and_others_after_a_second() -> None:
    schedule = PublicationSchedule(5)
    schedule.published(over_soft("a"), "THROTTLE", 100.0)
    assert not schedule.due(over_soft("a"), "THROTTLE", 100.1)
    for seconds, topics in ((100.1, ("a", "b")), (101.1, ("b",)), (103.0, ())):
        assert schedule.due(over_soft(*topics), "THROTTLE", seconds)
        schedule.published(over_soft(*topics), "THROTTLE", seconds)
        assert not schedule.due(over_soft(*topics, "z"), "THROTTLE", seconds + 0.9)
    assert schedule.due(over_soft("z"), "THROTTLE", 104.0)


def test_topics_that_become_known_or_unknown_are_changes() -> None:
    schedule = PublicationSchedule(5)
    schedule.published(over_soft(known=False), "THROTTLE", 100.0)
    assert not schedule.due(over_soft(known=False), "THROTTLE", 100.01)
    assert schedule.due(over_soft(), "THROTTLE", 100.01)
    assert schedule.is_news(over_soft(), "THROTTLE")
    schedule.published(over_soft(), "THROTTLE", 100.01)
    assert schedule.due(over_soft(known=False), "THROTTLE", 101.01)


def test_a_change_of_state_never_waits_for_topics_nor_topics_for_the_state() -> None:
    schedule = PublicationSchedule(5)
    schedule.published(record(volume(50)), "OPEN", 100.0)
    assert schedule.due(over_soft("a"), "OPEN", 100.1)
    schedule.published(over_soft("a"), "OPEN", 100.1)
    assert schedule.due(over_soft("a", "b"), "OPEN", 100.2)
    schedule.published(over_soft("a", "b"), "OPEN", 100.2)
    assert schedule.due(over_soft("a", "b", free=5), "OPEN", 100.3)


def test_topics_below_the_soft_limit_are_no_news() -> None:
    schedule = PublicationSchedule(5)
    schedule.published(over_soft("a", free=50), "OPEN", 100.0)
    assert not schedule.due(over_soft("a", "b", free=50), "OPEN", 102.0)


def test_a_cycle_publishes_the_topics_with_the_state_and_each_change_of_them() -> None:
    bench = Bench()
    bench.settle()
    bench.ports.volumes = (volume(15, topics=("a",)),)
    bench.run()
    bench.ports.volumes = (volume(15, topics=("a", "b")),)
    bench.run()
    crossing, change = bench.ports.published[-2:]
    assert [crossing["Volumes"][0]["Topics"], change["Volumes"][0]["Topics"]] == [["a"], ["a", "b"]]
    assert crossing["Volumes"][0]["TopicsComplete"] is True
    assert "scope" not in bench.ports.written[-1], "the scope is the cluster"


def test_the_sentence_of_a_cycle_has_the_number_of_topics_from_the_plug_in() -> None:
    bench = Bench(settings=settings_with(scope=Scope.VOLUME))
    bench.settle()
    bench.ports.volumes = (volume(5, topics=("a",)),)
    assert bench.run(after=1.0).sentence.startswith("PAUSE for 1 topic: ")
    bench.ports.plug_in = (applied_state(State.PAUSE, cluster_topics=12), VERIFIED)
    assert bench.run(after=1.0).sentence.startswith("PAUSE for 1 of 12 topics: ")


def test_with_the_scope_of_the_volume_each_change_of_topics_is_decided_at_once() -> None:
    bench = Bench(settings=settings_with(scope=Scope.VOLUME))
    bench.settle()
    for topics in (("a",), ("a", "b"), ("b",)):
        bench.ports.volumes = (volume(15, topics=topics),)
        bench.run(after=1.0)
        bench.run(after=0.2)
        assert bench.ports.written[-1]["topics"] == dict.fromkeys(topics, 0.5)
