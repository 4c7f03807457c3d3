"""TLS and users of the metrics endpoint, by its web configuration at the moment."""

from __future__ import annotations

import base64
import logging
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import bcrypt
import pytest
from prometheus_client import CollectorRegistry, Gauge

from kquota.daemon.metrics_server import MetricsServer
from kquota.daemon.web_access import Access, Answer, WebAccess, look_at_web_config
from kquota.settings.problems import SettingsError
from kquota.settings.values import ListenAddress
from testbed.loopback.certificates import CertificateAuthority
from tests.integration.waiting import eventually

HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
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


def header(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def scrape(
    server: MetricsServer, authorization: str | None = None, tls: ssl.SSLContext | None = None
) -> int | str:
    """Return the status, or "answer" where the metrics came."""
    url = f"{'http' if tls is None else 'https'}://{server.address}/metrics"
    request = urllib.request.Request(url, headers={"Authorization": authorization} if authorization else {})
    try:
        with urllib.request.urlopen(request, timeout=60, context=tls) as answer:
            assert b"answer 42.0" in answer.read()
            return "answer"
    except urllib.error.HTTPError as error:
        return error.code


def test_only_users_with_their_password_are_let_in_and_changes_count_at_once(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    web_config = written(tmp_path / "web.yml", f"basic_auth_users:\n  prometheus: {HASH}\n")
    server = serve(web_config)
    right, wrong = header("prometheus", "secret"), header("prometheus", "guess")
    for _ in range(2):
        assert scrape(server, right) == "answer"
        assert scrape(server, wrong) == 401
    too_long, nobody = header("prometheus", "s" * 100), header("nobody", "secret")
    for none in (None, "Bearer secret", "Basic !", nobody, too_long):
        assert scrape(server, none) == 401
    written(web_config, f"basic_auth_users:\n  other: {HASH}\n")
    assert scrape(server, right) == 401
    assert scrape(server, header("other", "secret")) == "answer"
    with caplog.at_level(logging.ERROR, "kquota"):
        written(web_config, "basic_auth_usres: {}\n")
        with pytest.raises(OSError):
            scrape(server, header("other", "secret"))
    assert "basic_auth_usres" in caplog.text
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


def test_a_password_is_checked_once_and_few_are_remembered(tmp_path: Path) -> None:
    costly = bcrypt.hashpw(b"secret", bcrypt.gensalt(10)).decode()
    access = WebAccess(None)
    users = Access(users={"u": costly})
    begun = time.perf_counter()
    assert access.answer(users, header("u", "secret")) is Answer.PERMITTED
    checked = time.perf_counter() - begun
    begun = time.perf_counter()
    for _ in range(100):
        assert access.answer(users, header("u", "secret")) is Answer.PERMITTED
    assert time.perf_counter() - begun < 20 * checked
    assert access.answer(users, header("u", "guess")) is Answer.DENIED
    many = Access(users={f"u{number}": HASH for number in range(200)})
    for user in many.users:
        assert access.answer(many, header(user, "secret")) is Answer.PERMITTED
    assert len(access._good) <= 100
    assert access.answer(Access(users={"u": HASH}), header("u", "guess")) is Answer.DENIED


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
