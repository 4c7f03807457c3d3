"""Orders on their own topic, in the agent's cycles and on its Kafka side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kquota.formats.records import TopicKind, TopicRecord
from kquota.guard.kafka_state import KafkaState, ReaderState
from kquota.journal.journal import MessageId
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.topic_records import (
    PartitionsChanged,
    ReadingFailed,
    ReadingRecovered,
    TopicRestarted,
)
from kquota.kafka.topics import TopicVerdict, Verdict
from tests.unit.guard.cycles import NEWS, START, Bench, arrival, cut, order, state
from tests.unit.wording import say


def ordered(
    key: str, value: Mapping[str, Any] | None, at_seconds: float = 0.0, **headers: str
) -> TopicRecord:
    appended_ms = round((START + timedelta(seconds=at_seconds)).timestamp() * 1000)
    return arrival(key, value, **headers)._replace(topic=TopicKind.ORDERS, appended_ms=appended_ms)


def test_a_hold_on_the_orders_topic_counts_is_told_and_ends() -> None:
    bench = Bench()
    bench.settle()
    report = bench.run(ordered("hold", order(600, Action="pause")))
    assert state(report) == "PAUSE"
    assert report.fold.results["operator"] == 1
    (news,) = report.fold.orders
    assert (news.body["Key"], news.body["Order"]["Action"]) == ("hold", "pause")  # type: ignore[index]
    released = bench.run(ordered("hold", None, actor="bob", reason="done"))
    assert state(released) == "OPEN"
    assert [news.sentence for news in released.fold.orders] == [
        say("hold-released", actor="bob", reason="done")
    ]


@pytest.mark.accepts("G11")
def test_what_breaks_the_bounds_is_told_and_the_hold_before_it_stays() -> None:
    bench = Bench()
    bench.settle()
    bench.run(ordered("hold", order(600, Action="pause")))
    report = bench.run(ordered("hold", order(31 * 86_400, Action="open")))
    assert state(report) == "PAUSE"
    assert report.fold.results["malformed"] == 1
    assert "at most 30 days" in report.fold.malformed[0]


@pytest.mark.accepts("G11")
def test_orders_on_the_usage_topic_are_counted_told_and_nothing_else() -> None:
    bench = Bench()
    bench.settle()
    report = bench.run(arrival("hold", order(600, Action="pause"))._replace(topic=TopicKind.USAGE))
    assert state(report) == "OPEN"
    assert report.fold.results["wrong_topic"] == 1
    assert report.fold.orders == []
    assert report.fold.malformed == [say("order-on-the-usage-topic", key="hold")]


@pytest.mark.accepts("F12")
def test_an_agent_whose_broker_is_decommissioned_reports_again_at_once() -> None:
    bench = Bench()
    bench.settle()
    bench.run(after=0.1)
    published = len(bench.ports.published)
    report = bench.run(
        ordered("decommission/1", {"Reason": "a slip", "Actor": "bob"}, bench.seconds), after=0.1
    )
    assert report.fold.orders[0].decommission
    assert report.fold.orders[0].sentence == say("decommissioned", broker=1, actor="bob", reason="a slip")
    assert report.fold.orders[0].body == {"Key": "1", "Order": None, "Actor": "bob", "Reason": "a slip"}
    bench.run(after=0.1)
    assert len(bench.ports.published) == published + 1


@pytest.mark.parametrize(
    ("behind", "readable", "waits"),
    [
        ({TopicKind.ORDERS}, True, True),
        ({TopicKind.ORDERS}, False, False),
        (set(), True, False),
    ],
)
def test_the_first_decision_waits_for_the_orders_unless_they_cannot_be_read(
    behind: set[TopicKind], readable: bool, waits: bool
) -> None:
    bench = Bench()
    bench.behind, bench.news = behind, replace(NEWS, orders_readable=readable)
    for _ in range(4):
        report = bench.run()
    assert (report.decision is None) is waits
    bench.behind, bench.news = set(), NEWS
    assert state(bench.run(ordered("hold", order(600, Action="pause")))) == "PAUSE"


def test_orders_of_a_backlog_count_and_are_no_news() -> None:
    bench = Bench()
    bench.behind = {TopicKind.ORDERS}
    bench.run()
    bench.run(ordered("hold", order(600, Action="open")), ordered("hold", order(600, Action="pause")))
    bench.behind = set()
    report = bench.run()
    bench.run()
    assert report.fold.orders == []
    assert state(bench.run()) == "PAUSE"


def test_a_malformed_order_of_a_backlog_is_counted_and_no_news() -> None:
    bench = Bench()
    too_long = ordered("hold", order(31 * 86_400, Action="open"))
    bench.behind = {TopicKind.ORDERS}
    found = bench.run(too_long)
    assert (found.fold.results["malformed"], found.fold.malformed) == (1, [])
    bench.behind = set()
    bench.run()
    assert bench.run(too_long).fold.malformed, "it is one as soon as the topic was read"


def test_while_the_orders_are_read_again_those_of_before_count() -> None:
    bench = Bench()
    bench.settle()
    bench.run(ordered("hold", order(600, Action="pause")))
    bench.behind = {TopicKind.ORDERS}
    assert state(bench.run(cut(TopicKind.ORDERS))) == "PAUSE"
    bench.behind = set()
    assert state(bench.run()) == "OPEN", "the log was cut, and the hold is not in it any more"


# --- The Kafka side

RECORD = TopicRecord(b"hold", b"{}", 5, topic=TopicKind.ORDERS)
DENIED = KafkaFailure(Kind.ACL_DENIED, "denied")


def kafka_state() -> KafkaState:
    return KafkaState(ReaderState("usage"), ReaderState("__kquota_orders", TopicKind.ORDERS))


def test_the_readers_of_both_topics_do_not_mix() -> None:
    knowledge = kafka_state()
    again = TopicRestarted("id", "cut", same_topic=True, topic=TopicKind.ORDERS)
    assert knowledge.take(again) is again
    assert knowledge.drain_restarts() == [say("reread", topic="orders", reason="cut")]
    assert knowledge.take(RECORD) is RECORD
    knowledge.take(PartitionsChanged(3, TopicKind.ORDERS))
    assert (knowledge.usage.partitions, knowledge.orders.partitions) == (None, 3)


def test_that_one_topic_is_read_to_its_end_says_nothing_of_the_other() -> None:
    bench = Bench()
    bench.behind = {TopicKind.USAGE}
    bench.run()
    report = bench.run(ordered("hold", order(600, Action="pause")), arrival(2, b"{"))
    assert report.decision is None
    assert (len(report.fold.orders), report.fold.malformed) == (1, [])


@pytest.mark.parametrize(
    ("kind", "is_readable", "subject"),
    [
        (Kind.ACL_DENIED, False, "orders reader"),
        (Kind.TOPIC_MISSING, False, "topic __kquota_orders"),
        (Kind.TIMEOUT, True, "orders reader"),
        (Kind.UNREACHABLE, True, "orders reader"),
    ],
)
def test_a_topic_that_cannot_be_read_is_a_trouble_and_not_waited_for(
    kind: Kind, is_readable: bool, subject: str
) -> None:
    knowledge = kafka_state()
    knowledge.take(ReadingFailed(KafkaFailure(kind, "it failed"), TopicKind.ORDERS))
    assert knowledge.news(0).orders_readable is is_readable
    assert [trouble.subject for trouble in knowledge.standing()] == [subject]
    assert knowledge.drain_read_failures() == 1
    knowledge.take(ReadingRecovered(TopicKind.ORDERS))
    assert knowledge.news(0).orders_readable
    assert list(knowledge.standing()) == []


def test_a_refused_orders_topic_is_told_and_does_not_pause_the_cluster() -> None:
    knowledge = kafka_state()
    knowledge.take(TopicVerdict("__kquota_orders", Verdict.REFUSED, "its cleanup.policy is delete"))
    (trouble,) = knowledge.standing()
    assert trouble.message_id is MessageId.TOPIC_REFUSED
    assert knowledge.news(0).topic_refused is None


def test_an_order_in_a_partition_of_before_is_told() -> None:
    knowledge = kafka_state()
    knowledge.take(RECORD._replace(key=b"decommission/3"))
    knowledge.take(PartitionsChanged(1, TopicKind.ORDERS))
    assert list(knowledge.standing()) == []
    for partitions in range(2, 9):
        knowledge.take(PartitionsChanged(partitions, TopicKind.ORDERS))
        if [trouble.message_id for trouble in knowledge.standing()] == [MessageId.TOPIC_REFUSED]:
            break
    else:
        pytest.fail("it is in its place with any number of partitions")
    assert knowledge.news(0).topic_refused is None
