"""The cost of clients that try again at once: for a broker that refuses them, and for a stock one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import IO

from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from bench.figures import Impatient
from bench.harness.processor import processor_seconds
from bench.loads import JavaLoadClass
from bench.systems import STOCK, System
from testbed.loopback.clients import admin_client

CONNECTIONS = 1000
_TOPIC = "bench-impatient"
_RECORD_BYTES = 1000
_WARM_SECONDS, _MEASURED_SECONDS = 6.0, 10.0
_FACTORS = {"OPEN": Fraction(1), "THROTTLE": Fraction(1, 10), "PAUSE": Fraction(0)}
_TIMEOUT_SECONDS = 30.0


def impatient(systems: Sequence[System], java: JavaLoadClass) -> Iterator[Impatient]:
    """One system at a time, in each state that it knows: the clients take what the broker leaves.

    The first round is the compilers'.
    """
    for last in (False, True):
        for system in systems:
            for state in ("OPEN",) if system.name == STOCK else _FACTORS:
                with _topic(system):
                    found = _measured(system, state, java)
                if last:
                    yield found


def _measured(system: System, state: str, java: JavaLoadClass) -> Impatient:
    host, _, port = system.cluster.bootstrap_servers.partition(",")[0].rpartition(":")
    numbers = map(str, (CONNECTIONS, _RECORD_BYTES, _WARM_SECONDS, _MEASURED_SECONDS))
    command = [*java.command(), host, port, _TOPIC, *numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        try:
            assert load.stdout is not None
            _line(load.stdout)
            if system.name != STOCK:
                system.decide(_FACTORS[state])
            _line(load.stdout)
            used = processor_seconds(system.node.pid)
            found = json.loads(_line(load.stdout))
            used = processor_seconds(system.node.pid) - used
        finally:
            load.kill()
            if system.name != STOCK:
                system.decide(_FACTORS["OPEN"])
    return Impatient(
        system.name,
        state,
        CONNECTIONS,
        found["answers"] / found["seconds"],
        found["refused"] / found["answers"] if found["answers"] else 0.0,
        used / found["seconds"],
    )


@contextmanager
def _topic(system: System) -> Iterator[None]:
    admin = admin_client(system.cluster.client_configuration())
    admin.create_topics([NewTopic(_TOPIC, 1, 1)])[_TOPIC].result(_TIMEOUT_SECONDS)
    yield
    admin.delete_topics([_TOPIC])[_TOPIC].result(_TIMEOUT_SECONDS)


def _line(output: IO[str]) -> str:
    line = output.readline()
    if not line:
        raise RuntimeError("the impatient clients ended before their time")
    return line
