"""The usage and the history topic: created as they must be, refused where they are not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kquota.kafka.admin import AdminConnection
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.topic_check import TopicCheck, TopicWatch
from kquota.kafka.topics import (
    MAX_RECORD_BYTES,
    TopicContract,
    TopicVerdict,
    Verdict,
    history_topic,
    orders_topic,
    usage_topic,
)
from testbed.loopback.clients import create_topic, delete_topic
from testbed.loopback.cluster import KafkaCluster
from tests.integration.kafka.conftest import AGENT, PATIENCE_SECONDS, Seen
from tests.integration.waiting import eventually

Close = Callable[[Any], Any]


def look(admin: AdminConnection, contract: TopicContract, *, create: bool = True) -> TopicVerdict:
    return TopicCheck(admin, contract, create=create, settle_seconds=0).look()


def set_of(client: AdminClient, topic: str, **settings: str) -> None:
    changes = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    client.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)


@pytest.mark.accepts("A12")
@pytest.mark.parametrize("contract_of", [usage_topic, history_topic])
def test_an_absent_topic_is_created_with_the_documented_settings(
    admin: AdminConnection, topic_name: str, contract_of: Callable[[str], TopicContract]
) -> None:
    contract = contract_of(topic_name)
    assert look(admin, contract, create=False).status is Verdict.ABSENT
    verdict = look(admin, contract)
    assert verdict.status is Verdict.CREATED
    assert verdict.problems == {}
    assert (verdict.partitions, verdict.replication_factor) == (1, 2)
    # Each question may go to another broker, and one of them may not have heard of the topic yet.
    settings = eventually(
        lambda: not isinstance(found := admin.topic_settings(topic_name).result(), KafkaFailure) and found,
        "its settings are known",
    )
    assert {name: settings[name] for name in contract.settings} == dict(contract.settings)
    eventually(lambda: look(admin, contract).status is Verdict.OK, "it is in order")


def test_a_topic_is_created_with_the_partitions_and_replicas_that_are_wanted(
    admin: AdminConnection, topic_name: str
) -> None:
    verdict = look(admin, replace(usage_topic(topic_name), partitions=3, replication_factor=1))
    assert (verdict.status, verdict.problems) == (Verdict.CREATED, {})
    assert (verdict.partitions, verdict.replication_factor) == (3, 1)


@pytest.mark.accepts("A12")
@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_with_another_cleanup_policy_is_refused(
    admin: AdminConnection, super_admin: AdminClient, topic_name: str, policy: str
) -> None:
    uncompressed = {"compression.type": "uncompressed"}
    create_topic(super_admin, topic_name, [[1, 2]], {"cleanup.policy": policy, **uncompressed})
    verdict = look(admin, usage_topic(topic_name))
    assert verdict.status is Verdict.REFUSED
    assert not verdict.usable
    assert policy in verdict.sentence
    assert topic_name in verdict.sentence
    assert verdict.failure is not None
    assert verdict.failure.kind is Kind.TOPIC_REFUSED


def answer_to(writer: Producer, topic: str, value: bytes) -> KafkaError | None:
    answers: list[KafkaError | None] = []
    writer.produce(topic, value, b"1", on_delivery=lambda error, _message: answers.append(error))
    assert writer.flush(PATIENCE_SECONDS) == 0
    (answer,) = answers
    return answer


@pytest.mark.parametrize("contract_of", [usage_topic, orders_topic])
def test_a_topic_that_all_agents_read_takes_no_batch_that_is_too_large_in_their_memory(
    admin: AdminConnection,
    secured: KafkaCluster,
    topic_name: str,
    contract_of: Callable[[str], TopicContract],
) -> None:
    contract = contract_of(topic_name)
    assert look(admin, contract).status is Verdict.CREATED
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        own = {"compression.type": codec, "message.max.bytes": "40000000", "log_level": 0}
        writer = Producer({**secured.client_configuration(AGENT), **own})
        refused, taken = (
            answer_to(writer, topic_name, bytes(size))
            for size in (3 * MAX_RECORD_BYTES, MAX_RECORD_BYTES // 2)
        )
        assert refused is not None, codec
        assert (refused.code(), taken) == (KafkaError.MSG_SIZE_TOO_LARGE, None), codec


def test_a_topic_that_keeps_batches_compressed_is_refused(
    admin: AdminConnection, super_admin: AdminClient, topic_name: str
) -> None:
    create_topic(super_admin, topic_name, [[1, 2]], {"cleanup.policy": "compact"})
    verdict = eventually(
        lambda: (found := look(admin, usage_topic(topic_name))).status is Verdict.REFUSED and found,
        "it is refused",
    )
    assert "its compression.type is producer, and must be exactly uncompressed" in verdict.sentence


@pytest.mark.accepts("F10")
def test_a_later_change_of_the_policy_is_seen_and_its_correction_too(
    admin: AdminConnection, super_admin: AdminClient, topic_name: str, closing: Close
) -> None:
    seen = Seen()

    def last() -> Verdict | None:
        verdicts = seen.of(TopicVerdict)
        return verdicts[-1].status if verdicts else None

    check = TopicCheck(admin, usage_topic(topic_name), settle_seconds=0)
    closing(TopicWatch([check], seen, interval_seconds=0.2, retry_seconds=0.2)).start()
    eventually(lambda: last() is Verdict.OK, "the topic is created and then in order")
    set_of(super_admin, topic_name, cleanup_policy="delete")
    eventually(lambda: last() is Verdict.REFUSED, "the changed policy is refused")
    set_of(super_admin, topic_name, cleanup_policy="compact")
    eventually(lambda: last() is Verdict.OK, "the corrected policy is accepted")
    before = len(seen.of(TopicVerdict))
    delete_topic(super_admin, topic_name)
    eventually(
        lambda: any(v.status is Verdict.CREATED for v in seen.of(TopicVerdict)[before:]),
        "the deleted topic is created again",
    )


def test_what_is_worse_than_it_should_be_is_reported_and_used(
    admin: AdminConnection, super_admin: AdminClient, topic_name: str
) -> None:
    create_topic(
        super_admin,
        topic_name,
        [[1]],
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "2",
            "unclean.leader.election.enable": "true",
            "max.message.bytes": "30000000",
        },
    )
    # A broker that has not heard of the topic yet would let it be created.
    verdict = eventually(
        lambda: (found := look(admin, usage_topic(topic_name))).status is Verdict.OK and found, "it is used"
    )
    assert verdict.usable
    told = " ".join(verdict.problems.values())
    settings = "min.insync.replicas", "unclean.leader.election", "max.message.bytes", "message.timestamp.type"
    for what in ("1 replicas where 2", *settings):
        assert what in told
    assert len(verdict.problems) == 5
    assert told in verdict.sentence


def test_an_unbounded_history_is_reported(
    admin: AdminConnection, super_admin: AdminClient, topic_name: str
) -> None:
    settings = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": "1000000"}
    create_topic(super_admin, topic_name, [[1, 2]], settings)
    verdict = look(admin, history_topic(topic_name))
    assert verdict.usable
    assert [problem.split(" is ")[0] for problem in verdict.problems] == ["retention.ms", "retention.bytes"]


def test_many_agents_create_the_topic_at_once(admin: AdminConnection, topic_name: str) -> None:
    verdicts: list[TopicVerdict] = []
    threads = [
        threading.Thread(target=lambda: verdicts.append(look(admin, usage_topic(topic_name))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {verdict.usable for verdict in verdicts} == {True}
    assert len({verdict.topic_id for verdict in verdicts}) == 1


def test_no_topic_is_created_before_the_set_of_brokers_has_settled(
    admin: AdminConnection, topic_name: str
) -> None:
    now = [100.0]
    check = TopicCheck(admin, usage_topic(topic_name), settle_seconds=10, clock=lambda: now[0])
    assert check.look().status is Verdict.ABSENT
    now[0] += 9.9
    assert check.look().status is Verdict.ABSENT
    now[0] += 0.1
    assert check.look().status is Verdict.CREATED
