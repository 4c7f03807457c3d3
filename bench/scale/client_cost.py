"""The cost of the agent's Kafka clients for each broker of a cluster: threads, descriptors, memory, wake-ups.

librdkafka gives each broker that it has heard of a thread and a pipe, whether it is connected to it or not.
Measured with librdkafka's own mock of this many brokers, in processes of their own:
``python -m bench.scale.client_cost mock BROKERS`` and ``… clients BROKERS ADDRESSES``.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import psutil
from confluent_kafka import Producer

from bench.harness.processor import processor_seconds
from bench.scale.figures import ClientCost
from kquota.daemon.kafka_side import KafkaSide
from kquota.settings.model import Settings

_REPOSITORY = Path(__file__).resolve().parents[2]
_PATIENCE_SECONDS = 120.0
_WATCHED_SECONDS = 20.0
_TOLD_ADDRESSES = 3
_CLIENTS = 4
"""The agent's: one that asks, two that publish, one that reads."""


def measure_clients(brokers: int) -> ClientCost:
    """Measure with a cluster of this many brokers.

    Raises:
        RuntimeError: not all brokers were heard of in time.
    """
    with _running("mock", str(brokers)) as mock:
        assert mock.stdout is not None
        addresses = mock.stdout.readline().strip()
        with _running("clients", str(brokers), addresses) as clients:
            assert clients.stdout is not None
            told = clients.stdout.readline()
    if not told:
        raise RuntimeError(f"the clients have not heard of {brokers} brokers within {_PATIENCE_SECONDS:g} s")
    return ClientCost(**json.loads(told))


@contextmanager
def _running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """One of the two processes, until the end; they end with their standard input."""
    command = [sys.executable, "-m", "bench.scale.client_cost", *arguments]
    with subprocess.Popen(
        command,
        cwd=_REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _mock(brokers: int) -> None:
    producer = Producer({"test.mock.num.brokers": brokers})
    found = producer.list_topics(timeout=_PATIENCE_SECONDS).brokers.values()
    print(",".join(f"{one.host}:{one.port}" for one in list(found)[:_TOLD_ADDRESSES]), flush=True)
    sys.stdin.read()


def _clients(brokers: int, addresses: str) -> None:
    settings = Settings(broker={"server_properties": "/none"}, kafka={"bootstrap.servers": addresses})
    side = KafkaSide(settings, broker_id=1, cluster_id=None)
    side.start()
    process = psutil.Process()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while process.num_threads() < _CLIENTS * brokers:
        if time.monotonic() > deadline:
            return
        side.gather(0.2)
    before = processor_seconds()
    _gather_for(side, _WATCHED_SECONDS)
    used_seconds = processor_seconds() - before
    cost = ClientCost(
        brokers,
        process.num_threads(),
        process.num_fds(),
        process.memory_info().rss,
        used_seconds / _WATCHED_SECONDS,
    )
    print(json.dumps(asdict(cost)), flush=True)


def _gather_for(side: KafkaSide, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        side.gather(0.2)


def main(what: str, brokers: str, *addresses: str) -> None:
    """Be one of the two processes."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if what == "mock":
        _mock(int(brokers))
    else:
        _clients(int(brokers), *addresses)


if __name__ == "__main__":
    main(*sys.argv[1:])
