"""Parts of plays and roles that tags select: each includes the facts that it needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.fleet.roles.plays import PROGRAMS, run_play, run_playbook
from tests.unit.repository.tree import REPOSITORY

PLAYBOOKS = REPOSITORY / "playbooks"
READS = ("Preflight | Check the host", "Verify | Set whether the agent is installed")
# By role and tag: some of the tasks that it runs.
PARTS = {
    ("kquota_agent", "kquota_install"): (*READS, "Install | Create the cache directory"),
    ("kquota_agent", "kquota_configure"): (*READS, "Configure | Write the configuration"),
    ("kquota_agent", "kquota_service"): (READS[1], "Service | Enable and start the agent"),
    ("kquota_callback", "kquota_configure"): (
        "Facts | Look at the node",
        "Configure | Write the node's properties",
    ),
}


@pytest.mark.parametrize("playbook", ["rollout", "upgrade"])
@pytest.mark.parametrize("tag", ["kquota_topics", "kquota_plug_in", "kquota_mode"])
def test_parts_without_the_agents_do_not_need_the_agents_mode(
    playbook: str, tag: str, tmp_path: Path
) -> None:
    (play,) = [
        play
        for play in yaml.safe_load((PLAYBOOKS / f"{playbook}.yml").read_text("utf-8"))
        if any("kquota_agent_mode" in task.get("vars", {}) for task in play.get("tasks", []))
    ]
    for task in play["tasks"]:
        if file := task.get("ansible.builtin.import_tasks"):
            task["ansible.builtin.import_tasks"] = str(PLAYBOOKS / file)
    file = tmp_path / "agents.yml"
    file.write_text(json.dumps([{**play, "become": False, "gather_facts": False}]))
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    host = {"kquota_agent_config_file": str(tmp_path / "agent.yml")}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": {"a": host}, "vars": local}}))
    said = run_playbook(tmp_path, file, {}, f"--tags={tag}", inventory=str(inventory))
    assert "changed=0" in said.rsplit("PLAY RECAP", 1)[1]


@pytest.mark.parametrize(("role", "tag"), PARTS)
def test_a_part_of_a_role_includes_its_facts(role: str, tag: str, tmp_path: Path) -> None:
    tasks = [{"ansible.builtin.import_role": {"name": role}}]
    listed = run_play(tmp_path, tasks, {}, f"--tags={tag}", "--list-tasks")
    for name in PARTS[role, tag]:
        assert f"{role} : {name}" in listed
