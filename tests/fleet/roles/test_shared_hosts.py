"""One node on each host installs what all nodes of the host use."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.fleet.roles.plays import run_play


def test_one_node_of_each_host_is_chosen_and_hosts_behind_one_address_have_ports(tmp_path: Path) -> None:
    hosts = {
        "a": {"ansible_host": "127.0.0.1", "ansible_port": 2201},
        "b": {"ansible_host": "127.0.0.1", "ansible_port": 2202},
        "b-too": {"ansible_host": "127.0.0.1", "ansible_port": 2202},
        "c": {},
        "d": {"ansible_host": "c", "ansible_port": 22},
    }
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    tasks = []
    for role in ("kquota_agent", "kquota_callback"):
        entry = {"name": role, "tasks_from": "facts_hosts"}
        tasks.append({"ansible.builtin.include_role": entry})
        shown = f"CHOSEN {{{{ {role}_first_nodes | join(' ') }}}}."
        tasks.append({"ansible.builtin.debug": {"msg": shown}, "run_once": True})
    said = run_play(tmp_path, tasks, {}, inventory=str(tmp_path / "hosts.yml"))
    assert re.findall(r"CHOSEN ([^.]*)[.]", said) == ["a b c", "a b c"]
