"""The installed collection, in a folder without this repository and its ansible.cfg."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.roles.plays import PROGRAMS

MODULE = "plugins/modules/kquota_node.py"


@dataclass(frozen=True)
class Operator:
    """The home of a release's user, with the installed collection."""

    folder: Path

    @property
    def installed(self) -> Path:
        return self.folder / ".ansible/collections/ansible_collections/kquota/kquota"

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment |= {"HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        return subprocess.run(
            [PROGRAMS / program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            cwd=self.folder,
            env=environment,
        )


@pytest.fixture(scope="module")
def operator(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    made = Operator(tmp_path_factory.mktemp("operator"))
    done = made.run("ansible-galaxy", "collection", "install", "--offline", str(collection))
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_it_has_what_its_plays_need_and_no_tests_or_builds(operator: Operator) -> None:
    found = {str(path.relative_to(operator.installed)) for path in operator.installed.rglob("*")}
    assert {MODULE, "monitoring/prometheus", "packaging/systemd/kquota-agent.service"} <= found
    assert found.isdisjoint({"Makefile", "pyproject.toml", "agent", "callback", "dist", "tests", "tools"})


def test_ansible_reads_each_play_by_its_full_name(operator: Operator) -> None:
    plays = sorted(path.stem for path in (operator.installed / "playbooks").glob("*.yml"))
    assert "rollout" in plays
    names = [f"kquota.kquota.{play}" for play in plays]
    done = operator.run("ansible-playbook", "--inventory", "localhost,", "--syntax-check", *names)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_play_by_its_full_name_looks_at_a_node_by_the_collection_s_roles_and_module(
    operator: Operator,
) -> None:
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "ansible_become": False,
        "kquota_server_properties": f"{operator.folder}/server.properties",
    }
    inventory = operator.folder / "hosts.yml"
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": {"broker": host}}}))
    done = operator.run("ansible-playbook", "--inventory", str(inventory), "kquota.kquota.preflight")
    assert done.returncode == 2, done.stdout + done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert f"There is no file {operator.folder}/server.properties on broker: set kquota_server_" in said
