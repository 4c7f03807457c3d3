"""A real agent with few descriptors: idle and slow clients of its metrics endpoint do nothing to it."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.loopback.ports import LOOPBACK, PortReservation
from tests.integration.waiting import eventually

DESCRIPTORS = 96
CLIENTS = 120
GRANT = {"granted_at": "2026-11-20T10:00:00.000Z", "cluster_id": "a-cluster", "broker_id": 7}
BEGUN = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"


class Host:
    """An agent of a cluster that can't be reached: it decides, and writes its decision every second."""

    def __init__(self, root: Path, port: int) -> None:
        self.port, self.decision_file, self.log = port, root / "run" / "decision.json", root / "log"
        for name in ("kafka", "run", "broker", "state"):
            (root / name).mkdir(mode=0o755)
        (root / "server.properties").write_text(f"node.id=7\nlog.dirs={root}/kafka\n", "utf-8")
        state = {"schema_version": 1, "remembered_volumes": {}, "enforce_grant": GRANT}
        (root / "state" / "state.json").write_text(json.dumps(state), "utf-8")
        settings = {
            "broker": {"server_properties": str(root / "server.properties")},
            "kafka": {"bootstrap.servers": "127.0.0.1:1"},
            "decision_file": str(self.decision_file),
            "applied_file": str(root / "broker" / "applied.json"),
            "state_dir": str(root / "state"),
            "metrics": {"listen": f"{LOOPBACK}:{port}"},
            "interval_seconds": 1,
            "hang_seconds": 2,
            "lease_seconds": 3,
        }
        (root / "agent.yml").write_text(json.dumps(settings), "utf-8")
        limit = f'ulimit -n {DESCRIPTORS} && exec "$@"'
        agent = [sys.executable, "-m", "kquota", "run", "--config", str(root / "agent.yml")]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(["sh", "-c", limit, "sh", *agent], stdout=log, stderr=log)

    def sequence(self) -> int:
        """Return the number of the decision that is in the file."""
        try:
            return int(json.loads(self.decision_file.read_text("utf-8"))["sequence"])
        except FileNotFoundError:
            return 0

    def scrape(self) -> str:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}/metrics", timeout=60) as answer:
            return str(answer.read().decode())

    def descriptors(self) -> int:
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])

    def connect(self) -> socket.socket:
        return socket.create_connection((LOOPBACK, self.port), timeout=60)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with PortReservation() as ports:
        host = Host(tmp_path, ports.reserve())
        try:
            eventually(lambda: host.sequence() > 2, "it decides")
            yield host
        finally:
            host.process.terminate()
            host.process.wait(60)


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    """Connections of this process, which has descriptors enough."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 4096), before[1]))
    with ExitStack() as clients:
        yield clients
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def idle(_client: socket.socket) -> None:
    """Log nothing."""


def slow(client: socket.socket) -> None:
    """Begin a request and never end it."""
    client.sendall(BEGUN)


def deaf(client: socket.socket) -> None:
    """Ask, and read nothing."""
    client.sendall(BEGUN + b"\r\n")


@pytest.mark.parametrize("behave", [idle, slow, deaf])
def test_the_decision_is_written_whatever_clients_of_the_metrics_do(
    host: Host, clients: ExitStack, behave: Callable[[socket.socket], None]
) -> None:
    for _ in range(CLIENTS):
        client = clients.enter_context(host.connect())
        try:
            behave(client)
        except OSError:  # the agent has ended it already
            continue
    for _ in range(3):
        before = host.sequence()
        eventually(lambda before=before: host.sequence() > before, "the decision goes on being written")
    assert host.descriptors() < DESCRIPTORS - 10
    assert "kquota_cycle_seconds_count" in host.scrape(), "a scraper is served among them"
    assert host.process.poll() is None
    assert "Too many open files" not in host.log.read_text("utf-8")


def test_a_client_that_trickles_its_request_is_ended(host: Host) -> None:
    with host.connect() as client:
        client.sendall(BEGUN + b"X-Slow: ")
        client.settimeout(0.2)

        def ended() -> bool:
            try:
                client.sendall(b"x")
                return client.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

        eventually(ended, "its time is over")
