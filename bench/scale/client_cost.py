"""The cost of the agent's Kafka clients for each broker of a cluster: threads, descriptors, memory, wake-ups.

librdkafka gives each broker that it has heard of a thread and a pipe, whether it is connected to it or not.
Measured with librdkafka's own mock of this many brokers, each side in a process of its own.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from typing import TypeVar

import psutil
from confluent_kafka import Producer

from bench.harness.processor import processor_seconds
from bench.scale.figures import ClientCost
from kquota.formats.records import TopicKind
from kquota.guard import kafka_side
from kquota.guard.kafka_side import KafkaSide
from kquota.kafka.admin import REST_SECONDS, AdminConnection, Pending, TopicFacts
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.topic_records import CaughtUp
from kquota.kafka.topics import topics_as_configured
from kquota.settings.model import Settings, TopicsSection

T = TypeVar("T")

_PATIENCE_SECONDS = 120.0
_WATCHED_SECONDS = 2 * REST_SECONDS
_NAMED_ADDRESSES = 3
_CLIENTS = 2
"""The agent's that are always there: one that reads, one that publishes."""
_MOCKS: list[Producer] = []
"""They end with their process."""


class _WellAnswered(AdminConnection):
    """An Admin client whose answers about topics are those of a cluster that has them.

    The mock does not know these requests, and a failure is asked about again each second. It is asked for
    something else instead, which costs the same.
    """

    def describe_topic(self, name: str) -> Pending[TopicFacts]:
        return self._instead(name, TopicFacts(name, f"id of {name}", frozenset({0}), 3, frozenset()))

    def topic_settings(self, name: str) -> Pending[Mapping[str, str]]:
        contracts = topics_as_configured(TopicsSection())
        return self._instead(name, next(one.settings for one in contracts if one.name == name))

    def _instead(self, topic: str, answer: T) -> Pending[T]:
        asked = self.end_offset(topic, 0)

        def result() -> T | KafkaFailure:
            end = asked.result()
            return end if isinstance(end, KafkaFailure) else answer

        return Pending(result, asked.future)


def measure_clients(brokers: int) -> ClientCost:
    """Measure with a cluster of this many brokers.

    Raises:
        TimeoutError: not all brokers were heard of in time.
    """
    spawn = get_context("spawn")
    with (
        ProcessPoolExecutor(1, spawn, _allow_descriptors) as mock,
        ProcessPoolExecutor(1, spawn, _allow_descriptors) as clients,
    ):
        addresses = mock.submit(_start_mock, brokers).result()
        return clients.submit(_measure, brokers, addresses).result()


def _allow_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _start_mock(brokers: int) -> str:
    _MOCKS.append(Producer({"test.mock.num.brokers": brokers}))
    for contract in topics_as_configured(TopicsSection()):
        _MOCKS[0].produce(contract.name, b"", partition=0)
    _MOCKS[0].flush(_PATIENCE_SECONDS)
    found = list(_MOCKS[0].list_topics(timeout=_PATIENCE_SECONDS).brokers.values())
    return ",".join(f"{one.host}:{one.port}" for one in found[:_NAMED_ADDRESSES])


def _measure(brokers: int, addresses: str) -> ClientCost:
    process = psutil.Process()
    memory_before = process.memory_info().rss
    settings = Settings(broker={"server_properties": "/none"}, kafka={"bootstrap.servers": addresses})
    vars(kafka_side)["AdminConnection"] = _WellAnswered
    side = KafkaSide(settings, broker_id=1, cluster_id=None)
    side.start()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    caught_up = False
    while process.num_threads() < _CLIENTS * brokers or not caught_up:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"the clients did not read in a cluster of {brokers} brokers within {_PATIENCE_SECONDS:g} s"
            )
        caught_up = caught_up or any(
            isinstance(event, CaughtUp) and event.topic is TopicKind.USAGE for event in side.gather(0.2)
        )
    used_before, until = processor_seconds(), time.monotonic() + _WATCHED_SECONDS
    threads, memory = [], []
    while time.monotonic() < until:
        side.gather(0.2)
        threads.append(process.num_threads())
        memory.append(process.memory_info().rss - memory_before)
    return ClientCost(
        brokers,
        int(median(threads)),
        process.num_fds(),
        int(median(memory)),
        (processor_seconds() - used_before) / _WATCHED_SECONDS,
        max(threads),
        max(memory),
    )
