"""An order is given with an operator's credentials, never with the agent's."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from kquota.cli import operator_config as subject
from kquota.kafka.operator_producer import Published
from tests.unit.cli.command import Host, Said

TLS = {
    "bootstrap.servers": "broker:9093",
    "security.protocol": "ssl",
    "ssl.certificate.location": "/etc/kquota/tls/agent.pem",
    "ssl.key.location": "/etc/kquota/tls/agent.key",
}
PASSWORD = {
    "bootstrap.servers": "broker:9093",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.username": "agent",
}


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, str]]:
    """The properties of the clients that would have published; there is no default file."""
    found: list[dict[str, str]] = []

    def publish(properties: Any, topic: str, *_record: Any, sign: Any) -> Published:
        assert topic == "__kquota_orders"
        found.append(dict(properties.properties))
        return Published(topic, 0, 0, round(time.time() * 1000))

    monkeypatch.setattr("kquota.cli.orders.publish_operator_record", publish)
    monkeypatch.setattr(subject, "DEFAULT_COMMAND_CONFIG", tmp_path / "operator.properties")
    return found


def hold(host: Host, *arguments: str) -> Said:
    return host.run("hold", "pause", "--for", "5m", "--reason", "a test", *arguments)


def properties_in(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


@pytest.mark.accepts("G11")
@pytest.mark.parametrize("kafka", [TLS, PASSWORD])
def test_the_agent_s_credentials_give_no_order(
    host: Host, used: list[dict[str, str]], kafka: dict[str, str]
) -> None:
    host.configure(kafka=kafka)
    done = hold(host)
    assert done.code == 78
    default = host.directory / "operator.properties"
    assert done.err.startswith(
        f"kquota: {default} does not exist, and the agent's credentials are not an operator's"
    )
    assert "create it with mode 0600" in done.err
    assert used == []


@pytest.mark.parametrize(
    "kafka",
    [
        {"bootstrap.servers": "broker:9092"},
        {"bootstrap.servers": "broker:9093", "security.protocol": "SSL", "ssl.ca.location": "/ca.pem"},
    ],
)
def test_a_connection_without_credentials_is_used_for_orders_too(
    host: Host, used: list[dict[str, str]], kafka: dict[str, str]
) -> None:
    host.configure(kafka=kafka)
    assert hold(host).code == 0
    assert used == [kafka]
    missing = hold(host, "--command-config", str(host.directory / "another"))
    assert missing.code == 78, "a file that is named has to be there"


@pytest.mark.accepts("G11")
def test_the_operator_s_properties_replace_the_agent_s(host: Host, used: list[dict[str, str]]) -> None:
    host.configure(kafka=TLS)
    properties_in(
        host.directory / "operator.properties",
        "# of the operator\nsecurity.protocol=SASL_SSL\nsasl.username = jane\nkquota.signing.key=/jane.key\n",
    )
    assert hold(host).code == 0
    wanted = {"bootstrap.servers": "broker:9093", "security.protocol": "SASL_SSL", "sasl.username": "jane"}
    assert used == [wanted]
    other = properties_in(host.directory / "other", "bootstrap.servers=other:1\n")
    assert hold(host, "--command-config", str(other)).code == 0
    assert used[-1] == {"bootstrap.servers": "other:1"}


@pytest.mark.accepts("G11")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o601])
def test_a_file_that_others_may_read_is_refused(host: Host, used: list[dict[str, str]], mode: int) -> None:
    path = properties_in(host.directory / "operator.properties", "sasl.password=secret\n", mode)
    done = hold(host)
    assert done.code == 78
    assert f"{path} has mode {mode:04o}" in done.err
    assert "secret" not in done.err
    assert used == []


def test_a_file_of_another_user_is_refused(
    host: Host, used: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    properties_in(host.directory / "operator.properties", "a=b\n")
    owner = os.geteuid()
    monkeypatch.setattr(subject, "_ROOT", owner + 1)
    monkeypatch.setattr(subject.os, "geteuid", lambda: owner + 2)
    assert hold(host).code == 78
    assert used == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("acks=0", "acks is set by kquota itself"),
        ("kquota.signing.certficate=/x", "kquota.signing.certficate is no known key"),
        ("a=\\uZZZZ", "is no properties file"),
    ],
)
def test_what_an_operator_may_not_set_is_named(
    host: Host, used: list[dict[str, str]], line: str, problem: str
) -> None:
    properties_in(host.directory / "operator.properties", f"{line}\n")
    done = hold(host)
    assert done.code == 78
    assert problem in done.err
    assert used == []


def test_the_names_of_librdkafka_are_checked(host: Host) -> None:
    path = properties_in(host.directory / "p", "bootstrap.servers=127.0.0.1:1\nno.such.property=1\n")
    done = hold(host, "--command-config", str(path))
    assert done.code == 78
    assert "no.such.property" in done.err


@pytest.mark.parametrize(
    ("option", "text", "longest"), [("--reason", "x" * 501, 500), ("--actor", "x" * 201, 200)]
)
def test_what_readers_would_not_take_is_refused_before_it_is_sent(
    host: Host, used: list[dict[str, str]], option: str, text: str, longest: int
) -> None:
    for command in (["hold", "open", "--for", "1m"], ["decommission", "3", "--force"]):
        reason = [] if option == "--reason" else ["--reason", "a test"]
        done = host.run(*command, *reason, option, text)
        assert done.code == 2
        assert f"{option}: must have at most {longest} characters" in done.err
    assert used == []
