"""The state of a host as an operator sees it: its files, its journal, the output of kquota."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 300.0
_PACKAGE = Path(__file__).parents[3] / "agent/kquota/__init__.py"
VERSION = re.findall(r'__version__ = "(.+)"', _PACKAGE.read_text("utf-8"))[0]
OPERATOR = "--command-config /etc/kafka/operator.properties"
# systemd's id of the message that a unit has started.
_STARTED = "39f53479d3a045ac8e11786248231fbf"
# By the host name, which is in the certificate; clients find the other brokers through it.
INTERNAL, CLIENTS = "$(hostname):9093", "$(hostname):9092"
ADMIN = "/etc/kafka/admin.properties"
APPLICATION = "/etc/kafka/application.properties"


def old_kafka(line: str) -> bool:
    """Return whether the hosts run an older line of Kafka than this one, such as `4.1`."""
    chosen = os.environ.get("SCENARIO_KAFKA") or "99"
    return [int(part) for part in chosen.split(".")] < [int(part) for part in line.split(".")]


CALLBACK, AUTHORIZER = (
    ("org.kquota.CallbackWithoutMetrics", "org.kquota.AuthorizerWithoutMetrics")
    if old_kafka("4.1")
    else ("org.kquota.KquotaCallback", "org.kquota.KquotaAuthorizer")
)
"""The names of the plug-in's classes in the brokers' properties."""


def wait_for(read: Callable[[], T], wanted: Callable[[T], bool]) -> T:
    """Read until the value is as wanted; return it, or fail with the last one after a time-out."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not wanted(seen := read()):
        assert time.monotonic() < deadline, f"still so after {PATIENCE_SECONDS:g} s: {seen}"
        time.sleep(0.5)
    return seen


def run(host: Any, command: str, *arguments: str) -> str:
    """Run a command on the host as root and return its output; a failure shows all of it."""
    with host.sudo():
        done = host.run(command, *arguments)
    assert done.rc == 0, f"{done.command}: {done.rc}\n{done.stdout}{done.stderr}"
    return str(done.stdout)


def starts(host: Any, unit: str) -> int:
    """Return how often systemd has started a unit, including restarts."""
    journal = "journalctl --no-pager --quiet --output=cat UNIT=%s MESSAGE_ID=%s"
    return len(run(host, journal, unit, _STARTED).splitlines())


def leftovers(host: Any) -> str:
    """Return the paths on the host with kquota in their name."""
    places = "/etc /opt /run /usr /var/lib /var/cache"
    others = "-not -path '*/dpkg/*' -not -path '/run/systemd/*'"
    return run(host, f"find {places} -xdev -ignore_readdir_race -iname '*kquota*' {others}")


def document(host: Any, path: str) -> dict[str, Any]:
    """Return a JSON file of the host."""
    result: dict[str, Any] = json.loads(run(host, "cat %s", path))
    return result


def decision(host: Any) -> dict[str, Any]:
    """Return the decision that the plug-in reads."""
    return document(host, "/run/kquota/decision.json")


def applied(host: Any) -> dict[str, Any]:
    """Return the plug-in's report."""
    return document(host, "/run/kquota-broker/applied.json")


def kafka(host: Any, tool: str, arguments: str, *, admin: bool = True) -> str:
    """Run one of Kafka's tools as the administrator."""
    properties = "--consumer.config" if old_kafka("4.2") and "consumer" in tool else "--command-config"
    connection = f"--bootstrap-server {INTERNAL} {properties} {ADMIN}" if admin else ""
    return run(host, f"KAFKA_HEAP_OPTS=-Xmx128m /opt/kafka/bin/{tool}.sh {connection} {arguments}")


def producer(topic: str, records: int) -> str:
    """Return the command with which an application writes this many records of a kilobyte."""
    connection = f"--producer-props bootstrap.servers={CLIENTS} --producer.config {APPLICATION}"
    amount = f"--topic {topic} --num-records {records} --record-size 1000 --throughput -1"
    return f"/opt/kafka/bin/kafka-producer-perf-test.sh {amount} {connection}"


def produce(host: Any, topic: str, records: int) -> str:
    """Write this many records as an application; return the output of the tool."""
    return run(host, producer(topic, records))


def run_producer(host: Any, topic: str, records: int) -> Any:
    """Try to write this many records as an application, for a minute at most; return what the command did."""
    with host.sudo():
        return host.run(f"timeout 60 {producer(topic, records)} 2>&1")
