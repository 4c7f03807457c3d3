"""A network of its own for some processes, with a bridge to all others that can be cut, and be bad."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from testbed.loopback import relay as relay_program
from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.processes import ChildProcess

Route = tuple[str, str]
Fault = Mapping[str, float | bool]
"""Fields of `testbed.loopback.relay.Fault`."""
_BEGIN_SECONDS = 20.0
_ORDER_SECONDS = 60.0
_LOOK_SECONDS = 0.05


class RelayFailed(Exception):
    """A relay did not begin, or did not obey; the message has the end of its log."""


class Relay:
    """One end of the bridge."""

    def __init__(
        self, cluster: KafkaCluster, command: list[str], routes: list[Route], directory: Path, name: str
    ) -> None:
        self._control = directory / f"{name}.control"
        self.process = ChildProcess(
            [
                *command,
                *("--control", str(self._control)),
                *(f"{here}={there}" for here, there in routes),
            ],
            log_path=directory / f"{name}.log",
            environment=cluster.environment(),
        )
        deadline = time.monotonic() + _BEGIN_SECONDS
        while "relaying" not in self.process.log_tail():
            if not self.process.running() or time.monotonic() > deadline:
                raise RelayFailed(f"{name} does not relay:\n{self.process.log_tail()}")
            time.sleep(_LOOK_SECONDS)

    def order(self, **order: object) -> None:
        """Have it obey; returns when it does.

        Raises:
            RelayFailed: it has ended.
            OSError: it does not answer.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
            one.settimeout(_ORDER_SECONDS)
            one.connect(str(self._control))
            one.sendall(json.dumps(order).encode() + b"\n")
            if one.recv(100) != b"done\n":
                raise RelayFailed(f"not done: {order}\n{self.process.log_tail()}")


class Island:
    """Its processes are started by ``launcher``. Needs root, as all network namespaces do."""

    def __init__(self, inside: Relay, outside: Relay, outward: set[int], inward: set[int]) -> None:
        self._ends = (inside, outside)
        self._outward, self._inward = outward, inward
        self.launcher = ("nsenter", f"--net=/proc/{inside.process.pid}/ns/net", "--")

    def cut(self) -> None:
        """From now on nothing gets through, either way; no connection is closed by it."""
        for end in self._ends:
            end.process.send(signal.SIGSTOP)

    def mend(self) -> None:
        """Everything gets through again, at once."""
        for end in self._ends:
            end.process.send(signal.SIGCONT)
        self.impair()

    def impair(
        self,
        *,
        leaving: Fault | None = None,
        entering: Fault | None = None,
        ports: Iterable[int] | None = None,
    ) -> None:
        """Have these faults, and no others, on what leaves the island and what enters it.

        ``ports`` are those of the connections concerned, of both directions; all by default.
        """
        chosen = set(self._outward | self._inward if ports is None else ports)
        faults: dict[str, Fault | None] = {}
        for known, out, back in ((self._outward, "forth", "back"), (self._inward, "back", "forth")):
            for port in known & chosen:
                faults |= {f"{port}/{out}": leaving, f"{port}/{back}": entering}
        self._ends[1].order(faults={key: dict(fault) for key, fault in faults.items() if fault is not None})

    def reset(self) -> None:
        """Reset all connections that go through the bridge."""
        ports = [str(port) for port in self._outward | self._inward]
        for end in self._ends:
            end.order(reset=ports)


@contextmanager
def island(
    cluster: KafkaCluster, name: str, *, reached_from_it: Iterable[int], reached_in_it: Iterable[int]
) -> Iterator[Island]:
    """Make one; the ports are those outside that it reaches, and those in it that others reach."""
    directory = cluster.path / f"island-{name}"
    directory.mkdir()
    outward, inward = set(reached_from_it), set(reached_in_it)
    out_of_it = [(f"tcp:{port}", f"unix:{directory}/to-{port}") for port in outward]
    into_it = [(f"unix:{directory}/to-{port}", f"tcp:{port}") for port in inward]
    program = [sys.executable, relay_program.__file__]
    inside = Relay(
        cluster,
        ["unshare", "--net", *program, "--loopback"],
        [*out_of_it, *into_it],
        directory,
        "inside",
    )
    try:
        backwards = [(there, here) for here, there in [*out_of_it, *into_it]]
        outside = Relay(cluster, program, backwards, directory, "outside")
        try:
            yield Island(inside, outside, outward, inward)
        finally:
            outside.process.kill()
    finally:
        inside.process.kill()
