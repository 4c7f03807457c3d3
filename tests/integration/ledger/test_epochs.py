"""An idempotent client of Java begins a new epoch by itself where a broker answers later than it waits.

Kafka alone: no plug-in, no agent.
"""

from __future__ import annotations

import pytest

from bench.ledger.audit import Promise, audit
from bench.ledger.campaign import await_records
from bench.ledger.producers import KINDS, PARTITIONS, LedgerProducer, compiled
from bench.ledger.reader import read_all
from bench.loads import Client, Delivery
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.node import KafkaNode
from tests.integration.waiting import eventually

_IMPATIENT = {"linger.ms": "5", "request.timeout.ms": "1000", "delivery.timeout.ms": "2000"}
_MOST_SILENCES = 12


@pytest.mark.accepts("G20")
def test_the_ledger_counts_the_epochs_that_java_begins_by_itself(
    one_broker: KafkaCluster, topic_name: str
) -> None:
    (kind,) = (one for one in KINDS if (one.client, one.delivery) == (Client.JAVA, Delivery.IDEMPOTENT))
    configuration = one_broker.client_configuration()
    create_topic(admin_client(configuration), topic_name, [[1]] * PARTITIONS)
    java = compiled(one_broker.runtime, one_broker.path)
    producer = LedgerProducer(kind, one_broker, java, 50_000.0, _IMPATIENT, topic=topic_name)
    (node,) = one_broker.nodes.values()
    try:
        await_records([producer])
        assert producer.book().epochs == 0
        for _ in range(_MOST_SILENCES):  # one in which nothing was under way leads to no epoch
            _silence(node, producer)
            await_records([producer])
            if producer.book().epochs:
                break
        producer.ask_to_stop()
        book = producer.stopped()
    finally:
        producer.ended(0)
    account = audit(topic_name, book, read_all(configuration, topic_name, PARTITIONS))
    assert account.epochs > 0
    assert account.broken(Promise.EXACTLY_ONCE) == {}


def _silence(node: KafkaNode, producer: LedgerProducer) -> None:
    """Have the broker hang until the client has given up a record more."""
    given_up = len(producer.book().given_up)
    node.suspend()
    try:
        eventually(lambda: len(producer.book().given_up) > given_up, "records are given up")
    finally:
        node.resume()
