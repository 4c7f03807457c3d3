"""The endpoint that serves the metrics."""

import socket
import threading
import urllib.request
from collections.abc import Iterator

import pytest

from kquota.service.metrics import AgentMetrics
from kquota.service.metrics_server import MetricsServer
from kquota.settings.values import ListenAddress
from tests.unit.guard.cycles import Bench


@pytest.fixture
def metrics() -> AgentMetrics:
    return AgentMetrics("1.2.3")


@pytest.fixture
def server(metrics: AgentMetrics) -> Iterator[MetricsServer]:
    server = MetricsServer(ListenAddress("127.0.0.1", 0), metrics.registry)
    yield server
    server.close()


def test_the_endpoint_serves_the_present(metrics: AgentMetrics, server: MetricsServer) -> None:
    bench = Bench()
    bench.settle()
    metrics.show(bench.run())
    assert server.address.port > 0
    with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=60) as answer:
        assert 'kquota_state{state="OPEN"} 1.0' in answer.read().decode()


def test_a_port_in_use_is_an_error_that_names_the_key(metrics: AgentMetrics, server: MetricsServer) -> None:
    with pytest.raises(OSError, match=f"metrics.listen is {server.address}"):
        MetricsServer(server.address, metrics.registry)


def test_closing_frees_the_port_and_the_thread_beside_a_scrape_that_hangs(metrics: AgentMetrics) -> None:
    threads = threading.active_count()
    server = MetricsServer(ListenAddress("127.0.0.1", 0), metrics.registry)
    with socket.create_connection((server.address.host, server.address.port)) as hanging:
        hanging.sendall(b"GET /met")
        server.close()
    again = MetricsServer(server.address, metrics.registry)
    again.close()
    assert threading.active_count() <= threads + 1, "at most the hanging scrape's own thread"
