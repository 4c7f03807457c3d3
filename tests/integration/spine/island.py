"""A network of its own for some processes, with a bridge to all others that can be cut."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.processes import ChildProcess
from tests.integration.waiting import eventually

_RELAY = Path(__file__).with_name("relay.py")


class Island:
    """Its processes are started by ``launcher``. Needs root, as all network namespaces do."""

    def __init__(self, inside: ChildProcess, outside: ChildProcess) -> None:
        self._ends = (inside, outside)
        self.launcher = ("nsenter", f"--net=/proc/{inside.pid}/ns/net", "--")

    def cut(self) -> None:
        """From now on nothing gets through, either way; no connection is closed by it."""
        for end in self._ends:
            end.send(signal.SIGSTOP)

    def mend(self) -> None:
        """Everything gets through again."""
        for end in self._ends:
            end.send(signal.SIGCONT)


@contextmanager
def island(
    cluster: KafkaCluster, name: str, *, reached_from_it: Iterable[int], reached_in_it: Iterable[int]
) -> Iterator[Island]:
    """Make one; the ports are those outside that it reaches, and those in it that others reach."""
    directory = cluster.path / f"island-{name}"
    directory.mkdir()
    outward = [(f"tcp:{port}", f"unix:{directory}/to-{port}") for port in reached_from_it]
    inward = [(f"unix:{directory}/to-{port}", f"tcp:{port}") for port in reached_in_it]

    def relay(command: list[str], routes: list[tuple[str, str]], log: str) -> ChildProcess:
        process = ChildProcess(
            [*command, *(f"{here}={there}" for here, there in routes)],
            log_path=directory / log,
            environment=cluster.environment(),
        )
        eventually(lambda: "relaying" in process.log_tail() or not process.running(), f"{log} begins", 20)
        assert process.running(), process.log_tail()
        return process

    inside = relay(
        ["unshare", "--net", sys.executable, str(_RELAY), "--loopback"], [*outward, *inward], "inside.log"
    )
    try:
        backwards = [(there, here) for here, there in [*outward, *inward]]
        outside = relay([sys.executable, str(_RELAY)], backwards, "outside.log")
        try:
            yield Island(inside, outside)
        finally:
            outside.kill()
    finally:
        inside.kill()
