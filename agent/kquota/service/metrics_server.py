"""The HTTP endpoint that Prometheus scrapes, bounded: its clients must never keep the agent from deciding.

Connections are bounded in number and time, so that they take few descriptors and threads. While all are
taken, the oldest one that has not sent its request in time makes room: scrapers are served among idle
clients.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app

from kquota.service.web_access import WebAccess
from kquota.settings.values import ListenAddress

MAX_CONNECTIONS = 8
# From the acceptance of a connection to the end of its answer.
MAX_SECONDS = 10.0
# A client has this time for its request before it may have to make room: more than a scraper needs.
_REQUEST_SECONDS = 0.25
_WAIT_SECONDS = 0.5


class MetricsServer:
    """Serves a registry on a thread of its own until it is closed."""

    def __init__(
        self, listen: ListenAddress, registry: CollectorRegistry, web_config: Path | None = None
    ) -> None:
        """Start serving, by TLS if ``web_config`` sets it.

        Raises:
            OSError: the address can't be listened on; the text names it.
        """
        try:
            self._server = _Server(listen, make_wsgi_app(registry), WebAccess(web_config))
        except OSError as error:
            text = f"metrics.listen is {listen}: {error.strerror}"
            raise OSError(error.errno, text) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="kquota-metrics", daemon=True)
        self._thread.start()
        self.address = ListenAddress(listen.host, self._server.server_port)

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@dataclass(slots=True)
class _Connection:
    accepted: socket.socket
    """As accepted; ``socket`` is the one to speak by, the same or TLS above it."""
    socket: socket.socket
    since_seconds: float
    waits_for_request: bool = True

    def end(self) -> None:
        """Wake up the thread that reads from it or writes to it."""
        with contextlib.suppress(OSError):
            # of a TLS socket, too, only this: its own shutdown is not for use by another thread
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, listen: ListenAddress, app: WSGIApplication, access: WebAccess) -> None:
        self._access = access
        self._metrics = app
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._rendering = threading.Lock()
        self._open: list[_Connection] = []
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        super().__init__((str(found[0][4][0]), listen.port), _Handler)
        self.set_app(self._answer)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; with an OSError the loop around it tries again."""
        if not self._free.acquire(blocking=False):
            self._make_room()
            if not self._free.acquire(timeout=_REQUEST_SECONDS):
                raise TimeoutError
        try:
            accepted, address = super().get_request()
        except OSError:
            self._free.release()
            time.sleep(_WAIT_SECONDS)  # for example without free descriptors: it would be asked again at once
            raise
        accepted.settimeout(MAX_SECONDS)
        with self._lock:
            self._open.append(_Connection(accepted, accepted, time.monotonic()))
        return accepted, address

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one request, in its own thread."""
        connection = self._connection(request)
        access = self._access.current()
        if connection is None or access is None:
            return
        if access.tls is not None:
            tls = access.tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
            connection.socket = tls
            tls.do_handshake()
        _Handler(connection.socket, client_address, self)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, however it has ended."""
        connection = self._connection(request)
        if connection is None:
            return
        connection.end()
        connection.socket.close()
        with self._lock:
            self._open.remove(connection)
        self._free.release()

    def service_actions(self) -> None:
        """End what takes too long; called twice a second."""
        latest = time.monotonic() - MAX_SECONDS
        with self._lock:
            late = [connection for connection in self._open if connection.since_seconds < latest]
        for connection in late:
            connection.end()

    def server_close(self) -> None:
        """Stop listening, and end the open connections."""
        super().server_close()
        with self._lock:
            for connection in self._open:
                connection.end()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: clients' mistakes are not ours to report."""

    def begun(self, spoken_by: socket.socket) -> None:
        """The request of a connection is there."""
        connection = self._connection(spoken_by)
        if connection is not None:
            connection.waits_for_request = False

    def _connection(self, either: socket.socket) -> _Connection | None:
        with self._lock:
            return next((one for one in self._open if either in (one.accepted, one.socket)), None)

    def _make_room(self) -> None:
        latest = time.monotonic() - _REQUEST_SECONDS
        with self._lock:
            waiting = (one for one in self._open if one.waits_for_request and one.since_seconds < latest)
            oldest = next(waiting, None)
        if oldest is not None:
            oldest.end()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with self._rendering:
            return self._metrics(environ, start_response)


class _Handler(WSGIRequestHandler):
    server: _Server

    def parse_request(self) -> bool:
        """Read the request's head."""
        is_good = super().parse_request()
        self.server.begun(self.connection)
        return is_good

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _refusal(start_response: StartResponse, status: str, *headers: tuple[str, str]) -> list[bytes]:
    start_response(status, [("Content-Type", "text/plain"), *headers])
    return [f"{status.partition(' ')[2]}\n".encode()]
