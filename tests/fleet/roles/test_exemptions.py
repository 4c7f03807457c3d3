"""One pattern for the principals of all agents, so that a further broker changes nothing on the others."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import javaproperties
import pytest
import yaml

from tests.fleet.roles.authority import ISSUE, certificate
from tests.fleet.roles.plays import NODE, PROGRAMS, PlayFailed, check_of_problems, run_play, run_tasks
from tests.fleet.roles.test_permissions import kafka
from tests.fleet.roles.test_properties import PARTS
from tests.unit.repository.tree import REPOSITORY

EXEMPT = "kquota.exempt.principals"
ACLS = {"ansible.builtin.include_role": {"name": "kquota_topic", "tasks_from": "configure_acls"}}
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}


def inventory_of(name: str, folder: Path, brokers: Iterable[str]) -> Path:
    """Copy an example inventory, with these brokers instead of its own, whose files are in the folder."""
    copy = folder / name
    shutil.copytree(REPOSITORY / "inventories" / name, copy, dirs_exist_ok=True)
    (copy / "hosts.yml").write_text(
        json.dumps({"kafka_brokers": {"hosts": {broker: {} for broker in brokers}}})
    )
    for broker in brokers:
        file = folder / f"{broker}.properties"
        if not file.exists():
            file.write_text(f"node.id={broker.removeprefix('kafka')}\n")
    return copy


def changes(recap: str) -> dict[str, int]:
    """The number of changed tasks of each host."""
    found = re.findall(r"(?m)^(\S+) +: ok=\d+ +changed=(\d+)", recap)
    return {host: int(changed) for host, changed in found}


@pytest.mark.parametrize(
    ("inventory", "agents"), [("tls", "User:CN=kquota-agent-*,O=kquota"), ("sasl", "User:kquota-agent")]
)
def test_a_further_broker_changes_no_properties_of_the_others(
    inventory: str, agents: str, tmp_path: Path, plug_in: dict[str, object]
) -> None:
    variables = {**plug_in, "kquota_server_properties": f"{tmp_path}/{{{{ inventory_hostname }}}}.properties"}
    brokers = ["kafka1", "kafka2"]
    run_play(tmp_path, PARTS, variables, inventory=str(inventory_of(inventory, tmp_path, brokers)))
    before = {broker: (tmp_path / f"{broker}.properties").read_text("utf-8") for broker in brokers}
    for text in before.values():
        found = javaproperties.loads(text)
        assert agents in found[EXEMPT].split(";")
        # Agents that share a principal would keep each other from reporting.
        assert found["kquota.agent.principals"] == (agents if "*" in agents else "")

    recap = run_play(
        tmp_path, PARTS, variables, inventory=str(inventory_of(inventory, tmp_path, [*brokers, "kafka3"]))
    )
    assert changes(recap) == {"kafka1": 0, "kafka2": 0, "kafka3": 1}
    assert {broker: (tmp_path / f"{broker}.properties").read_text("utf-8") for broker in brokers} == before
    added = javaproperties.loads((tmp_path / "kafka3.properties").read_text("utf-8"))
    assert added[EXEMPT] == javaproperties.loads(before["kafka1"])[EXEMPT]


def acls(folder: Path, variables: dict[str, object], brokers: list[str], *limit: str) -> set[str]:
    """Add the ACLs of the example inventory for these brokers; return the principals."""
    (folder / "asked").unlink(missing_ok=True)
    tasks: list[dict[str, Any]] = [
        {"ansible.builtin.set_fact": {"kquota_callback_node": {"node_id": "{{ inventory_hostname[5:] }}"}}},
        {
            "ansible.builtin.include_role": {
                "name": "kquota_topic",
                "tasks_from": "facts",
                "public": True,
            }
        },
        {"ansible.builtin.set_fact": {"kquota_topic_acl_list": {"stdout": "", "stderr": ""}}},
        ACLS,
    ]
    given = {**LOCAL, **variables}
    run_play(folder, tasks, given, *limit, inventory=str(inventory_of("tls", folder, brokers)))
    return set(re.findall(r"--allow-principal (\S+)", (folder / "asked").read_text("utf-8")))


def test_each_agent_has_acls_of_its_own(tmp_path: Path) -> None:
    variables = kafka(tmp_path, "")
    for name in ("kquota_agent_principals", "kquota_broker_principals", "kquota_admin_principals"):
        del variables[name]
    assert acls(tmp_path, variables, ["kafka1", "kafka12"]) == {
        "User:CN=kquota-agent-1,O=kquota",
        "User:CN=kquota-agent-12,O=kquota",
    }
    # A further broker alone.
    assert acls(tmp_path, variables, ["kafka1", "kafka12", "kafka3"], "--limit", "kafka3") == {
        "User:CN=kquota-agent-3,O=kquota"
    }
    with pytest.raises(PlayFailed, match=r"An\s+ACL\s+has\s+no\s+patterns"):
        acls(tmp_path, {**variables, "kquota_topic_agent_names": []}, ["kafka1"])
    with pytest.raises(PlayFailed, match=r"An\s+ACL\s+has\s+no\s+patterns"):
        acls(tmp_path, {**variables, "kquota_operator_principals": ["User:CN=op-*"]}, ["kafka1"])
    wildcard = {
        "kquota_operator_principals": [r"User:CN=\*.example.org"],
        "kquota_agent_principals": ["User:a"],
    }
    assert acls(tmp_path, {**variables, **wildcard}, ["kafka1"]) == {"User:a", "User:CN=*.example.org"}


def test_the_certificate_of_an_agent_has_the_name_that_has_the_acls(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    inventory = yaml.safe_load((REPOSITORY / "inventories/tls/group_vars/all.yml").read_text("utf-8"))
    given = {
        **variables,
        "kquota_tls_subject": inventory["kquota_tls_subject"],
        "kquota_callback_node": {"node_id": "12"},
    }
    run_tasks(tmp_path, ISSUE, given)
    assert certificate(tmp_path).subject.rfc4514_string() == "CN=kquota-agent-12,O=kquota"
    assert run_tasks(tmp_path, ISSUE, given) == 0


def test_the_preflight_refuses_a_pattern_that_exempts_too_many(tmp_path: Path) -> None:
    accepted = [
        "User:CN=kquota-agent-*,O=kquota",
        "User:O=x,CN=a*",
        r"User:CN=\*.example.org",
        "User:CN=a+OU=b*,O=x",
        "User:admin",
    ]
    refused = [
        "User:*",
        "User:agent-*",
        "User:CN=*",
        "User:CN=a,O=*",
        "User:CN=a*b*",
        "User:CN=a,b*",
        "*:CN=a",
    ]
    hosts = {
        f"case{number}": {"kquota_agent_principals": ["User:agent", entry]}
        for number, entry in enumerate([*accepted, *refused])
    }
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": LOCAL}}))
    check = check_of_problems("kquota_callback", "preflight_node")
    given = {"kquota_broker_principals": ["User:broker"], "kquota_callback_node": NODE}
    with pytest.raises(PlayFailed) as failed:
        run_play(tmp_path, check, given, inventory=str(inventory))
    shown = str(failed.value)
    failures = dict(re.findall(r"(?m)^(case\d+) .*failed=(\d)", shown))
    assert [failures[f"case{number}"] for number in range(len(hosts))] == ["0"] * len(accepted) + ["1"] * len(
        refused
    )
    assert "as in User:CN=kquota-agent-*,O=kquota" in " ".join(shown.split())
