"""The status of five hundred brokers, from a real topic, as a command of its own."""

from __future__ import annotations

import math
import resource
import time
from datetime import UTC, datetime

from confluent_kafka import Producer

from bench.scale.reports import CALM_FREE_RATIO, USUAL_FREE_RATIO, report
from kquota.kafka.topics import partitions_for, usage_topic
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.plug_in import agent_name
from testbed.loopback.ports import PortReservation
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import QUICK

_BROKERS, _VOLUMES, _FULL = 500, 8, 1017


def test_the_status_of_500_brokers_costs_less_than_twice_that_of_one(
    one_broker: KafkaCluster, topic_name: str
) -> None:
    configuration = one_broker.client_configuration(agent_name(1))
    admin, settings = admin_client(configuration), usage_topic().settings
    topics = {1: f"{topic_name}-one", _BROKERS: f"{topic_name}-many"}
    producer = Producer({**configuration, "compression.type": "lz4"})
    for brokers, topic in topics.items():
        create_topic(admin, topic, [[1]] * partitions_for(brokers), settings)
        for broker_id in [_FULL, *range(1501, 1500 + brokers)]:
            ratio = USUAL_FREE_RATIO if broker_id == _FULL else CALM_FREE_RATIO
            value = report(broker_id, _VOLUMES, datetime.now(UTC), free_ratio=ratio)
            producer.produce(topic, key=str(broker_id), value=value)
    assert producer.flush(60) == 0
    with PortReservation() as ports:
        agent = AgentProcess(one_broker, 1, ports.reserve(), QUICK, clone=topic_name)
    try:
        seconds, first = dict.fromkeys(topics, math.inf), ""
        # The least of three: other work on the machine only adds to what a command costs.
        for brokers, topic in [*topics.items()] * 3:
            agent.write_config(topics={"usage": {"name": topic}})
            begun, at = _processor_seconds(), time.monotonic()
            first = agent.order("status")
            seconds[brokers] = min(seconds[brokers], _processor_seconds() - begun)
            print(
                f"{brokers} brokers: {time.monotonic() - at:.2f} s, {seconds[brokers]:.2f} s of a processor"
            )
        assert seconds[_BROKERS] < 2 * seconds[1]
        whole = agent.order("status", "--all")
    finally:
        agent.close()
    assert len(first.splitlines()) < 60
    assert str(_FULL) in first
    assert len(whole.splitlines()) > _BROKERS * _VOLUMES


def _processor_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime
