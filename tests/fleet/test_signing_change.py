"""Signatures demanded, and given up again, on three hosts with producers running. Test follows test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kquota.formats.record_verifier import ReplayGuard
from kquota.policy.timestamps import format_utc
from kquota.trust.signer import FileSigner, SigningFiles
from kquota.trust.signing import RecordSigner
from testbed.hosts.fleet import Fleet
from testbed.hosts.rollout import REPOSITORY, applied, journal, now, play, run_ansible, wait_for
from testbed.hosts.spec import VolumeSpec
from tests.fleet.conftest import MakeKafka
from tests.fleet.producers import Producers, await_flow, longest_silences_seconds, producing
from tests.integration.spine.fleet import USAGE_TOPIC
from tests.integration.spine.followed_topic import FollowedTopic

NAMES = ("broker-1", "broker-2", "broker-3")
VOLUMES = (
    VolumeSpec(path="/data/1", size_mebibytes=256),
    VolumeSpec(path="/data/metadata", size_mebibytes=64),
)
TRUSTED = "/etc/kafka/tls/ca.pem"
RATE_BYTES_PER_SECOND = 25_000
NEVER_SILENT_SECONDS = 10

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@dataclass
class Running:
    """Hosts with kquota, what an operator runs for them, and a producer for each broker."""

    fleet: Fleet
    inventory: Path
    packages: Path
    producers: Producers
    authority: Path

    def roll_out(self, signing: str) -> None:
        _roll_out(self.inventory, self.packages, signing, self.authority)

    def signing(self) -> dict[str, object]:
        """The mode of signing by `kquota status` on each host."""
        seen = {name: self.fleet[name].run("kquota", "status", "--json").stdout for name in NAMES}
        return {name: json.loads(text)["signing"] for name, text in seen.items()}


def _roll_out(inventory: Path, packages: Path, signing: str, authority: Path) -> None:
    variables = {
        "kquota_dist_dir": str(packages),
        "kquota_signing": signing,
        "kquota_ca_dir": str(authority),
    }
    play(inventory, REPOSITORY / "playbooks/rollout.yml", **variables)


@pytest.fixture(scope="module")
def running(
    make_kafka: MakeKafka, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Brokers that enforce, whose agents do not sign yet."""
    own = {"kafka_clients_host": "{{ ansible_host }}", "kafka_log_dirs": ["/data/1/kafka"]}
    fleet, inventory = make_kafka(NAMES, "trixie", VOLUMES, {name: (name, own) for name in NAMES})
    authority = inventory.parent / "authority"
    _roll_out(inventory, packages, "off", authority)
    logs = tmp_path_factory.mktemp("load")
    with producing(fleet, inventory, NAMES, RATE_BYTES_PER_SECOND, logs) as producers:
        yield Running(fleet, inventory, packages, producers, authority)


def change_signing(running: Running, signing: str) -> None:
    """Roll it out, and check that no broker held a producer for it."""
    fleet = running.fleet
    await_open(running)
    await_flow(running.producers, RATE_BYTES_PER_SECOND)
    marks, begun = marks_of(fleet), time.monotonic()
    running.roll_out(signing)
    wait_for(running.signing, lambda seen: seen == dict.fromkeys(NAMES, signing))
    time.sleep(5)
    silences = longest_silences_seconds(running.producers, begun)
    longest = {name: round(seconds, 1) for name, seconds in silences.items()}
    took_seconds = time.monotonic() - begun
    print(f"\nto {signing} in {took_seconds:.0f} s; longest silence of each producer in seconds {longest}")
    assert held_since(fleet, marks) == []
    assert max(silences.values()) < NEVER_SILENT_SECONDS


def await_open(running: Running) -> None:
    for name in NAMES:
        wait_for(lambda host=running.fleet[name]: applied(host).get("state"), lambda state: state == "OPEN")


def marks_of(fleet: Fleet) -> dict[str, str]:
    return {name: now(fleet[name]) for name in NAMES}


def lines_since(fleet: Fleet, marks: dict[str, str], name: str) -> list[str]:
    return journal(fleet[name], f"--after-cursor={marks[name]}").splitlines()


def held_since(fleet: Fleet, marks: dict[str, str]) -> list[str]:
    """The lines about states that hold producers, and the brokers that hold them now."""
    lines = [line for name in NAMES for line in lines_since(fleet, marks, name)]
    held = [name for name in NAMES if applied(fleet[name])["state"] != "OPEN"]
    return [line for line in lines if line.startswith(("THROTTLE", "PAUSE"))] + held


def test_to_demand_signatures_pauses_no_broker_and_silences_no_producer(running: Running) -> None:
    change_signing(running, "required")


class Thief:
    """Has the key of the agent of a broker, and reports that broker's disks full."""

    def __init__(self, running: Running, name: str, broker_id: int, folder: Path) -> None:
        host, self._key = running.fleet[name], str(broker_id).encode()
        for path in ("ca.pem", "signers.pem", "current/agent.pem", "current/agent.key"):
            (folder / Path(path).name).write_text(host.run("cat", f"/etc/kquota/tls/{path}").stdout, "utf-8")
        pair = folder / "agent.pem", folder / "agent.key"
        client = {
            "bootstrap.servers": ",".join(f"{host.address}:9092" for host in running.fleet.values()),
            "security.protocol": "SSL",
            "ssl.ca.location": str(folder / "ca.pem"),
            "ssl.certificate.location": str(pair[0]),
            "ssl.key.location": str(pair[1]),
        }
        self.certificate = pair[0]
        self._producer = Producer(client)
        with FollowedTopic(client, USAGE_TOPIC) as usage:
            own = [message.value() for message in usage.records() if message.key() == self._key]
        self._report = json.loads(own[-1] or b"{}")
        signer = FileSigner(SigningFiles(*pair, folder / "signers.pem"), broker_id)
        ahead = round(time.time() * 1000) + 3_600_000  # of the counter of the agent
        self._record_signer = RecordSigner(signer, USAGE_TOPIC, ReplayGuard(), ahead)

    def report_full(self) -> None:
        report = self._report
        full = [{**volume, "Consumed": volume["Capacity"]} for volume in report["Volumes"]]
        own = {"InstanceId": "a thief", "SnapshotAt": format_utc(datetime.now(UTC)), "Volumes": full}
        value = json.dumps({**report, **own}).encode()
        headers = self._record_signer.headers(self._key, value, report["ClusterId"], 1)
        self._producer.produce(USAGE_TOPIC, key=self._key, value=value, headers=list(headers))
        assert self._producer.flush(60) == 0


@pytest.mark.accepts("G12")
def test_the_runbook_s_steps_end_what_a_stolen_key_of_an_agent_can_do(
    running: Running, tmp_path: Path
) -> None:
    fleet, others = running.fleet, ("broker-1", "broker-2")
    thief, marks = Thief(running, "broker-3", 3, tmp_path), marks_of(fleet)

    def all_paused() -> bool:
        """Report again: the agent's own next report counts, too."""
        thief.report_full()
        return all(
            any(line.startswith("PAUSE") for line in lines_since(fleet, marks, name)) for name in others
        )

    wait_for(all_paused, bool)
    show = "openssl", "x509", "-in", "/etc/kquota/tls/current/agent.pem"
    (stolen := tmp_path / "stolen.pem").write_text(fleet["broker-3"].run(*show).stdout, "utf-8")
    rotate, revoke = (REPOSITORY / f"playbooks/{name}.yml" for name in ("rotate_certificates", "revoke"))
    play(running.inventory, rotate, options=["--limit", "broker-3"], kquota_signing="required")
    assert fleet["broker-3"].run(*show).stdout != stolen.read_text("utf-8")
    revoked = tmp_path / "revoked.txt"
    said = play(running.inventory, revoke, kquota_revoked_file=str(revoked), kquota_revoke=str(stolen))
    assert "The list is in force on 3 hosts." in said

    await_open(running)
    marks, begun = marks_of(fleet), time.monotonic()

    def all_refused() -> bool:
        thief.report_full()
        sentence = "the record of key 3 is refused: its signer's certificate is revoked"
        return all(sentence in lines_since(fleet, marks, name) for name in others)

    wait_for(all_refused, bool)
    await_flow(running.producers, RATE_BYTES_PER_SECOND)
    assert held_since(fleet, marks) == []
    assert max(longest_silences_seconds(running.producers, begun).values()) < NEVER_SILENT_SECONDS


