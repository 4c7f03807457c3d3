"""The ends of logs, as a broker reports them for each topic."""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import Producer

from bench.loads import RECORD_BYTES
from bench.log_ends import LogEnds
from testbed.loopback.clients import admin_client, create_topic, delete_topic
from testbed.loopback.cluster import KafkaCluster
from tests.integration.waiting import eventually


def test_what_has_landed_is_counted_by_topic(one_broker: KafkaCluster, topic_name: str) -> None:
    admin = admin_client(one_broker.client_configuration())
    topics = stake, free = f"{topic_name}-stake-1", f"{topic_name}-free-1"
    for topic in topics:
        create_topic(admin, topic, [[1]])
    producer = Producer(one_broker.client_configuration())
    with closing(LogEnds(one_broker, topics, 0.05)) as ends:
        ends.start()
        eventually(lambda: ends.landed().samples, "the first answer")
        for topic in (stake, free, free):
            producer.produce(topic, b"x" * 10)
        assert producer.flush(60) == 0
        of_both = (RECORD_BYTES, 2 * RECORD_BYTES)
        eventually(lambda: ends.landed().samples[-1].bytes_by_connection == of_both, "all have landed")
        for prefix, count in ((f"{topic_name}-stake-", 1), (f"{topic_name}-free-", 2), ("x", 0)):
            assert ends.landed(prefix).samples[-1].bytes == count * RECORD_BYTES
    for topic in topics:
        delete_topic(admin, topic)
