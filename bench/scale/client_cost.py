"""The cost of the agent's Kafka clients for each broker of a cluster: threads, descriptors, memory, wake-ups.

librdkafka gives each broker that it has heard of a thread and a pipe, whether it is connected to it or not.
Measured with librdkafka's own mock of this many brokers, each side in a process of its own.
"""

from __future__ import annotations

import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import psutil
from confluent_kafka import Producer

from bench.harness.processor import processor_seconds
from bench.scale.figures import ClientCost
from kquota.daemon.kafka_side import KafkaSide
from kquota.settings.model import Settings

_PATIENCE_SECONDS = 120.0
_WATCHED_SECONDS = 20.0
_NAMED_ADDRESSES = 3
_CLIENTS = 4
"""The agent's: one that asks, two that publish, one that reads."""
_MOCKS: list[Producer] = []
"""They end with their process."""


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
    found = list(_MOCKS[0].list_topics(timeout=_PATIENCE_SECONDS).brokers.values())
    return ",".join(f"{one.host}:{one.port}" for one in found[:_NAMED_ADDRESSES])


def _measure(brokers: int, addresses: str) -> ClientCost:
    process = psutil.Process()
    memory_before = process.memory_info().rss
    settings = Settings(broker={"server_properties": "/none"}, kafka={"bootstrap.servers": addresses})
    side = KafkaSide(settings, broker_id=1, cluster_id=None)
    side.start()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while process.num_threads() < _CLIENTS * brokers:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the clients did not hear of {brokers} brokers in {_PATIENCE_SECONDS:g} s")
        side.gather(0.2)
    used_before, until = processor_seconds(), time.monotonic() + _WATCHED_SECONDS
    while time.monotonic() < until:
        side.gather(0.2)
    return ClientCost(
        brokers,
        process.num_threads(),
        process.num_fds(),
        process.memory_info().rss - memory_before,
        (processor_seconds() - used_before) / _WATCHED_SECONDS,
    )