def trust(running: Running, *authorities: Path) -> None:
    """Have each broker trust these and its own, without a restart."""
    own = running.inventory.parent / "kafka-authority/ca.pem"
    for broker_id, name in enumerate(NAMES, start=1):
        host = running.fleet[name]
        host.write(TRUSTED, "".join(path.read_text("utf-8") for path in (own, *authorities)), mode=0o644)
        host.run(
            *("/opt/kafka/bin/kafka-configs.sh", "--bootstrap-server", f"{name}:9093"),
            *("--command-config", "/etc/kafka/admin.properties", "--alter"),
            *("--entity-type", "brokers", "--entity-name", str(broker_id)),
            *("--add-config", f"listener.name.internal.ssl.truststore.location={TRUSTED}"),
        )


def test_the_runbook_s_steps_replace_a_stolen_authority(running: Running, tmp_path: Path) -> None:
    fleet, inventory = running.fleet, running.inventory
    await_open(running)
    old, new = (inventory.parent / name for name in ("authority", "kquota-ca-2"))
    thief, marks = Thief(running, "broker-3", 3, tmp_path), marks_of(fleet)
    create = ["name=kquota_tls tasks_from=install_authority", "-e", f"kquota_ca_dir={new}"]
    run_ansible(
        inventory, ["kafka_brokers", "-m", "ansible.builtin.include_role", "-a", *create], program="ansible"
    )
    trust(running, old / "ca.pem", new / "ca.pem")
    rollout, rotate = (REPOSITORY / f"playbooks/{name}.yml" for name in ("rollout", "rotate_certificates"))
    tls = ("--tags", "kquota_tls")
    common = {"kquota_dist_dir": str(running.packages), "kquota_signing": "required"}
    added = {"kquota_tls_signer_files": [str(new / "issuer.pem")], "kquota_tls_renew_days": 0.1}
    play(inventory, rollout, options=tls, **common, **added)
    both = {
        "kquota_ca_dir": str(new),
        "kquota_tls_trusted_files": [str(inventory.parent / "kafka-authority/ca.pem"), str(old / "ca.pem")],
        "kquota_tls_signer_files": [str(old / "issuer.pem")],
    }
    play(inventory, rotate, **common, **both)
    play(inventory, rollout, options=tls, **common, kquota_ca_dir=str(new))
    await_open(running)
    assert held_since(fleet, marks) == []

    begun = time.monotonic()

    def all_refused() -> bool:
        thief.report_full()
        start = "the record of key 3 is refused: "
        seen = [lines_since(fleet, marks, name) for name in NAMES]
        return all(any(line.startswith(start) for line in lines) for lines in seen)

    wait_for(all_refused, bool)
    trust(running, new / "ca.pem")
    await_flow(running.producers, RATE_BYTES_PER_SECOND)
    assert held_since(fleet, marks) == []
    assert max(longest_silences_seconds(running.producers, begun).values()) < NEVER_SILENT_SECONDS
    running.authority = new


def test_to_give_signatures_up_pauses_no_broker_and_silences_no_producer(running: Running) -> None:
    change_signing(running, "off")
