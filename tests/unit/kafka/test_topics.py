"""The required settings of a topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.kafka.admin import TopicFacts
from kquota.kafka.errors import Kind
from kquota.kafka.topics import (
    TopicContract,
    Verdict,
    history_topic,
    judge,
    orders_topic,
    partitions_for,
    replicas_for,
    topics_as_configured,
    usage_topic,
)
from kquota.settings.model import HistoryTopicSection, OrdersTopicSection, TopicsSection, UsageTopicSection

FACTS = TopicFacts("t", "id-1", frozenset({0}), 3, frozenset())


@pytest.mark.parametrize(
    ("brokers", "partitions", "replicas"),
    [(0, 1, 1), (1, 1, 1), (2, 1, 2), (3, 1, 3), (50, 1, 3), (51, 2, 3), (100, 2, 3), (1000, 20, 3)],
)
def test_partitions_and_replicas_follow_from_the_number_of_brokers(
    brokers: int, partitions: int, replicas: int
) -> None:
    assert (partitions_for(brokers), replicas_for(brokers)) == (partitions, replicas)


def test_partitions_and_replicas_that_are_configured_count_whatever_the_number_of_brokers() -> None:
    usage, history, orders = topics_as_configured(
        TopicsSection(
            usage=UsageTopicSection(name="u", partitions=7, replication_factor=2),
            history=HistoryTopicSection(name="h", partitions=3, replication_factor=1, retention_hours=2),
            orders=OrdersTopicSection(name="o", replication_factor=5),
        )
    )
    assert (usage.name, usage.partitions_among(200), usage.replicas_among(200)) == ("u", 7, 2)
    assert (history.name, history.partitions_among(200), history.replicas_among(200)) == ("h", 3, 1)
    assert history.settings["retention.ms"] == "7200000"
    assert (orders.name, orders.partitions_among(200), orders.replicas_among(200)) == ("o", 1, 5)
    two = replace(FACTS, replication_factor=2)
    assert judge(usage, two, usage.settings, 200).problems == {}, "as it was wanted"


def test_what_is_not_configured_follows_from_the_number_of_brokers() -> None:
    plain_topics = usage_topic(), history_topic(), orders_topic()
    for contract, plain, partitions in zip(
        topics_as_configured(TopicsSection()), plain_topics, (3, 3, 1), strict=True
    ):
        assert contract == plain
        assert (contract.partitions_among(101), contract.replicas_among(2)) == (partitions, 2)


def test_orders_are_refused_whose_writers_set_the_time_from_which_their_end_counts() -> None:
    contract = orders_topic()
    settings = {**contract.settings, "message.timestamp.type": "CreateTime"}
    verdict = judge(contract, FACTS, settings, 5)
    assert verdict.status is Verdict.REFUSED
    assert "its message.timestamp.type is CreateTime, and must be exactly LogAppendTime" in verdict.sentence
    deleted = {**contract.settings, "cleanup.policy": "delete"}
    assert judge(contract, FACTS, deleted, 5).status is Verdict.REFUSED


@pytest.mark.parametrize("contract", [usage_topic(), history_topic(), orders_topic()])
def test_a_topic_as_we_create_it_has_no_problems(contract: TopicContract) -> None:
    verdict = judge(contract, FACTS, contract.settings, 5)
    assert (verdict.status, verdict.problems) == (Verdict.OK, {})
    assert verdict.usable
    assert (verdict.topic_id, verdict.partitions, verdict.replication_factor) == ("id-1", 1, 3)


@pytest.mark.parametrize(
    ("contract", "policy"),
    [
        (usage_topic(), "delete"),
        (usage_topic(), "compact,delete"),
        (usage_topic(), "delete, compact"),
        (usage_topic(), ""),
        (history_topic(), "compact"),
        (history_topic(), "compact,delete"),
    ],
)
def test_any_other_cleanup_policy_is_refused(contract: TopicContract, policy: str) -> None:
    verdict = judge(contract, FACTS, {**contract.settings, "cleanup.policy": policy}, 3)
    assert verdict.status is Verdict.REFUSED
    assert not verdict.usable
    assert verdict.failure is not None
    assert verdict.failure.kind is Kind.TOPIC_REFUSED
    assert (policy or "unknown") in verdict.sentence


def test_fewer_replicas_than_wanted_is_a_problem_only_where_brokers_for_them_are() -> None:
    few = replace(FACTS, replication_factor=1)
    contract = usage_topic()
    assert judge(contract, few, contract.settings, 1).problems == {}
    assert "1 replicas where 2 are wanted" in judge(contract, few, contract.settings, 2).sentence
    assert "1 replicas where 3 are wanted" in judge(contract, few, contract.settings, 9).sentence


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("min.insync.replicas", "2", "min.insync.replicas is 2"),
        ("unclean.leader.election.enable", "true", "unclean.leader.election.enable is true"),
        ("max.message.bytes", "10000000", "max.message.bytes is 10000000"),
        ("retention.ms", "-1", "retention.ms is unlimited"),
        ("retention.bytes", "-1", "retention.bytes is unlimited"),
    ],
)
def test_unclean_settings_are_told_and_the_topic_is_used(setting: str, value: str, told: str) -> None:
    contract = history_topic()
    verdict = judge(contract, FACTS, {**contract.settings, setting: value}, 3)
    assert verdict.usable
    assert len(verdict.problems) == 1
    (problem,) = verdict.problems.values()
    assert told in problem
    assert problem in verdict.sentence


def test_a_usage_topic_whose_writers_set_the_time_of_storage_is_reported_and_used() -> None:
    contract = usage_topic()
    verdict = judge(contract, FACTS, {**contract.settings, "message.timestamp.type": "CreateTime"}, 3)
    assert (verdict.usable, list(verdict.problems)) == (True, ["message.timestamp.type"])
    assert "set it to LogAppendTime" in verdict.sentence


def test_the_history_is_bounded_as_asked() -> None:
    settings = history_topic(retention_seconds=3600, retention_bytes=80_000_000).settings
    assert settings["retention.ms"] == "3600000"
    assert settings["retention.bytes"] == "80000000"
    assert int(settings["segment.bytes"]) == 10_000_000
