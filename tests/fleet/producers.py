"""Producers to brokers on hosts: one for each broker, whose topic has replicas on all others."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka.admin import AclBinding  # type: ignore[attr-defined]

from testbed.demo.load_process import LoadProcess
from testbed.hosts.fleet import Fleet
from testbed.hosts.rollout import wait_for
from testbed.loopback.clients import admin_client, create_topic
from testbed.loopback.workspace import ENVIRONMENT_MARK

Producers = dict[str, LoadProcess]


def configuration(fleet: Fleet, inventory: Path, name: str) -> dict[str, str]:
    """The client properties of a principal of that name."""
    authority = inventory.parent / "kafka-authority"
    return {
        "bootstrap.servers": ",".join(f"{host.address}:9092" for host in fleet.values()),
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority / "ca.pem"),
        "ssl.certificate.location": str(authority / f"{name}.pem"),
        "ssl.key.location": str(authority / f"{name}.key"),
    }


@contextmanager
def producing(
    fleet: Fleet, inventory: Path, names: Sequence[str], rate_bytes_per_second: int, logs: Path
) -> Iterator[Producers]:
    """Run a producer for each of these brokers, whose ids are 1, 2, … in this order."""
    admin, everyone = admin_client(configuration(fleet, inventory, "admin")), set(range(1, len(names) + 1))
    writing = ("User:CN=application", "*", "WRITE", "ALLOW")
    for created in admin.create_acls([AclBinding("TOPIC", "load", "PREFIXED", *writing)]).values():
        created.result(timeout=60)
    producers: Producers = {}
    with ExitStack() as stack:
        for number, name in enumerate(names, start=1):
            topic = f"load-{number}"
            create_topic(admin, topic, [[number, *(everyone - {number})]])
            producer = LoadProcess(
                "produce",
                topic=topic,
                configuration=configuration(fleet, inventory, "application"),
                log_path=logs / f"{topic}.log",
                environment={**os.environ, ENVIRONMENT_MARK: str(fleet.path)},
                options=["--rate-bytes", str(rate_bytes_per_second), "--record-bytes", "1000"],
            )
            producers[name] = stack.enter_context(producer)
        yield producers


def await_flow(producers: Producers, rate_bytes_per_second: float) -> None:
    """Wait until each of them has kept half of its rate for a while."""
    begun = time.monotonic()
    wait_for(
        lambda: [producer.rate_bytes_per_second() for producer in producers.values()],
        lambda rates: time.monotonic() > begun + 15 and min(rates) > 0.5 * rate_bytes_per_second,
    )


def longest_silences_seconds(producers: Producers, since: float) -> dict[str, float]:
    """The longest time, of those after `since`, in which each of them had no record acknowledged."""
    return {name: _longest_silence_seconds(producer, since) for name, producer in producers.items()}


def _longest_silence_seconds(producer: LoadProcess, since: float) -> float:
    """Until now: a producer that no longer reports is silent, too."""
    longest, at, history = 0.0, since, producer.history
    records = max((progress.records for progress in history if progress.at < since), default=0)
    for progress in history:
        if progress.at >= since and progress.records > records:
            longest = max(longest, progress.at - at)
            records, at = progress.records, progress.at
    return max(longest, time.monotonic() - at)
