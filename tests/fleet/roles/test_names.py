"""The control host decides what certificates name: no host chooses what the authority signs for it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from kquota.formats.signature_headers import writer_of
from kquota.trust.keys import uris
from tests.fleet.roles.authority import PASSPHRASE
from tests.fleet.roles.plays import NODE, PlayFailed, check_of_problems, run_play, run_playbook
from tests.fleet.roles.test_authority import OWN_NAME
from tests.fleet.roles.test_requests import Site
from tests.unit.repository.tree import REPOSITORY

PROGRAM = REPOSITORY / "roles/kquota_tls/files/names.py"
# As Kafka's file has them, and what would be signed: a name of its own, another kind, a principal, two lines.
EVIL = {
    "operator": "1,URI:kquota://*/operator/evil",
    "dns": "1,DNS:kafka-1",
    "subject": "1/CN=evil",
    "line": "1\\nURI:kquota://*/operator/evil",
    "pattern": ".*",
    "spelling": "01",
    "sign": "-1",
    "nothing": "",
}
ROLE = [{"ansible.builtin.include_role": {"name": "kquota_tls"}}]


class Hosts:
    """Hosts of an inventory, all on this machine, whose brokers have a configuration file each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.names = folder, folder / "kquota-agents.txt"
        self.inventory = folder / "hosts.yml"

    def write(self, ids: Mapping[str, str], **common: object) -> None:
        """Have hosts with these ids in the configuration of their brokers."""
        hosts = {}
        for name, node_id in ids.items():
            (self.folder / f"{name}.properties").write_text(f"node.id={node_id}\n")
            hosts[name] = {
                "ansible_connection": "local",
                "kquota_server_properties": str(self.folder / f"{name}.properties"),
                "kquota_tls_directory": str(self.folder / name),
            }
        own = {
            "kquota_tls": True,
            "kquota_ca_dir": str(self.folder / "authority"),
            "kquota_tls_ca_passphrase": PASSPHRASE,
            "kquota_tls_group": "root",
        }
        self.inventory.write_text(json.dumps({"kafka_brokers": {"hosts": hosts, "vars": {**own, **common}}}))

    def issue(self, *options: str, **given: object) -> str:
        """Issue certificates as the rollout does, once its preflight has read the ids."""
        tasks = yaml.safe_load((REPOSITORY / "playbooks/renew_certificates.yml").read_text("utf-8"))[0][
            "tasks"
        ]
        read = tasks[0]["block"][0]
        return run_play(self.folder, [read, *ROLE], given, *options, inventory=str(self.inventory))

    def play(self, name: str, **given: object) -> str:
        playbook = REPOSITORY / f"playbooks/{name}.yml"
        given = {"ansible_become": False, **given}
        return run_playbook(self.folder, playbook, given, inventory=str(self.inventory))

    def certificate(self, host: str) -> x509.Certificate | None:
        file = self.folder / host / "current/agent.pem"
        return x509.load_pem_x509_certificates(file.read_bytes())[0] if file.exists() else None

    def named(self, host: str) -> list[str]:
        """The URIs that a host's certificate names, after the name that each one has."""
        certificate = self.certificate(host)
        if certificate is None:
            return []
        own, *names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert own == OWN_NAME
        assert all(isinstance(name, x509.UniformResourceIdentifier) for name in names)
        return [name.value for name in names]

    def lines(self) -> list[str]:
        """The ids and hosts in the file, without the comment."""
        return [line for line in self.names.read_text().splitlines() if not line.startswith("#")]


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    """Hosts without a systemd, which rotation asks about the broker's unit."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/systemctl").write_text("#!/bin/sh\necho LoadState=loaded\n")
    (tmp_path / "bin/systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
    return Hosts(tmp_path)


def one_line(failed: pytest.ExceptionInfo[PlayFailed]) -> str:
    return " ".join(str(failed.value).split())


@pytest.mark.parametrize("by", ["rollout", "renew_certificates", "rotate_certificates"])
def test_a_node_id_that_is_no_number_gets_nothing_signed(by: str, hosts: Hosts) -> None:
    # With the id in it, as in inventories/tls: the subject is another place for such a text.
    own = {"kquota_tls_subject": "/O=kquota/CN=kquota-agent-{{ kquota_tls_node_id }}"}
    hosts.write({"honest": "2", **EVIL}, **own, kquota_agents_serial=["100%"])
    hosts.names.write_text(
        "".join(f"{number} {name}\n" for number, name in enumerate(EVIL, start=3)) + "2 honest\n"
    )
    before = hosts.lines()
    run = hosts.issue if by == "rollout" else lambda: hosts.play(by)
    with pytest.raises(PlayFailed) as failed:
        run()
    said = one_line(failed)
    for name in EVIL:
        assert f"{name} has the node id '" in said
        assert hosts.certificate(name) is None
    assert "must be a number without leading zeros" in said
    # Hosts that lie do not keep the others from being renewed; a rotation ends.
    assert hosts.named("honest") == ([] if by == "rotate_certificates" else ["kquota://*/agent/2"])
    assert hosts.lines() == before


@pytest.mark.parametrize("value", ["1\n", "1,URI:kquota://*/operator/evil"])
def test_the_preflight_refuses_a_node_id_that_is_no_number(value: str, tmp_path: Path) -> None:
    given = {
        "kquota_callback_node": {**NODE, "node_id": value},
        "kquota_callback_agent_principals": ["User:agent"],
        "kquota_callback_broker_principals": ["User:broker"],
    }
    check = check_of_problems("kquota_callback", "preflight_node")
    run_play(tmp_path, check, {**given, "kquota_callback_node": NODE})
    with pytest.raises(PlayFailed, match=r"must\s+be\s+a\s+number"):
        run_play(tmp_path, check, given)


def test_of_two_hosts_with_one_id_one_gets_a_certificate(hosts: Hosts) -> None:
    hosts.write({"first": "1", "second": "1"})
    with pytest.raises(PlayFailed) as failed:
        hosts.issue()
    assert sorted([hosts.named("first"), hosts.named("second")]) == [[], ["kquota://*/agent/1"]]
    owner, other = ("first", "second") if hosts.named("first") else ("second", "first")
    taken = f"{hosts.names} on the control host has none for it, and 1 is that of {owner}"
    assert f"{other} has the node id 1, but {taken}" in one_line(failed)
    assert hosts.lines() == [f"1 {owner}"]


def test_a_changed_id_needs_an_operator_s_word_for_that_host(hosts: Hosts) -> None:
    hosts.write({"first": "1", "second": "2"})
    hosts.issue()
    kept = hosts.certificate("first")
    hosts.write({"first": "2", "second": "2"})
    wanted = (
        f"first has the node id 2, but {hosts.names} on the control host has 1 for it, and 2 is that of"
        " second. Check node.id on first; if the broker of first is to have this id, run"
        " playbooks/rollout.yml with -e kquota_tls_change_node_id_of=first"
    )
    for attempt in (
        lambda: hosts.play("renew_certificates", kquota_tls_renew=True),
        lambda: hosts.play("rotate_certificates"),
        lambda: hosts.issue(kquota_tls_change_node_id_of="second"),
    ):
        with pytest.raises(PlayFailed) as failed:
            attempt()
        assert wanted in one_line(failed)
        assert hosts.certificate("first") == kept
        assert hosts.lines() == ["1 first", "2 second"]

    hosts.write({"first": "3", "second": "2"})
    hosts.issue(kquota_tls_change_node_id_of="first")
    assert hosts.named("first") == ["kquota://*/agent/3"]
    assert hosts.lines() == ["2 second", "3 first"]

    # Another host takes the place of one that is gone.
    hosts.write({"second": "2", "replacement": "3"})
    with pytest.raises(PlayFailed, match=r"none\s+for\s+it,\s+and\s+3\s+is\s+that\s+of\s+first"):
        hosts.issue()
    hosts.issue(kquota_tls_change_node_id_of="replacement")
    assert hosts.named("replacement") == ["kquota://*/agent/3"]
    assert hosts.lines() == ["2 second", "3 replacement"]


def test_only_a_rollout_adds_a_host(hosts: Hosts) -> None:
    # The unknown one comes first, where a rotation ends.
    hosts.write({"unknown": "1", "known": "2"})
    hosts.names.write_text("2 known\n")
    for name in ("renew_certificates", "rotate_certificates"):
        with pytest.raises(PlayFailed) as failed:
            hosts.play(name)
        said = one_line(failed)
        assert f"unknown has the node id 1, but {hosts.names} on the control host has none for it." in said
        assert "playbooks/rollout.yml (--tags kquota_tls) adds it" in said
        assert hosts.certificate("unknown") is None
    # A check of the changes writes nothing.
    hosts.issue("--check")
    assert hosts.lines() == ["2 known"]
    hosts.issue()
    assert hosts.lines() == ["1 unknown", "2 known"]
    assert hosts.named("unknown") == ["kquota://*/agent/1"]


def test_certificates_count_in_the_cluster_that_the_inventory_names_alone(hosts: Hosts) -> None:
    hosts.write({"first": "1"})
    hosts.issue()
    assert hosts.named("first") == ["kquota://*/agent/1"]
    cluster_id = "KNFZgGqwTBmh-wGvSa_PZw"
    hosts.issue(kquota_cluster_id=cluster_id)
    names = hosts.named("first")
    assert names == [f"kquota://{cluster_id}/agent/1"]
    assert writer_of(names, cluster_id, b"1", tombstone=False) == "agent/1"
    assert writer_of(names, "another", b"1", tombstone=False) is None
    kept = hosts.certificate("first")
    hosts.issue(kquota_cluster_id=cluster_id)
    assert hosts.certificate("first") == kept
    hosts.play("operator_certificate", kquota_operator="jane", kquota_cluster_id=cluster_id)
    jane = x509.load_pem_x509_certificates((hosts.folder / "kquota-operators/jane.pem").read_bytes())[0]
    assert uris(jane) == (f"kquota://{cluster_id}/operator/jane",)
    wrong = {"kquota_cluster_id": "a/operator/evil,URI:kquota://*"}
    with pytest.raises(PlayFailed, match=r"kquota_cluster_id\s+is\s+'a/operator/evil"):
        hosts.issue(**wrong)
    with pytest.raises(PlayFailed, match=r"kquota_cluster_id\s+is\s+'a/operator/evil"):
        hosts.play("operator_certificate", kquota_operator="joe", **wrong)
    assert hosts.certificate("first") == kept
    assert not (hosts.folder / "kquota-operators/joe.pem").exists()


LIAR = """#!/bin/sh
# On the agent's host: the request is another than the one that the role asks for.
case "$1 $*" in
    "req "*" -new "*"/agent.key"*)
        for word; do
            shift
            case $word in
                /O=*) set -- "$@" "$SUBJECT" ;;
                subjectAltName*) set -- "$@" "$NAMES" ;;
                *) set -- "$@" "$word" ;;
            esac
        done ;;
