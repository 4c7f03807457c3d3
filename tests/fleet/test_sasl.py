"""An agent that logs in by a password, which only root can read and systemd hands over. Test follows test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.hosts.host import Host
from testbed.hosts.image import USER
from testbed.hosts.rollout import (
    AGENT,
    REPOSITORY,
    PlayFailed,
    applied,
    journal,
    metrics,
    now,
    play,
    property_of,
    wait_for,
)
from testbed.hosts.spec import VolumeSpec
from tests.fleet.conftest import MakeKafka
from tests.fleet.process_lists import watched

BROKER = "broker-1"
VOLUMES = (
    VolumeSpec(path="/data/1", size_mebibytes=128),
    VolumeSpec(path="/data/2", size_mebibytes=128),
    VolumeSpec(path="/data/metadata", size_mebibytes=64),
)
AGENT_NAME, PASSWORD_FILE = "kquota-agent", "/etc/kafka/kquota-agent.password"
CREDENTIAL = f"/run/credentials/{AGENT}/kafka-password"
FIRST, SECOND = "correct-horse-battery-staple", "tr0ub4dor-and-three"
VARIABLES = {
    "kafka_properties": {
        "listeners": "CLIENTS://:9092,INTERNAL://:9093,AGENTS://:9094,CONTROLLER://:9095",
        "advertised.listeners": ",".join(
            f"{name}://{BROKER}:{port}"
            for name, port in (("CLIENTS", 9092), ("INTERNAL", 9093), ("AGENTS", 9094))
        ),
        "listener.security.protocol.map": "CLIENTS:SSL,INTERNAL:SSL,AGENTS:SASL_SSL,CONTROLLER:SSL",
        "listener.name.agents.ssl.client.auth": "none",
        "listener.name.agents.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.agents.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    },
    "kquota_tls": False,
    "kquota_listener": "AGENTS",
    "kquota_kafka": {
        "bootstrap.servers": f"{BROKER}:9094",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": AGENT_NAME,
        "ssl.ca.location": "/etc/kafka/tls/ca.pem",
    },
    "kquota_agent_principals": [f"User:{AGENT_NAME}"],
    "kquota_agent_credentials": {"kafka-password": PASSWORD_FILE},
    "kquota_agent_secret_files": {"sasl.password": "kafka-password"},
}

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def set_password(host: Host, password: str) -> None:
    """Have the cluster take that password from the agent."""
    host.run(
        *("/opt/kafka/bin/kafka-configs.sh", "--bootstrap-server", f"{BROKER}:9093"),
        *("--command-config", "/etc/kafka/admin.properties", "--alter"),
        *("--entity-type", "users", "--entity-name", AGENT_NAME),
        *("--add-config", f"SCRAM-SHA-512=[password={password}]"),
    )


def roll_out(inventory: Path, packages: Path, **given: Any) -> str:
    """Run the rollout, in which no process shows a password; return its output."""
    with watched({"first": FIRST, "second": SECOND}) as end:
        try:
            return play(
                inventory, REPOSITORY / "playbooks/rollout.yml", kquota_dist_dir=str(packages), **given
            )
        finally:
            assert end() == []


@dataclass(frozen=True)
class RolledOut:
    """The host, and the rollout's output."""

    host: Host
    inventory: Path
    packages: Path
    said: str


@pytest.fixture(scope="module")
def rolled_out(make_kafka: MakeKafka, packages: Path) -> RolledOut:
    """A broker with a listener for agents that takes passwords, and kquota rolled out, enforcing."""
    fleet, inventory = make_kafka([BROKER], "trixie", VOLUMES, {BROKER: (BROKER, VARIABLES)})
    host = fleet[BROKER]
    set_password(host, FIRST)
    host.write(PASSWORD_FILE, FIRST, mode=0o600)
    talkative = {"ANSIBLE_DIFF_ALWAYS": "1", "ANSIBLE_VERBOSITY": "3"}
    said = roll_out(inventory, packages, extra_environment=talkative)
    return RolledOut(host, inventory, packages, said)


@pytest.fixture(scope="module")
def host(rolled_out: RolledOut) -> Host:
    return rolled_out.host


def is_well(host: Host) -> None:
    wait_for(lambda: applied(host), lambda seen: (seen.get("mode"), seen.get("state")) == ("enforce", "OPEN"))
    wait_for(lambda: metrics(host)["kquota_connected"], lambda connected: connected == 1)


def test_the_agent_enforces_under_the_name_that_it_logs_in_by(host: Host):
    is_well(host)
    assert f"User:{AGENT_NAME}" in [entry["principal"] for entry in applied(host)["exempt"]]
    connected = host.run(
        "ss", "--tcp", "--numeric", "--processes", "--no-header", "state", "established"
    ).stdout
    agent = [line.split() for line in connected.splitlines() if "kquota" in line]
    assert {words[3].rpartition(":")[2] for words in agent} == {"9094"}


def test_what_root_runs_beside_it_finds_its_password_and_others_do_not(host: Host):
    status = json.loads(host.run("kquota", "status", "--json").stdout)
    assert [broker["active"] for broker in status["brokers"]] == [True]
    host.run("kquota", "config", "check")
    assert host.run("cat", CREDENTIAL).stdout == FIRST
    assert host.run("runuser", "-u", USER, "--", "cat", CREDENTIAL, check=False).returncode != 0


def test_another_password_is_taken_when_the_agent_is_restarted(host: Host):
    set_password(host, SECOND)
    mark = now(host)
    host.run("systemctl", "restart", AGENT)
    wait_for(lambda: journal(host, f"--after-cursor={mark}"), lambda text: "refused the login" in text)
    host.write(PASSWORD_FILE, SECOND, mode=0o600)
    host.run("systemctl", "restart", AGENT)
    is_well(host)


def test_a_further_rollout_changes_nothing(rolled_out: RolledOut):
    recap = roll_out(rolled_out.inventory, rolled_out.packages)
    assert recap.rsplit("PLAY RECAP", 1)[1].count("changed=0") == 1, recap


def test_a_rollout_with_a_password_that_is_refused_leaves_the_agent_as_it_was(rolled_out: RolledOut):
    host = rolled_out.host
    host.write(f"{PASSWORD_FILE}.old", FIRST, mode=0o600)
    before = property_of(host, AGENT, "MainPID")
    with pytest.raises(PlayFailed, match=r"kquota-agent\.service was not restarted") as refused:
        roll_out(
            rolled_out.inventory,
            rolled_out.packages,
            kquota_agent_credentials={"kafka-password": f"{PASSWORD_FILE}.old"},
        )
    assert "refused the login" in str(refused.value)
    assert property_of(host, AGENT, "MainPID") == before
    is_well(host)
    roll_out(rolled_out.inventory, rolled_out.packages)
    assert property_of(host, AGENT, "MainPID") != before
    is_well(host)


def test_no_password_is_told_passed_or_written(rolled_out: RolledOut):
    host = rolled_out.host
    processes = "for pid in $(pgrep -u kquota); do cat /proc/$pid/cmdline /proc/$pid/environ; done; true"
    seen = {
        "what the rollout said": rolled_out.said,
        "processes": host.run("sh", "-c", processes).stdout,
        "the unit": host.run("systemctl", "show", AGENT).stdout + host.run("systemctl", "cat", AGENT).stdout,
        "the journal": host.run(
            "journalctl", "--no-pager", "--quiet", "--output=verbose", f"--unit={AGENT}"
        ).stdout,
        "the configuration": host.run("kquota", "config", "show").stdout,
    }
    for where, text in seen.items():
        assert text != "", where
        for password in (FIRST, SECOND):
            assert password not in text, where
    places = ("/etc/kquota", "/etc/systemd", "/run/kquota", "/var/lib/kquota", "/var/cache/kquota")
    for password in (FIRST, SECOND):
        found = host.run("grep", "--recursive", "--files-with-matches", password, *places, check=False)
        assert (found.returncode, found.stdout) == (1, "")
