"""Ports on 127.0.0.1 that stay ours, also while the server that uses them is down."""

from __future__ import annotations

import socket
from typing import Self

LOOPBACK = "127.0.0.1"


class PortReservation:
    """Reserves ports for as long as the `with` block lasts.

    A bound socket that does not listen keeps other processes from being given the port, as a server or as the
    local end of a connection. A server that sets SO_REUSEADDR, as Java's do, may bind as well; a connection
    meanwhile is refused, as without a server.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for reserved in self._sockets:
            reserved.close()

    def reserve(self) -> int:
        """A port that no other process has."""
        reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._sockets.append(reserved)
        reserved.bind((LOOPBACK, 0))  # without SO_REUSEADDR: never one that another holds in the same way
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port: int = reserved.getsockname()[1]
        return port


def accepts_connections(port: int) -> bool:
    """Whether a server listens on the port of 127.0.0.1."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0):
            return True
    except OSError:
        return False