esac
exec {openssl} "$@"
"""


@pytest.fixture
def liar(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An openssl that makes requests with the subject SUBJECT and the names NAMES."""
    program = hosts.folder / "bin/openssl"
    program.write_text(LIAR.replace("{openssl}", str(shutil.which("openssl"))))
    program.chmod(0o755)
    monkeypatch.setenv("SUBJECT", "/O=kquota/CN=kquota-operator evil")
    monkeypatch.setenv("NAMES", "subjectAltName = URI:kquota://*/operator/evil")
    return monkeypatch


@pytest.mark.usefixtures("liar")
def test_the_subject_of_a_request_does_not_count(hosts: Hosts) -> None:
    hosts.write({"first": "1"})
    hosts.issue()
    certificate = hosts.certificate("first")
    assert certificate is not None
    assert certificate.subject.rfc4514_string() == "CN=kquota-agent,O=kquota"
    assert hosts.named("first") == ["kquota://*/agent/1"]


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        ("/O=Example/CN=admin", "URI:kquota://*/agent/1"),
        ("/O=Example/CN=kquota-agent", "URI:kquota://*/agent/2"),
        ("/O=Example/CN=kquota-agent", "URI:kquota://*/agent/1, DNS:kafka-1"),
    ],
)
def test_a_request_that_names_another_is_not_put_before_the_site_s_authority(
    subject: str, names: str, tmp_path: Path, liar: pytest.MonkeyPatch
) -> None:
    liar.setenv("SUBJECT", subject)
    liar.setenv("NAMES", f"subjectAltName = {names}")
    site = Site(tmp_path)
    with pytest.raises(PlayFailed, match=r"The\s+request\s+that\s+kafka-1\s+made\s+is\s+not\s+the\s+one"):
        site.run({"kafka-1": "1"})
    assert list(site.requests.iterdir()) == []
    with pytest.raises(PlayFailed, match=r"has\s+the\s+node\s+id\s+2,\s+but[^$]*has\s+1\s+for\s+it"):
        site.run({"kafka-1": "2"})


