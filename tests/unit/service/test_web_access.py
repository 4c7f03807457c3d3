"""TLS of the metrics endpoint, by its web configuration at the moment."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from kquota.service.metrics_server import MetricsServer
from kquota.service.web_access import look_at_web_config
from kquota.settings.problems import SettingsError
from kquota.settings.values import ListenAddress
from testbed.loopback.certificates import CertificateAuthority
from tests.integration.waiting import eventually

Serve = Callable[[Path], MetricsServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    registry = CollectorRegistry()
    Gauge("answer", "The answer.", registry=registry).set(42)
    with ExitStack() as ended:

        def start(web_config: Path) -> MetricsServer:
            server = MetricsServer(ListenAddress("127.0.0.1", 0), registry, web_config)
            ended.callback(server.close)
            return server

        yield start


def written(path: Path, text: str) -> Path:
    """Write a file the way that operators replace one: its inode changes."""
    new = path.with_suffix(".new")
    new.write_text(text, "utf-8")
    return new.rename(path)


def scrape(server: MetricsServer, tls: ssl.SSLContext | None = None) -> str:
    url = f"{'http' if tls is None else 'https'}://{server.address}/metrics"
    with urllib.request.urlopen(url, timeout=60, context=tls) as answer:
        assert b"answer 42.0" in answer.read()
        return "answer"


def test_changes_count_at_once_and_a_bad_file_keeps_everybody_out(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    web_config = written(tmp_path / "web.yml", "{}\n")
    server = serve(web_config)
    assert scrape(server) == "answer"
    with caplog.at_level(logging.ERROR, "kquota"):
        written(web_config, "basic_auth_users: {prometheus: secret}\n")
        with pytest.raises(OSError):
            scrape(server)
    assert "basic_auth_users" in caplog.text
    assert "secret" not in caplog.text
    written(web_config, "{}\n")
    assert scrape(server) == "answer"


def test_metrics_are_served_over_tls_with_the_certificate_of_the_day(serve: Serve, tmp_path: Path) -> None:
    authority, next_one = CertificateAuthority(tmp_path / "1"), CertificateAuthority(tmp_path / "2")
    endpoint = tmp_path / "endpoint"
    endpoint.mkdir()

    def put(by: CertificateAuthority) -> None:
        files = by.issue("localhost")
        for file, name in ((files.certificate, "cert.pem"), (files.key, "key.pem")):
            written(endpoint / name, file.read_text("utf-8"))

    put(authority)
    written(endpoint / "clients.pem", authority.certificate.read_text("utf-8"))
    tls = "tls_server_config: {cert_file: cert.pem, key_file: key.pem, min_version: TLS13"
    web_config = written(endpoint / "web.yml", f"{tls}}}\n")
    server = serve(web_config)
    trusting = ssl.create_default_context(cafile=authority.certificate)
    assert scrape(server, tls=trusting) == "answer"
    put(next_one)
    with pytest.raises(urllib.error.URLError):
        scrape(server, tls=trusting)
    trusting = ssl.create_default_context(cafile=next_one.certificate)
    assert scrape(server, tls=trusting) == "answer"
    with pytest.raises(OSError):
        scrape(server)

    verified = f"{tls}, client_auth_type: RequireAndVerifyClientCert, client_ca_file: clients.pem}}\n"
    written(web_config, verified)
    with pytest.raises(OSError):
        scrape(server, tls=trusting)
    client = authority.issue("prometheus")
    trusting.load_cert_chain(client.certificate, client.key)
    assert scrape(server, tls=trusting) == "answer"


def test_scrapes_go_on_while_clients_ask_without_a_pause(serve: Serve, tmp_path: Path) -> None:
    server = serve(written(tmp_path / "web.yml", "{}\n"))
    ended = threading.Event()

    def ask() -> int:
        asked = 0
        while not ended.is_set():
            with suppress(OSError):
                scrape(server)
            asked += 1
        return asked

    with ThreadPoolExecutor(12) as clients:
        others = [clients.submit(ask) for _ in range(12)]
        assert [scrape(server) for _ in range(50)] == ["answer"] * 50
        ended.set()
        assert min(other.result() for other in others) > 0


@pytest.mark.parametrize("text", ["tls_server_config: {cert_file: none.pem, key_file: none.pem}", "{"])
def test_what_can_not_be_served_is_said_beforehand(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=os.fspath(tmp_path / "web.yml")):
        look_at_web_config(written(tmp_path / "web.yml", text))


def test_a_file_that_is_missing_keeps_everybody_out_until_it_is_there(serve: Serve, tmp_path: Path) -> None:
    server = serve(tmp_path / "web.yml")
    with pytest.raises(OSError):
        scrape(server)
    written(tmp_path / "web.yml", "{}")
    eventually(lambda: scrape(server) == "answer", "it is served")
