"""Two brokers on one host: each has an agent of its own, kquota-agent@NAME. Test follows test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.hosts.host import Host
from testbed.hosts.rollout import (
    AGENT,
    REPOSITORY,
    applied,
    decision,
    journal,
    metrics,
    play,
    property_of,
    wait_for,
)
from testbed.hosts.spec import VolumeSpec
from tests.fleet.conftest import MakeKafka

METAL = "metal"
IDS: Mapping[str, int] = {"a": 1, "b": 2}
"""The brokers by their names."""
VOLUMES = (
    VolumeSpec(path="/data/a", size_mebibytes=128),
    VolumeSpec(path="/data/b", size_mebibytes=128),
    VolumeSpec(path="/data/metadata", size_mebibytes=128),
)
# systemd's id of the message that a unit has started.
STARTED = "39f53479d3a045ac8e11786248231fbf"
BOOTSTRAP = f"{METAL}:9093,{METAL}:9193"

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def variables(name: str) -> dict[str, object]:
    """An operator's inventory entry for a broker that shares its host."""
    tls = f"/etc/kquota/tls-{name}"
    return {
        "kquota_instance": name,
        "kquota_server_properties": f"/etc/kafka/{name}/server.properties",
        "kquota_bootstrap_servers": BOOTSTRAP,
        "kquota_agent_metrics_listen": f"127.0.0.1:{port(name)}",
        "kquota_kafka": {
            "bootstrap.servers": BOOTSTRAP,
            "security.protocol": "ssl",
            "ssl.ca.location": f"{tls}/ca.pem",
            "ssl.certificate.location": f"{tls}/current/agent.pem",
            "ssl.key.location": f"{tls}/current/agent.key",
        },
        # And how Kafka itself is set up.
        "kafka_host": METAL,
        "kafka_port_offset": 100 * (IDS[name] - 1),
        "kafka_log_dirs": [f"/data/{name}/kafka"],
        "kafka_metadata_log_dir": f"/data/metadata/{name}",
    }


def port(name: str) -> int:
    """The port of an agent's metrics."""
    return 9463 + IDS[name]


def agent(name: str) -> str:
    return f"kquota-agent@{name}.service"


@dataclass(frozen=True)
class Metal:
    """The host, and what it was before kquota came."""

    host: Host
    inventory: Path
    packages: Path
    properties: Mapping[str, str]

    def play(self, name: str, **given: object) -> str:
        """Run one of the playbooks."""
        playbook = REPOSITORY / f"playbooks/{name}.yml"
        return play(self.inventory, playbook, kquota_dist_dir=str(self.packages), **given)


def starts(host: Host, name: str) -> int:
    """How often systemd has started a broker."""
    ask = ("journalctl", "--no-pager", "--quiet", "--output=cat", f"MESSAGE_ID={STARTED}")
    return len(host.run(*ask, f"UNIT=kafka@{name}.service").stdout.splitlines())


def properties(host: Host) -> dict[str, str]:
    return {name: host.read(f"/etc/kafka/{name}/server.properties") for name in IDS}


@pytest.fixture(scope="module")
def metal(make_kafka: MakeKafka, packages: Path) -> Metal:
    """Two brokers with kquota rolled out on them, enforcing."""
    brokers = {f"{METAL}-{name}": (METAL, variables(name)) for name in IDS}
    fleet, inventory = make_kafka([METAL], "bookworm", VOLUMES, brokers)
    made = Metal(fleet[METAL], inventory, packages, properties(fleet[METAL]))
    made.play("rollout")
    return made


@pytest.fixture(scope="module")
def host(metal: Metal) -> Host:
    return metal.host


def both_apply(host: Host, state: str) -> None:
    for name in IDS:
        wait_for(
            lambda name=name: applied(host, name),
            lambda seen: (seen.get("mode"), seen.get("state")) == ("enforce", state),
        )


def test_each_broker_has_an_agent_that_starts_before_it(host: Host):
    both_apply(host, "OPEN")
    for name, broker_id in IDS.items():
        assert property_of(host, agent(name), "ActiveState") == "active"
        assert property_of(host, agent(name), "UnitFileState") == "enabled"
        assert f"kafka@{name}.service" in property_of(host, agent(name), "Before").split()
        assert property_of(host, agent(name), "StatusText").startswith("OPEN")
        told = journal(host, unit=agent(name))
        assert f"started for broker {broker_id}" in told
        assert f"started for broker {sum(IDS.values()) - broker_id}" not in told
    assert property_of(host, AGENT, "ActiveState") == "inactive", "it has no configuration"


def test_each_agent_knows_the_disks_of_both(host: Host):
    for name in IDS:
        seen = host.run("kquota", "status", "--json", "--config", f"/etc/kquota/{name}.yml").stdout
        log_dirs = {
            broker["broker_id"]: {path for volume in broker["volumes"] for path in volume["log_dirs"]}
            for broker in json.loads(seen)["brokers"]
        }
        assert log_dirs == {
            broker_id: {f"/data/{name}/kafka", f"/data/metadata/{name}"} for name, broker_id in IDS.items()
        }
        assert metrics(host, port(name))["kquota_connected"] == 1.0


def test_a_full_disk_of_one_holds_producers_of_both(host: Host):
    ballast = host.volumes["/data/a"].fill(leave_bytes=4 * 2**20)
    try:
        both_apply(host, "PAUSE")
        for name in IDS:
            assert {reason["broker_id"] for reason in decision(host, name)["reasons"]} == {IDS["a"]}
    finally:
        ballast.unlink()
    both_apply(host, "OPEN")


def test_an_agent_that_is_killed_is_replaced_and_its_neighbour_goes_on(host: Host):
    before = {name: property_of(host, agent(name), "MainPID") for name in IDS}
    host.run("kill", "-KILL", before["a"])
    wait_for(lambda: property_of(host, agent("a"), "MainPID"), lambda found: found not in {before["a"], "0"})
    both_apply(host, "OPEN")
    assert property_of(host, agent("b"), "MainPID") == before["b"]


def test_a_further_rollout_changes_nothing(metal: Metal):
    recap = metal.play("rollout").rsplit("PLAY RECAP", 1)[1]
    assert recap.count("changed=0") == len(IDS), recap


def test_a_rollout_without_the_fence_removes_it_with_one_restart_of_each(metal: Metal):
    host = metal.host
    assert all(applied(host, name)["fence"]["installed"] for name in IDS)
    named = "authorizer.class.name=org.kquota.KquotaAuthorizer"
    assert all(named in text for text in properties(host).values())
    before = {name: starts(host, name) for name in IDS}
    metal.play("rollout", kquota_fence=False)
    assert {name: starts(host, name) for name in IDS} == {name: count + 1 for name, count in before.items()}
    assert not any(applied(host, name)["fence"]["installed"] for name in IDS)
    assert not any(named in text for text in properties(host).values())
    both_apply(host, "OPEN")


def test_after_the_uninstallation_nothing_is_left(metal: Metal):
    metal.play("uninstall", kquota_uninstall_topics=True)
    places = ("/etc", "/opt", "/run", "/usr", "/var/lib", "/var/cache")
    others = ("-not", "-path", "*/dpkg/*", "-not", "-path", "/run/systemd/*")
    left = metal.host.run(
        "find", *places, "-xdev", "-ignore_readdir_race", "-iname", "*kquota*", *others
    ).stdout
    assert left == ""
    assert properties(metal.host) == metal.properties
    for name in IDS:
        assert property_of(metal.host, f"kafka@{name}.service", "ActiveState") == "active"