def test_plays_at_the_same_time_give_an_id_to_one_host(tmp_path: Path) -> None:
    file = tmp_path / "names"
    attempts = [(f"host {number}", str(number % 8)) for number in range(24)]
    started = [
        subprocess.Popen([sys.executable, PROGRAM, file, *attempt, "new"], stdout=subprocess.PIPE, text=True)
        for attempt in attempts
    ]
    said = {attempt: process.communicate()[0] for attempt, process in zip(attempts, started, strict=True)}
    won = [attempt for attempt, process in zip(attempts, started, strict=True) if process.returncode == 0]
    assert sorted(node_id for _, node_id in won) == [str(number) for number in range(8)]
    assert all("is that of host" in said[attempt] for attempt in attempts if attempt not in won)
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert lines == [f"{node_id} {host}" for host, node_id in sorted(won, key=lambda one: one[1])]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("1 a\n2 a\n", "line 2 of"),
        ("1 a\n1 b\n", "line 2 of"),
        ("01 a\n", "line 1 of"),
        ("a\n", "line 1 of"),
        (None, "can't be used: "),
    ],
)
def test_a_file_of_names_that_is_not_whole_is_refused(
    content: str | None, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "folder/names"
    if content is not None:
        file.parent.mkdir()
        file.write_text(content)
    done = subprocess.run(
        [sys.executable, PROGRAM, file, "c", "3", "new", "change"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert sentence in done.stdout
    assert content is None or file.read_text() == content
