"""The play that decommissions a broker, with fakes of the hosts' commands that record their arguments."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_playbook
from tests.unit.repository.tree import REPOSITORY

COMMANDS = {
    "systemctl": """
        case "$1 $2" in
            is-active*) echo "$BROKER_STATE"; exit 3 ;;
            *LoadState) echo not-found ;;
            *) exit 1 ;;
        esac""",
    "kquota": """echo "$@" >>"$ASKED"; case $1 in status) echo '{"brokers": [{"broker_id": 1}]}' ;; esac""",
}
GONE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the arguments of each call of kquota, a line each; it does not exist before the first."""
    for name, text in COMMANDS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    file = tmp_path / "asked"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(file))
    monkeypatch.setenv("BROKER_STATE", "inactive")
    return file


def decommission(folder: Path, second: Mapping[str, object]) -> str:
    """Run the play for the second of two brokers; `second` are variables of its host."""
    hosts: dict[str, dict[str, object]] = {}
    for number, own in ((1, {}), (2, second)):
        file = folder / f"{number}.properties"
        file.write_text(f"#node.id=9\nnode.id {number}\n")
        hosts[f"broker-{number}"] = {"kquota_server_properties": str(file), **own}
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    inventory = folder / "hosts.yml"
    # The unreachable host comes first.
    inventory.write_text(
        json.dumps({"kafka_brokers": {"hosts": dict(reversed(hosts.items())), "vars": local}})
    )
    given = {"ansible_become": False, "kquota_decommission_id": 2, "kquota_decommission_reason": "gone"}
    return run_playbook(folder, REPOSITORY / "playbooks/decommission.yml", given, inventory=str(inventory))


@pytest.mark.accepts("G18")
@pytest.mark.parametrize("second", [{}, GONE], ids=["its agent was removed", "its host is gone"])
def test_a_broker_is_decommissioned_though(second: Mapping[str, object], tmp_path: Path, asked: Path) -> None:
    said = " ".join(decommission(tmp_path, second).split())
    assert ("broker-2 could not be reached: if the agent of broker 2 is on such a host" in said) == (
        second == GONE
    )
    first, *_ = asked.read_text("utf-8").splitlines()
    assert first.startswith("decommission 2 --reason gone")


def test_a_running_broker_is_not_decommissioned(
    tmp_path: Path, asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_STATE", "active")
    with pytest.raises(PlayFailed, match=r"id\s+2\s+runs\s+on\s+broker-2:"):
        decommission(tmp_path, {})
    assert not asked.exists()
