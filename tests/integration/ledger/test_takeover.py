"""A ledger's producer goes on when another one takes its transactional id, and its book stays right."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from bench.ledger.audit import Promise, audit
from bench.ledger.campaign import PROOF_RECORDS, await_records
from bench.ledger.producers import KINDS, PARTITIONS, LedgerProducer, compiled
from bench.ledger.reader import read_all
from bench.loads import Client, Delivery
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import KafkaCluster

_RATE_BYTES = 50_000.0
_NOTICED_SECONDS = 60.0
_LOOK_SECONDS = 0.2


@pytest.mark.long
@pytest.mark.parametrize("client", list(Client))
def test_it_goes_on_with_a_new_producer_of_the_same_id(
    client: Client, one_broker: KafkaCluster, topic_name: str
) -> None:
    (kind,) = (one for one in KINDS if (one.client, one.delivery) == (client, Delivery.TRANSACTIONAL))
    configuration = one_broker.client_configuration()
    create_topic(admin_client(configuration), topic_name, [[1]] * PARTITIONS)
    java = compiled(one_broker.runtime, one_broker.path)
    producer = LedgerProducer(kind, one_broker, java, _RATE_BYTES, {}, topic=topic_name)
    try:
        await_records([producer])

        Producer({**configuration, "transactional.id": topic_name}).init_transactions(30)

        _await_fencing(producer)
        await_records([producer])
        producer.ask_to_stop()
        book = producer.stopped()
    finally:
        producer.ended(0)
    account = audit(topic_name, book, read_all(configuration, topic_name, PARTITIONS))
    assert account.broken(Promise.TRANSACTIONS) == {}
    assert account.landed >= PROOF_RECORDS


def _await_fencing(producer: LedgerProducer) -> None:
    deadline = time.monotonic() + _NOTICED_SECONDS
    while not producer.book().errors:
        assert time.monotonic() < deadline, "the producer has not noticed that its id was taken"
        time.sleep(_LOOK_SECONDS)
