"""The module kquota_brokers connects to brokers and verifies their certificates."""

from __future__ import annotations

import inspect
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.modules import kquota_brokers
from plugins.modules.kquota_brokers import handshake, look


class Module:
    """Arguments, and an openssl that trusts the brokers with these words in their addresses."""

    def __init__(self, servers: list[str], authority: str | None, trusted: str = "") -> None:
        self.params = {"servers": servers, "authority": authority}
        self._trusted = trusted
        self.asked: list[list[str]] = []

    def run_command(self, command: list[str], **_: object) -> tuple[int, str, str]:
        self.asked.append(command)
        if self._trusted and self._trusted in command[3]:
            # A broker that requires a client certificate closes the connection after that.
            return 1, "", "Verification: OK\nerror:0A00045C:certificate required\n"
        return 1, "CONNECTION\n", "verify error: certificate\nhas expired\n"


def test_brokers_that_accept_no_connection_are_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    with socket.create_server(("127.0.0.1", 0)) as broker:
        port = broker.getsockname()[1]
        one, two = f"127.0.0.1:{port}", f"[127.0.0.1]:{port}"
        module = Module([one, "127.0.0.1:1", "kafka1:ninety", two], str(tmp_path / "ca.pem"), one)
        found = look(module)
    assert found["accepting"] == [one, two]
    refused, wrong = found["refusing"]
    assert re.fullmatch(r"127\.0\.0\.1:1 \(.*Connection refused\)", refused)
    assert wrong.startswith("kafka1:ninety (invalid literal")
    assert found["untrusted"] == [f"{two}: CONNECTION verify error: certificate has expired"]


@pytest.mark.parametrize("authority", [None, "/none/ca.pem", "/"])
def test_without_the_authority_s_certificate_none_is_verified(authority: str | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        server = f"127.0.0.1:{broker.getsockname()[1]}"
        module = Module([server], authority)
        assert look(module) == {"accepting": [server], "refusing": [], "untrusted": []}
    assert module.asked == []


@pytest.mark.parametrize(
    ("server", "by", "name"),
    [
        ("kafka1.example.org:9093", "-verify_hostname", "kafka1.example.org"),
        ("10.0.0.1:9093", "-verify_ip", "10.0.0.1"),
        ("[2001:db8::2]:9093", "-verify_ip", "2001:db8::2"),
        ("10.example:1", "-verify_hostname", "10.example"),
    ],
)
def test_a_certificate_names_addresses_apart_from_names(server: str, by: str, name: str) -> None:
    command = handshake(server, "/ca.pem")
    assert command[2:6] == ["-connect", server, "-CAfile", "/ca.pem"]
    assert command[-3:-1] == [by, name]


def test_the_documentation_names_each_argument_and_each_result() -> None:
    options: dict[str, Any] = yaml.safe_load(kquota_brokers.DOCUMENTATION)["options"]
    declared = re.findall(r'"([a-z_]+)": \{"type": "([a-z]+)"', inspect.getsource(kquota_brokers.main))
    assert {name: option["type"] for name, option in options.items()} == dict(declared)
    assert set(yaml.safe_load(kquota_brokers.RETURN)) == set(look(Module([], None)))
