"""The play that has a broker forgotten, with commands of the hosts that only say what they were asked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.fleet.roles.plays import PROGRAMS, run_playbook
from tests.unit.repository.tree import REPOSITORY

COMMANDS = {
    "systemctl": """
        case "$1 $2" in
            is-active*) echo inactive; exit 3 ;;
            *LoadState) echo not-found ;;
            *) exit 1 ;;
        esac""",
    "kquota": """echo "$@" >>"$ASKED"; case $1 in status) echo '{"brokers": [{"broker_id": 1}]}' ;; esac""",
}


def test_a_broker_whose_agent_was_removed_before_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in COMMANDS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    hosts = {}
    for number in (1, 2):
        file = tmp_path / f"{number}.properties"
        file.write_text(f"node.id={number}\n")
        hosts[f"broker-{number}"] = {"kquota_server_properties": str(file)}
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": hosts, "vars": local}}))
    given = {
        "ansible_become": False,
        "kquota_decommission_id": 2,
        "kquota_decommission_reason": "it is gone",
    }
    run_playbook(tmp_path, REPOSITORY / "playbooks/decommission.yml", given, inventory=str(inventory))
    first, *_ = (tmp_path / "asked").read_text("utf-8").splitlines()
    assert first.startswith("decommission 2 --reason it is gone")
