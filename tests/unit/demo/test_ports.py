"""A reserved port is a server's alone, and stays reserved while the server is away."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from testbed.loopback.ports import LOOPBACK, PortReservation, accepts_connections


def server_on(port: int) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java's server sockets do
    server.bind((LOOPBACK, port))
    server.listen()
    return server


def test_a_server_may_come_go_and_come_back() -> None:
    with PortReservation() as reservation:
        port = reservation.reserve()
        for _ in range(2):
            assert not accepts_connections(port)
            with server_on(port):
                assert accepts_connections(port)


def test_nobody_else_is_given_the_port() -> None:
    with PortReservation() as one, PortReservation() as other:
        port = one.reserve()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind((LOOPBACK, port))
        assert len({other.reserve() for _ in range(200)} | {port}) == 201


def test_ports_are_free_afterwards() -> None:
    with PortReservation() as reservation:
        ports = [reservation.reserve() for _ in range(5)]

    with ExitStack() as stack:
        refused = 0
        for port in ports:
            try:
                stack.enter_context(socket.socket()).bind((LOOPBACK, port))
            except OSError:
                refused += 1
    assert refused < len(ports), "another process may have been given one of them meanwhile"
