"""The relay of the tests: what it does to a connection, and that it is undone."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from testbed.loopback import relay
from testbed.loopback.ports import PortReservation
from tests.integration.waiting import eventually

_SHORT_SECONDS = 0.3


class Line:
    """A relay with one route, and a server behind it."""

    def __init__(self, directory: Path, port: int) -> None:
        self.port, self._open = port, ExitStack()
        self._server = self._open.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._server.settimeout(60)
        self._control = directory / "control"
        there = self._server.getsockname()[1]
        self._process = subprocess.Popen(
            [sys.executable, relay.__file__, "--control", self._control, f"tcp:{port}=tcp:{there}"],
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"relaying\n"

    def connect(self) -> tuple[socket.socket, socket.socket]:
        """A connection through it: both of its ends."""
        near = self._open.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=60))
        far = self._open.enter_context(self._server.accept()[0])
        far.settimeout(60)
        return near, far

    def order(self, **order: object) -> None:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(60)
            one.connect(str(self._control))
            one.sendall(json.dumps(order).encode() + b"\n")
            assert one.recv(100) == b"done\n"

    def fault(self, direction: str, **fault: object) -> None:
        self.order(faults={f"{self.port}/{direction}": fault})

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._open.close()


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with PortReservation() as ports:
        one = Line(tmp_path, ports.reserve())
        yield one
        one.close()


def is_silent(one: socket.socket) -> bool:
    one.settimeout(_SHORT_SECONDS)
    try:
        one.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        one.settimeout(60)
    return False


def is_broken(one: socket.socket) -> bool:
    try:
        one.sendall(b"more")
    except OSError:
        return True
    return False


def received(one: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size and (part := one.recv(size - len(parts))):
        parts += part
    return parts


def test_bytes_of_one_direction_are_held_and_come_in_order_afterwards(line: Line) -> None:
    near, far = line.connect()
    line.fault("forth", held=True)
    near.sendall(b"one")
    assert is_silent(far)
    far.sendall(b"back")
    assert near.recv(10) == b"back"
    near.sendall(b"two")
    later, far_of_later = line.connect()  # one that opens meanwhile is held, too
    later.sendall(b"three")
    assert is_silent(far_of_later)
    line.order(faults={})
    assert received(far, 6) == b"onetwo"
    assert far_of_later.recv(10) == b"three"


def test_a_delay_and_a_limit_take_their_time_and_lose_nothing(line: Line) -> None:
    near, far = line.connect()
    line.fault("back", delay_seconds=0.2, jitter_seconds=0.05)
    begun = time.monotonic()
    far.sendall(b"late")
    assert near.recv(10) == b"late"
    assert time.monotonic() - begun >= 0.15
    line.fault("back", bytes_per_second=100_000)
    begun, sent = time.monotonic(), bytes(range(256)) * 200
    far.sendall(sent)
    assert received(near, len(sent)) == sent
    assert time.monotonic() - begun >= len(sent) / 100_000 / 2


def test_an_end_goes_on_later_and_a_reset_at_once(line: Line) -> None:
    near, far = line.connect()
    line.fault("forth", close_seconds=2 * _SHORT_SECONDS)
    near.shutdown(socket.SHUT_WR)
    assert is_silent(far)
    assert far.recv(1) == b""
    near, far = line.connect()
    line.order(reset=[str(line.port)])
    for end in (near, far):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    near, far = line.connect()  # the route is there as before
    near.sendall(b"again")
    assert far.recv(10) == b"again"


def test_an_end_that_goes_away_takes_the_other_with_it(line: Line) -> None:
    near, far = line.connect()
    near.sendall(b"x")
    assert far.recv(1) == b"x"
    far.close()
    with suppress(ConnectionResetError):
        assert near.recv(1) == b""
    eventually(lambda: is_broken(near), "what is sent to a closed end fails")
