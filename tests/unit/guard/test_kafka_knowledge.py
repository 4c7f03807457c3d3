"""The Kafka clients' answers so far, as cycles and people need them."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from kquota.formats.records import TopicKind, TopicRecord
from kquota.guard.kafka_state import KafkaEvent, KafkaState, ReaderState
from kquota.journal.journal import MessageId
from kquota.kafka.brokers import BrokerList, BrokerListFailed, OwnBroker, OwnBrokerFailed
from kquota.kafka.client import ErrorWatch
from kquota.kafka.errors import KafkaFailure, Kind, Operation
from kquota.kafka.topic_records import (
    CaughtUp,
    PartitionsChanged,
    ReadingFailed,
    ReadingRecovered,
    TopicRestarted,
)
from kquota.kafka.topics import TopicVerdict, Verdict
from tests.unit.wording import say

TOPIC = "usage"
DOWN = KafkaFailure(Kind.UNREACHABLE, "broker x can't be reached")
DENIED = KafkaFailure(Kind.ACL_DENIED, "it was denied")
GONE = KafkaFailure(Kind.TOPIC_MISSING, "there is no such topic")


@pytest.fixture
def knowledge() -> KafkaState:
    return KafkaState(ReaderState(TOPIC), ReaderState("orders", TopicKind.ORDERS))


def wrong(knowledge: KafkaState) -> dict[str, str]:
    """The present troubles, by subject."""
    return {trouble.subject: trouble.sentence for trouble in knowledge.standing()}


def test_what_the_topic_contains_is_handed_on_and_nothing_else_is(knowledge: KafkaState) -> None:
    headers = (("actor", b"alice"),)
    record = TopicRecord(b"1", b"{}", 0, headers=headers, offset=7)
    assert knowledge.take(record) is record
    for event in (record, CaughtUp(3), TopicRestarted("id", "it was created again")):
        assert knowledge.take(event) is event
    for other in (PartitionsChanged(2), ReadingFailed(DOWN), ReadingRecovered(), DOWN):
        assert knowledge.take(other) is None


@pytest.mark.accepts("A15")
def test_the_list_of_brokers_stands_while_it_can_not_be_had(knowledge: KafkaState) -> None:
    assert knowledge.news(0).active_brokers is None
    knowledge.take(BrokerList(frozenset({1, 2}), "c", 10.0))
    knowledge.take(BrokerListFailed(DOWN, 11.0))
    news = knowledge.news(11)
    assert (news.active_brokers, news.cluster_id) == ({1, 2}, "c")
    assert wrong(knowledge) == {"brokers": DOWN.sentence}
    knowledge.take(BrokerList(frozenset({1}), None, 12.0))
    assert (knowledge.news(12).active_brokers, knowledge.news(12).cluster_id) == ({1}, "c")
    assert wrong(knowledge) == {}


def test_our_broker_has_answered_if_it_did_lately_though_with_a_denial(knowledge: KafkaState) -> None:
    assert not knowledge.news(0).asked_own_broker
    knowledge.take(OwnBroker(1, {}, 10.0))
    assert knowledge.news(20).asked_own_broker
    assert not knowledge.news(36).asked_own_broker
    knowledge.take(OwnBrokerFailed(1, DOWN, 40.0))
    assert not knowledge.news(40).asked_own_broker
    knowledge.take(OwnBrokerFailed(1, DENIED, 50.0))
    assert knowledge.news(50).asked_own_broker, "it has seen who we are"
    assert wrong(knowledge) == {"own broker": DENIED.sentence}


@pytest.mark.accepts("A12")
def test_a_refused_topic_stays_refused_while_it_can_not_be_looked_at(knowledge: KafkaState) -> None:
    refused = TopicVerdict(TOPIC, Verdict.REFUSED, "its cleanup.policy is delete")
    knowledge.take(refused)
    assert knowledge.news(0).topic_refused == "its cleanup.policy is delete"
    knowledge.take(TopicVerdict(TOPIC, Verdict.UNKNOWN, "no answer", failure=DOWN))
    assert knowledge.news(0).topic_refused == "its cleanup.policy is delete"
    assert [(trouble.kind, trouble.message_id) for trouble in knowledge.standing()] == [
        ("refused", MessageId.TOPIC_REFUSED),
        ("unknown", MessageId.KAFKA_TROUBLE),
    ]
    knowledge.take(TopicVerdict(TOPIC, Verdict.OK, "it is fine"))
    assert knowledge.news(0).topic_refused is None
    assert wrong(knowledge) == {}


def test_a_verdict_takes_the_place_of_the_one_before(knowledge: KafkaState) -> None:
    knowledge.take(TopicVerdict(TOPIC, Verdict.REFUSED, "its cleanup.policy is delete"))
    knowledge.take(TopicVerdict(TOPIC, Verdict.OK, "it is used, but", problems={"replicas": "one replica"}))
    assert [trouble.sentence for trouble in knowledge.standing()] == ["it is used, but"]


@pytest.mark.parametrize(
    "absent", [ReadingFailed(GONE), TopicVerdict(TOPIC, Verdict.ABSENT, "it does not exist", failure=GONE)]
)
@pytest.mark.parametrize("seen_between", [True, False])
def test_a_topic_that_is_read_exists_though_its_settings_can_not_be_learnt(
    knowledge: KafkaState, absent: KafkaEvent, *, seen_between: bool
) -> None:
    unlearnt = TopicVerdict(TOPIC, Verdict.UNKNOWN, "its settings cannot be learnt", failure=DENIED)
    knowledge.take(absent)
    if seen_between:
        knowledge.take(unlearnt)
    knowledge.take(ReadingRecovered())
    knowledge.take(unlearnt)
    assert [trouble.sentence for trouble in knowledge.standing()] == [unlearnt.sentence]


def test_a_topic_that_is_described_exists_though_nobody_reads_it(knowledge: KafkaState) -> None:
    knowledge.take(TopicVerdict("history", Verdict.ABSENT, "it does not exist", failure=GONE))
    unlearnt = TopicVerdict(
        "history", Verdict.UNKNOWN, "its settings cannot be learnt", topic_id="id", failure=DENIED
    )
    knowledge.take(unlearnt)
    assert [trouble.sentence for trouble in knowledge.standing()] == [unlearnt.sentence]


def test_a_topic_that_is_read_can_be_refused_still(knowledge: KafkaState) -> None:
    knowledge.take(TopicVerdict(TOPIC, Verdict.REFUSED, "its cleanup.policy is delete"))
    knowledge.take(ReadingRecovered())
    assert wrong(knowledge) == {f"topic {TOPIC}": "its cleanup.policy is delete"}


def test_another_topic_that_is_refused_does_not_keep_the_usage_topic_from_use(
    knowledge: KafkaState,
) -> None:
    knowledge.take(TopicVerdict("history", Verdict.REFUSED, "no"))
    assert knowledge.news(0).topic_refused is None
    assert wrong(knowledge) == {"topic history": "no"}


def test_a_usable_topic_with_problems_is_a_trouble(knowledge: KafkaState) -> None:
    knowledge.take(TopicVerdict(TOPIC, Verdict.OK, "it is used, but", problems={"replicas": "one replica"}))
    assert wrong(knowledge) == {f"topic {TOPIC}": "it is used, but"}
    assert knowledge.news(0).topic_refused is None


def test_failures_are_counted_by_kind_until_they_are_taken(knowledge: KafkaState) -> None:
    for event in (ReadingFailed(DOWN), DOWN, BrokerListFailed(DENIED, 0.0)):
        knowledge.take(event)
    assert knowledge.drain_errors() == {Kind.UNREACHABLE: 2, Kind.ACL_DENIED: 1}
    assert knowledge.drain_errors() == {}
    assert (knowledge.drain_read_failures(), knowledge.drain_read_failures()) == (1, 0)
    knowledge.take(ReadingRecovered())
    assert "reader" not in wrong(knowledge)


@pytest.mark.accepts("F23")
def test_denials_are_counted_by_the_permission_they_lack(knowledge: KafkaState) -> None:
    write = KafkaFailure(Kind.ACL_DENIED, "denied", Operation.WRITE)
    read = KafkaFailure(Kind.ACL_DENIED, "denied", Operation.READ)
    for event in (write, ReadingFailed(read), write, OwnBrokerFailed(1, DENIED, 1.0), DOWN):
        knowledge.take(event)
    assert knowledge.drain_denied() == {Operation.WRITE: 2, Operation.READ: 1}
    assert knowledge.drain_denied() == {}
    assert knowledge.drain_errors()[Kind.ACL_DENIED] == 4


def test_a_restart_of_the_topic_is_told_once(knowledge: KafkaState) -> None:
    knowledge.take(CaughtUp(1))
    knowledge.take(TopicRestarted("id", "it was created again"))
    knowledge.take(PartitionsChanged(2))
    assert knowledge.usage.partitions == 2
    assert knowledge.drain_restarts() == [say("reread", topic="usage", reason="it was created again")]
    assert knowledge.drain_restarts() == []


def test_a_broker_that_librdkafka_got_no_thread_for_is_told_as_long_as_these_clients_live(
    knowledge: KafkaState,
) -> None:
    error = KafkaError(KafkaError._CRIT_SYS_RESOURCE, "Unable to create broker thread")
    told: list[KafkaFailure] = []
    ErrorWatch(on_failure=told.append).on_error(error)
    knowledge.take(told[0])
    knowledge.take(BrokerList(frozenset({1}), "c", 0.0))
    assert "Unable to create broker thread" in wrong(knowledge)["resources"]
    assert knowledge.drain_errors() == {Kind.OTHER: 1}
