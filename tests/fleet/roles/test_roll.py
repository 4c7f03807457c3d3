"""The order in which nodes are restarted, by the plays as they are; what happens to each node is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.fleet.roles.plays import PROGRAMS, run_playbook
from tests.unit.repository.tree import REPOSITORY

PLAYS = REPOSITORY / "playbooks/roll_plug_in.yml"
NODES = {"a": "1", "b": "2", "c": "3"}


def roll(active: str) -> list[dict[str, Any]]:
    """The plays, while that node is the active controller; instead of being rolled, nodes say their names."""
    first, *others = yaml.safe_load(PLAYS.read_text("utf-8"))
    asks = ("ansible.builtin.include_role", "ansible.builtin.include_tasks")
    first["tasks"] = [task for task in first["tasks"] if not any(name in task for name in asks)]
    answer = {"ansible.builtin.set_fact": {"kquota_active_controller_id": NODES[active]}}
    first["tasks"].insert(0, answer)
    for play in others:
        for task in play["tasks"]:
            assert task.pop("ansible.builtin.include_tasks") == "tasks/roll_node.yml"
            task["ansible.builtin.debug"] = {"msg": "rolled {{ inventory_hostname }}"}
    return [{**play, "become": False} for play in (first, *others)]


def test_the_active_controller_comes_last_at_each_of_two_rolls_in_one_run(tmp_path: Path) -> None:
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    hosts = {name: {"kquota_callback_node_id": number} for name, number in NODES.items()}
    inventory = tmp_path / "hosts.yml"
    groups = {"kafka_brokers": {"hosts": hosts, "vars": local}, "kafka_controllers": {"hosts": {}}}
    inventory.write_text(json.dumps(groups))
    playbook = tmp_path / "rolls.yml"
    playbook.write_text(json.dumps([*roll("b"), *roll("a")]))
    said = run_playbook(tmp_path, playbook, {}, inventory=str(inventory))
    rolled = re.findall(r"\"?msg\"?: \"?rolled (\w)", said)
    assert [sorted(rolled[:2]), rolled[2]] == [["a", "c"], "b"]
    assert [sorted(rolled[3:5]), *rolled[5:]] == [["b", "c"], "a"]
