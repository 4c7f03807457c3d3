"""A reserved port is a server's alone, and nobody else's while the server is away."""

from __future__ import annotations

import socket

import pytest

from kquota.demo.ports import LOOPBACK, PortReservation, accepts_connections


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


def test_the_port_is_free_afterwards() -> None:
    with PortReservation() as reservation:
        port = reservation.reserve()

    with socket.socket() as stranger:
        stranger.bind((LOOPBACK, port))
