"""The web configuration of the metrics endpoint: the exporters' keys, and no ignored ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.settings.problems import SettingsError
from kquota.settings.web_config import WebConfig, read_web_config

TLS = "cert_file: c.pem, key_file: /k.pem"


def read(directory: Path, text: str) -> WebConfig:
    path = directory / "web.yml"
    path.write_text(text, "utf-8")
    return read_web_config(path)


def test_what_exporters_take_is_taken(tmp_path: Path) -> None:
    config = read(tmp_path, f"tls_server_config: {{{TLS}}}\n")
    assert config.tls_server_config is not None
    assert config.tls_server_config.cert_file == Path("c.pem")
    assert config.tls_server_config.client_auth_type == "NoClientCert"
    assert read(tmp_path, "") == WebConfig()


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("rate_limit: {}", "rate_limit", "is no known key"),
        (
            f"tls_server_config: {{{TLS}, cipher_suites: []}}",
            "tls_server_config.cipher_suites",
            "is no known key",
        ),
        ("tls_server_config: {cert_file: c.pem}", "tls_server_config.key_file", "is missing"),
        (f"tls_server_config: {{{TLS}, min_version: TLS10}}", "tls_server_config.min_version", "TLS12"),
        (
            f"tls_server_config: {{{TLS}, client_auth_type: RequestClientCert}}",
            "tls_server_config.client_auth_type",
            "RequireAndVerifyClientCert",
        ),
        (
            f"tls_server_config: {{{TLS}, client_auth_type: RequireAndVerifyClientCert}}",
            "tls_server_config.client_auth_type",
            "client_ca_file",
        ),
        (
            f"tls_server_config: {{{TLS}, client_ca_file: ca.pem}}",
            "tls_server_config.client_auth_type",
            "client_ca_file",
        ),
        ("basic_auth_users: {alice: hunter2}", "basic_auth_users", "is no known key"),
        (f"tls_server_config: {{{TLS}, {TLS}}}", "", "twice"),
    ],
)
def test_everything_else_is_refused_with_its_place(tmp_path: Path, text: str, key: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(tmp_path, text)
    (problem,) = refused.value.problems
    assert problem.key == key
    assert said in str(problem)
    assert "web.yml line 1" in str(problem)
    assert "hunter2" not in str(problem)
