"""`kquota config init`: which listener the agent is given, and where agents on one host differ."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from kquota.cli import config_init, exit_codes
from kquota.cli.access import access
from kquota.cli.config_init import (
    Listener,
    instance_of,
    kafka_section,
    listener_of,
    next_steps,
    own_places,
    ports_of_others,
)
from kquota.disks.server_properties import BrokerPropertiesError

FILE = Path("/etc/kafka/server.properties")
CONTROLLER = {"controller.listener.names": "CONTROLLER"}


@pytest.mark.parametrize(
    ("raw", "protocol", "address"),
    [
        ({}, "PLAINTEXT", "localhost:9092"),
        (
            {**CONTROLLER, "listeners": "CONTROLLER://:9093, PLAINTEXT://0.0.0.0:9095"},
            "PLAINTEXT",
            "localhost:9095",
        ),
        (
            {
                "listeners": "OUT://:9092,IN://:9094",
                "advertised.listeners": "OUT://kafka.example.org:9092,IN://[fd00::1]:9094",
                "listener.security.protocol.map": "OUT:PLAINTEXT,IN:SSL",
                "inter.broker.listener.name": "IN",
            },
            "SSL",
            "[fd00::1]:9094",
        ),
        (
            {
                "listeners": "SASL_SSL://b:9092,PLAINTEXT://b:9095",
                "security.inter.broker.protocol": "SASL_SSL",
            },
            "PLAINTEXT",
            "b:9095",
        ),
    ],
)
def test_the_listener_of_the_brokers_counts_where_it_needs_no_password(
    raw: dict[str, str], protocol: str, address: str
) -> None:
    found = listener_of(raw, FILE)
    assert (found.protocol, found.address) == (protocol, address)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (
            {"listeners": "SASL_SSL://b:9092"},
            "SASL_SSL (SASL_SSL), and no file of the broker names the agent's",
        ),
        ({**CONTROLLER, "listeners": "CONTROLLER://:9093"}, "listeners has none for clients"),
        ({"listeners": "${env:LISTENERS}"}, "allowed is NAME://host:port"),
    ],
)
def test_a_broker_without_a_listener_for_it_is_named(raw: dict[str, str], says: str) -> None:
    with pytest.raises(BrokerPropertiesError) as refused:
        listener_of(raw, FILE)
    assert str(refused.value).startswith(f"{FILE}: ")
    assert says in str(refused.value)


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config_init, "DEFAULT_CONFIG", tmp_path / "agent.yml")
    return tmp_path


def test_of_several_agents_on_a_host_each_has_places_and_a_port_of_its_own(etc: Path) -> None:
    assert (instance_of(etc / "agent.yml"), instance_of(Path("/elsewhere/b.yml"))) == (None, None)
    assert instance_of(etc / "b.yml") == "b"
    (etc / "agent.yml").write_text("broker: {}\n")  # 9464, the default
    (etc / "a.yml").write_text("metrics: {listen: '[::]:9465'}\n")
    (etc / "b.yml").write_text("metrics: {listen: 127.0.0.1:9466}\n")
    (etc / "broken.yml").write_bytes(b"\xff: [")
    assert ports_of_others(etc / "b.yml") == {9464, 9465}
    assert own_places("b", {9464, 9465}) == {
        "decision_file": "/run/kquota-b/decision.json",
        "applied_file": "/run/kquota-broker-b/applied.json",
        "state_dir": "/var/lib/kquota-b",
        "metrics": {"listen": "127.0.0.1:9466"},
    }


@pytest.mark.parametrize("name", ["broker.yml", "broker-2.yml", "B.yml", "a.yaml", ".yml", "a\n.yml"])
def test_a_file_that_no_unit_reads_is_refused_where_units_look(
    etc: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        instance_of(etc / name)
    assert "NAME.yml" in capsys.readouterr().err


def test_the_next_step_names_the_unit_that_reads_the_file(etc: Path) -> None:
    first = "systemctl start kquota-agent, then kquota status"
    assert next_steps(etc / "agent.yml", None, {}, "kquota") == [first]
    own = f"--config {etc}/b.yml"
    assert next_steps(etc / "b.yml", "b", {}, "kquota") == [
        f"systemctl start kquota-agent@b, then kquota status {own}"
    ]
    assert next_steps(Path("/x.yml"), None, {}, "kquota")[0].startswith("kquota run --config /x.yml, ")


@pytest.mark.parametrize(
    ("raw", "put"),
    [
        ({}, "the authority of the broker's certificate in /etc/kquota/tls/ca.pem"),
        (
            {"listener.name.in.ssl.client.auth": "required"},
            "the authority of the broker's certificate in /etc/kquota/tls/ca.pem, the agent's certificate in"
            " /etc/kquota/tls/agent.pem, its key in /etc/kquota/tls/agent.key",
        ),
        (
            {"listener.name.in.ssl.client.auth": "none", "ssl.client.auth": "required"},
            "the authority of the broker's certificate in /etc/kquota/tls/ca.pem",
        ),
    ],
)
def test_with_tls_the_next_step_names_each_file_and_checks_as_the_agent_s_user(
    etc: Path, raw: dict[str, str], put: str
) -> None:
    kafka = kafka_section(raw, Listener("IN", "SSL", "b", 9094))
    assert (kafka["bootstrap.servers"], kafka["security.protocol"]) == ("b:9094", "ssl")
    files = {key: value for key, value in kafka.items() if key.endswith(".location")}
    assert next_steps(etc / "agent.yml", None, files, "kquota") == [
        f"this listener needs TLS: put, as PEM files that kquota can read, {put}",
        "runuser -u kquota -- kquota config check, then systemctl start kquota-agent, then kquota status",
    ]


@pytest.mark.parametrize("command", ["config init", "access"])
def test_who_is_not_root_is_asked_to_be(
    etc: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(typer.Exit) as refused:
        config_init.config_init(etc / "agent.yml") if command == "config init" else access(FILE)
    assert refused.value.exit_code == exit_codes.USAGE
    said = capsys.readouterr().err
    assert said.startswith("kquota: only root can ")
    assert said.endswith(f": run kquota {command} again as root\n")
    assert said.count("\n") == 1


def test_a_user_that_does_not_exist_is_named_with_the_next_step(
    etc: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(typer.Exit):
        access(FILE, "no-such-user")
    assert "'no-such-user'" in (said := capsys.readouterr().err)
    assert "install the package" in said
