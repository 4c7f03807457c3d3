"""A first start, as a new user meets it: each obstacle is one sentence with its remedy."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kquota.host.atomic import replace_file
from testbed.loopback.certificates import CertificateAuthority
from testbed.loopback.cluster import KafkaCluster
from testbed.loopback.ports import PortReservation
from testbed.loopback.processes import ChildProcess
from tests.integration.spine.agents import KQUOTA
from tests.integration.waiting import eventually
from tests.unit.cli.command import kquota

Settings = dict[str, Any]


class NewUser:
    """An operator who writes agent.yml for a broker, starts the agent, and asks for the status."""

    def __init__(self, directory: Path, cluster: KafkaCluster, metrics_port: int) -> None:
        self.config = directory / "agent.yml"
        self._log = directory / "agent.log"
        self._environment = cluster.environment()
        for name in ("run", "broker", "state"):
            (directory / name).mkdir(mode=0o755)
        self.settings: Settings = {
            "broker": {"server_properties": str(cluster.nodes[1].layout.server_properties)},
            "kafka": cluster.client_configuration(),
            "decision_file": str(directory / "run" / "decision.json"),
            "applied_file": str(directory / "broker" / "applied.json"),
            "state_dir": str(directory / "state"),
            "metrics": {"listen": f"127.0.0.1:{metrics_port}"},
        }
        self._process: ChildProcess | None = None

    def start(self, **settings: Any) -> ChildProcess:
        """Start the agent with these settings."""
        replace_file(self.config, yaml.safe_dump(self.settings | settings).encode(), 0o640)
        command = [*KQUOTA, "run", "--config", str(self.config)]
        self._process = ChildProcess(command, log_path=self._log, environment=self._environment)
        return self._process

    def journal(self) -> list[str]:
        """The sentences so far, without time and level."""
        return [line.split(" ", 2)[2] for line in self._log.read_text("utf-8").splitlines()]

    def status(self, *options: str) -> Mapping[str, Any]:
        """The document of `kquota status`."""
        said = kquota("status", "--json", "--config", str(self.config), *options)
        return dict(json.loads(said.out))

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()


@pytest.fixture
def user(tmp_path: Path, one_broker: KafkaCluster) -> Iterator[NewUser]:
    with PortReservation() as ports:
        user = NewUser(tmp_path, one_broker, ports.reserve())
        yield user
        user.close()


def controller_of(cluster: KafkaCluster) -> str:
    text = cluster.nodes[1].layout.server_properties.read_text("utf-8").replace("\\", "")
    (listeners,) = [line for line in text.splitlines() if line.startswith("listeners=")]
    return listeners.partition("CONTROLLER://")[2]


def kafka_of(case: str, cluster: KafkaCluster, directory: Path) -> dict[str, str]:
    """The section kafka with one mistake."""
    plain, tls = cluster.client_configuration(), cluster.client_configuration("kquota-agent-1")
    files = {"ssl.certificate.location", "ssl.key.location"}
    stranger = CertificateAuthority(directory / "stranger").certificate
    return {
        "no Kafka": {"bootstrap.servers": "127.0.0.1:1"},
        "no such host": {"bootstrap.servers": "no-such-host.invalid:9092"},
        "the controller's port": {**tls, "bootstrap.servers": controller_of(cluster)},
        "no TLS": {"bootstrap.servers": tls["bootstrap.servers"]},
        "TLS to plain text": {**tls, **plain},
        "no client certificate": {name: value for name, value in tls.items() if name not in files},
        "another authority": {**tls, "ssl.ca.location": str(stranger)},
        "no file": {**tls, "ssl.ca.location": "/nonexistent/ca.pem"},
        "SASL to plain text": {
            **plain,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "kquota",
            "sasl.password": "not-asked-for",
        },
    }[case]


@pytest.mark.parametrize(
    ("case", "remedy"),
    [
        ("no Kafka", "start Kafka there, or correct the address in kafka.bootstrap.servers"),
        ("no such host", "correct the host name in kafka.bootstrap.servers"),
        ("the controller's port", "name the listener of a broker there"),
        ("no TLS", "this listener wants TLS or SASL"),
        ("TLS to plain text", "this listener has no TLS; set kafka.security.protocol"),
        ("no client certificate", "set kafka.ssl.certificate.location and kafka.ssl.key.location"),
        ("another authority", "ssl.ca.location does not hold its authority"),
        ("no file", "kafka.ssl.ca.location: /nonexistent/ca.pem: No such file or directory"),
        ("SASL to plain text", "check kafka.security.protocol"),
    ],
)
def test_a_cluster_that_is_not_reached_is_one_sentence_with_the_remedy(
    user: NewUser, one_broker: KafkaCluster, tmp_path: Path, case: str, remedy: str
) -> None:
    user.start(kafka=kafka_of(case, one_broker, tmp_path))
    eventually(lambda: any("decision file is not written" in line for line in user.journal()), "it decides")
    # A busy machine may give up in the middle of a handshake, with a sentence of its own.
    found = eventually(
        lambda: len((it := user.status("--timeout", "3"))["problems"]) == 1 and it, "it is one sentence"
    )
    (problem,) = found["problems"]
    assert remedy in problem
    assert found["next_step"] is None
    assert user.journal().count(problem) == 1
    about = [line for line in user.journal() if "cannot be learnt" in line or "not answered in time" in line]
    assert about == [], "they follow from it"


def test_a_broker_that_is_observed_without_a_plug_in_is_told_the_next_step(
    user: NewUser, topic_name: str
) -> None:
    names = {kind: {"name": f"{topic_name}-{kind}"} for kind in ("usage", "history", "orders")}
    user.start(topics=names)
    eventually(lambda: any(line.startswith("OPEN") for line in user.journal()), "it decides")
    missing = [line for line in user.journal() if "does not exist" in line and not line.startswith("over: ")]
    assert sorted(line.split()[1] for line in missing) == sorted(f"{topic_name}-{kind}" for kind in names)
    found = eventually(lambda: (it := user.status())["state"] == "OPEN" and it, "its report is read")
    assert found["problems"] == []
    assert "kquota-callback" in found["next_step"]
    said = kquota("status", "--config", str(user.config), columns=300)
    assert f"next: {found['next_step']}" in said.out


def test_topics_that_nobody_creates_are_named_with_the_way_to_create_them(
    user: NewUser, topic_name: str
) -> None:
    names = {kind: {"name": f"{topic_name}-{kind}"} for kind in ("usage", "history", "orders")}
    user.start(topics={"create": False, **names})
    eventually(
        lambda: len([line for line in user.journal() if "does not exist" in line]) == 3, "it is logged"
    )
    problems = user.status("--timeout", "3")["problems"]
    assert [problem for problem in problems if "docs/runbook.md" in problem] == problems
    assert {problem.split()[1] for problem in problems} == {f"{topic_name}-usage", f"{topic_name}-orders"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("broker: [\n", "agent.yml line 2 column 1: is not usable YAML"),
        ("", "broker is missing; allowed: a mapping with server_properties"),
        ("kafkaa: {}\n", "kafkaa is no known key (did you mean kafka?)"),
        (None, "agent.yml: can't be read: No such file or directory; run kquota config init"),
    ],
)
def test_a_file_that_is_bad_ends_the_start_with_the_same_sentence_as_the_check(
    tmp_path: Path, text: str | None, named: str, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "agent.yml"
    if text is not None:
        config.write_text(text, "utf-8")
    checked = kquota("config", "check", "--config", str(config))
    status = kquota("status", "--config", str(config))
    started = kquota("run", "--config", str(config))
    assert {checked.code, status.code, started.code} == {os.EX_CONFIG}
    assert named in checked.err
    assert status.err == checked.err
    for sentence in checked.err.removeprefix("kquota: ").splitlines():
        assert sentence in started.err + capfd.readouterr().err
