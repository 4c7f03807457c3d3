"""The installed collection, in a folder without this repository and its ansible.cfg."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.fleet.control_host import ControlHost

MODULE = "plugins/modules/kquota_node.py"


@pytest.fixture(scope="module")
def operator(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> ControlHost:
    made = ControlHost(tmp_path_factory.mktemp("operator"))
    made.install(collection)
    return made


def test_it_has_what_its_plays_need_and_no_tests_or_builds(operator: ControlHost) -> None:
    found = {str(path.relative_to(operator.collection)) for path in operator.collection.rglob("*")}
    assert {MODULE, "monitoring/prometheus", "packaging/systemd/kquota-agent.service"} <= found
    assert found.isdisjoint({"Makefile", "pyproject.toml", "agent", "callback", "dist", "tests", "tools"})


def test_ansible_reads_each_play_by_its_full_name(operator: ControlHost) -> None:
    plays = sorted(path.stem for path in (operator.collection / "playbooks").glob("*.yml"))
    assert "rollout" in plays
    names = [f"kquota.kquota.{play}" for play in plays]
    done = operator.run("ansible-playbook", "--inventory", "localhost,", "--syntax-check", *names)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_play_by_its_full_name_looks_at_a_node_by_the_collection_s_roles_and_module(
    operator: ControlHost,
) -> None:
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "ansible_become": False,
        "kquota_server_properties": f"{operator.home}/server.properties",
    }
    inventory = operator.home / "hosts.yml"
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": {"broker": host}}}))
    done = operator.run("ansible-playbook", "--inventory", str(inventory), "kquota.kquota.preflight")
    assert done.returncode == 2, done.stdout + done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert f"There is no file {operator.home}/server.properties on broker: set kquota_server_" in said
