"""The list of revoked certificates: one run brings it to all hosts, and names those that it did not reach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kquota.trust.revoked import read_revoked
from kquota.trust.signer import certificate_in
from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_play, run_playbook
from tests.unit.repository.tree import REPOSITORY
from tests.unit.trust.issuing import Authority

REVOKE = REPOSITORY / "playbooks/revoke.yml"
COLONS = ":".join(["AB"] * 32)
ONE = "AB" * 32
LIST = f"# the disk of host 3 was sold\nSHA2-256(stdin)= {ONE}\n{'0f' * 32}  # jane\n"


class Hosts:
    """Hosts on this machine, each with a configuration; ``dead`` ones can't be reached."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.source = folder, folder / "given"
        self.hosts: dict[str, dict[str, str]] = {}

    def add(self, name: str, *, mode: str = "required", dead: bool = False) -> Path:
        etc = self.folder / name
        etc.mkdir()
        listed = etc / "revoked"
        signing = {"mode": mode, "revoked_file": str(listed)}
        (etc / "agent.yml").write_text(yaml.safe_dump({"signing": signing}))
        reached = {"ansible_connection": "local"}
        if dead:
            reached = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": "1"}
        self.hosts[name] = reached
        return listed

    def revoke(self, **given: object) -> str:
        local = {"ansible_python_interpreter": str(PROGRAMS / "python")}
        inventory = self.folder / "hosts.yml"
        inventory.write_text(json.dumps({"kafka_brokers": {"hosts": self.hosts, "vars": local}}))
        here = f"{self.folder}/{{{{ inventory_hostname }}}}"
        variables = {
            "ansible_become": False,
            "kquota_revoked_file": str(self.source),
            "kquota_agent_config_file": f"{here}/agent.yml",
            "kquota_agent_revoked_list": f"{here}/revoked",
            **given,
        }
        return run_playbook(self.folder, REVOKE, variables, inventory=str(inventory))


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    found = Hosts(tmp_path)
    found.source.write_text(LIST, "utf-8")
    return found


@pytest.mark.accepts("G12")
def test_one_run_brings_the_list_to_all_hosts_and_another_one_changes_nothing(hosts: Hosts) -> None:
    lists = [hosts.add(name) for name in "abc"]
    said = hosts.revoke()
    assert "The list is in force on 3 hosts." in said
    assert said.rsplit("PLAY RECAP", 1)[1].count("changed=1") == 3
    assert [one.read_text("utf-8") for one in lists] == [LIST] * 3
    assert read_revoked(lists[0]) == {"ab" * 32, "0f" * 32}, "the agent reads what the play accepts"
    assert {one.stat().st_mode & 0o777 for one in lists} == {0o644}
    assert hosts.revoke().rsplit("PLAY RECAP", 1)[1].count("changed=0") == 3


@pytest.mark.accepts("G12")
def test_the_key_of_a_certificate_is_added_to_the_list_once(hosts: Hosts, tmp_path: Path) -> None:
    lists = [hosts.add(name) for name in "ab"]
    files = Authority(tmp_path).issue("kquota://*/agent/3")
    for _ in range(2):
        hosts.revoke(kquota_revoke=str(files.certificate))
        found = lists[0].read_text("utf-8")
        assert found == lists[1].read_text("utf-8") == hosts.source.read_text("utf-8")
        assert found.startswith(LIST)
        assert found.count(certificate_in(files.certificate).fingerprint) == 1
    assert read_revoked(lists[0]) == {"ab" * 32, "0f" * 32, certificate_in(files.certificate).fingerprint}
    assert "CN = kquota-agent" in found
    with pytest.raises(PlayFailed):
        hosts.revoke(kquota_revoke=str(files.key))
    assert hosts.source.read_text("utf-8") == found


@pytest.mark.accepts("G12")
def test_a_dead_host_holds_up_no_other_and_is_named_at_the_end(hosts: Hosts) -> None:
    dead, alive = hosts.add("a", dead=True), hosts.add("b")
    unsigned = hosts.add("c", mode="off")
    with pytest.raises(PlayFailed) as failed:
        hosts.revoke()
    assert alive.read_text("utf-8") == LIST
    assert not dead.exists()
    said = str(failed.value)
    said = said[said.index("TASK [Check that the list is in force on all hosts]") :].replace("\\n", "\n")
    assert "still count on 2 of 3 hosts:" in said
    assert "a: could not be reached" in said
    assert f"c: {unsigned} was written, but the agent of c does not read it" in said
    assert "b:" not in said.split("PLAY RECAP")[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# a\nab:cd\n", "line 2, 'ab:cd', is no fingerprint"),
        (f"{ONE}AB\n", "line 1, 'ABAB"),
        (f"sha256 Fingerprint={COLONS}\n", "is no fingerprint"),
        (f"{COLONS}\n", "line 1, 'AB:AB:"),
        (f"{ONE[:-1]}\n", "is no fingerprint"),
        (f"{ONE} {ONE}\n", "is no fingerprint"),
        (None, "given"),
    ],
)
def test_a_wrong_list_is_refused_before_any_host_has_it(hosts: Hosts, text: str | None, words: str) -> None:
    listed = hosts.add("a")
    listed.write_text(LIST, "utf-8")
    if text is None:
        hosts.source.unlink()
    else:
        hosts.source.write_text(text, "utf-8")
        with pytest.raises(ValueError, match="is no fingerprint"):
            read_revoked(hosts.source)
    with pytest.raises(PlayFailed) as failed:
        hosts.revoke()
    said = " ".join(str(failed.value).split())
    assert words in said
    assert str(hosts.source) in said
    assert listed.read_text("utf-8") == LIST


def test_without_the_variable_the_play_changes_nothing(hosts: Hosts) -> None:
    listed = hosts.add("a")
    with pytest.raises(PlayFailed, match="kquota_revoked_file is not set"):
        hosts.revoke(kquota_revoked_file="")
    assert not listed.exists()


def test_a_rollout_without_the_variable_keeps_the_list_of_the_host(hosts: Hosts, tmp_path: Path) -> None:
    listed = tmp_path / "revoked"
    include = {"ansible.builtin.include_role": {"name": "kquota_agent", "tasks_from": "configure_revoked"}}
    given = {"kquota_agent_revoked_list": str(listed)}
    run_play(tmp_path, [include], given)
    assert read_revoked(listed) == frozenset()
    run_play(tmp_path, [include], {**given, "kquota_revoked_file": str(hosts.source)})
    run_play(tmp_path, [include], given)
    assert listed.read_text("utf-8") == LIST
