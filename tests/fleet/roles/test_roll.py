"""The order in which the plays change nodes, without the changes of each node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.fleet.roles.plays import PROGRAMS, run_playbook
from tests.unit.repository.tree import REPOSITORY

ROLLBACK = REPOSITORY / "playbooks/rollback.yml"
PLAYS = REPOSITORY / "playbooks/roll_plug_in.yml"
NODES = {"a": "1", "b": "2", "c": "3"}


def roll(active: str) -> list[dict[str, Any]]:
    """The plays with that node as the active controller; nodes print their names instead of changing."""
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


# By node: the state of its unit, and whether it is restored first. systemd keeps restarting the last one.
UNITS = {
    "failed": ("ActiveState=failed\nNRestarts=0\nMainPID=0\nSeconds=", True),
    "about-to-be-started": ("ActiveState=activating\nNRestarts=7\nMainPID=0\nSeconds=", True),
    "runs": ("ActiveState=active\nNRestarts=0\nMainPID=7\nSeconds=     12", False),
    "ran-out-of-memory-once": ("ActiveState=active\nNRestarts=1\nMainPID=7\nSeconds=     12", False),
    "came-back": ("ActiveState=active\nNRestarts=5\nMainPID=7\nSeconds= 86400", False),
    "stopped-on-purpose": ("ActiveState=inactive\nNRestarts=0\nMainPID=0\nSeconds=", False),
    "tried-again": ("ActiveState=active\nNRestarts=7\nMainPID=7\nSeconds=      3", True),
}


def test_a_rollback_begins_with_nodes_that_fail_to_start_even_if_their_state_changes(
    tmp_path: Path,
) -> None:
    first, *_ = yaml.safe_load(ROLLBACK.read_text("utf-8"))
    look, remember, observe, goes_back, _ = first["tasks"]
    assert observe["ansible.builtin.include_tasks"] == "tasks/observe_brokers.yml"
    assert look["ansible.builtin.include_role"]["tasks_from"] == "facts"
    taken_out, started = goes_back["block"]
    assert taken_out["ansible.builtin.include_role"]["tasks_from"] == "remove"
    variables_of_the_role = {
        "ansible.builtin.import_role": {"name": "kquota_callback", "tasks_from": "facts"}
    }
    seen = {"ansible.builtin.set_fact": {"kquota_callback_unit_show": {"stdout": "{{ unit }}"}}}
    # The role gathers the facts again and finds another process.
    later = {"ansible.builtin.set_fact": {"kquota_callback_unit_show": {"stdout": "ActiveState=active"}}}
    said = {"name": started["name"], "ansible.builtin.debug": {"msg": "started {{ inventory_hostname }}"}}
    first["tasks"] = [
        {**variables_of_the_role, "when": False},
        seen,
        remember,
        {**goes_back, "block": [later, said]},
    ]
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    hosts = {name: {"unit": shown} for name, (shown, _) in UNITS.items()}
    inventory = tmp_path / "hosts.yml"
    groups = {"kafka_brokers": {"hosts": hosts, "vars": local}, "kafka_controllers": {"hosts": {}}}
    inventory.write_text(json.dumps(groups))
    playbook = tmp_path / "first.yml"
    playbook.write_text(json.dumps([{**first, "become": False}]))
    said_by_all = run_playbook(tmp_path, playbook, {}, inventory=str(inventory))
    started_again = set(re.findall(r"\"?msg\"?: \"?started ([a-z-]+)", said_by_all))
    assert started_again == {name for name, (_, back) in UNITS.items() if back}
