"""The HTTP endpoint that Prometheus scrapes."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, start_http_server

from kquota.settings.values import ListenAddress


class MetricsServer:
    """Serves a registry on a thread of its own until it is closed."""

    def __init__(self, listen: ListenAddress, registry: CollectorRegistry) -> None:
        """Start serving.

        Raises:
            OSError: the address can't be listened on; the text names it.
        """
        try:
            self._server, self._thread = start_http_server(listen.port, listen.host, registry)
        except OSError as error:
            text = f"metrics.listen is {listen}: {error.strerror}"
            raise OSError(error.errno, text) from error
        # a scrape that hangs must not keep the agent from ending
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self.address = ListenAddress(listen.host, self._server.server_port)

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
