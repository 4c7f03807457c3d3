"""The order in which the plays change nodes, without the changes of each node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.modules.kquota_node import look_at_unit
from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_playbook
from tests.unit.repository.tree import REPOSITORY

ROLLBACK = REPOSITORY / "playbooks/rollback.yml"
PLAYS = REPOSITORY / "playbooks/roll_plug_in.yml"
# Of two racks, with a broker that is also a controller (i). By node: rack, roles, and if a restart is due.
NODES = {
    "a": ("east", "broker", True),
    "b": ("west", "broker", True),
    "c": ("east", "broker", True),
    "d": ("east", "broker", False),
    "e": ("west", "broker", True),
    "f": ("east", "broker", True),
    "i": ("east", "broker,controller", True),
    "j": ("west", "controller", True),
}
IDS = {name: str(number) for number, name in enumerate(NODES, start=1)}


def roll(given: dict[str, object], *, due: bool = True) -> list[dict[str, Any]]:
    """The plays, given variables; nodes print their names instead of changing."""
    plays = yaml.safe_load(PLAYS.read_text("utf-8"))
    first, without, others = plays
    assert first["tasks"][0]["ansible.builtin.include_role"]["tasks_from"] == "facts"
    first["tasks"][0] = {
        "ansible.builtin.set_fact": {
            "kquota_callback_running_fingerprint": f"{{{{ 'former' if {due} and due else 'new' }}}}"
        }
    }
    assert first["tasks"][-1].pop("ansible.builtin.include_role")["tasks_from"] == "prepare"
    for play, word in ((first, "prepared"), (without, "changed"), (others, "rolled")):
        task = play["tasks"][-1]
        if play is not first:
            assert task.pop("ansible.builtin.include_tasks").startswith("tasks/")
        task["ansible.builtin.debug"] = {"msg": f"{word} {{{{ ansible_play_batch | join(' ') }}}}"}
        task["run_once"] = True
    for task in (*first["tasks"], *others["tasks"]):
        for kind in ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks"):
            if kind in task:
                task[kind] = str(PLAYS.parent / task[kind])
    return [{**play, "become": False, "vars": given} for play in plays]


class Cluster:
    """Nodes on this machine, and tools of Kafka that describe them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.leader = folder, "i"
        self.topics, self.exit_code = "", 0
        (folder / "files").symlink_to(PLAYS.parent / "files")

    def roll(self, *plays: dict[str, Any], **given: object) -> list[str]:
        """Run plays; return what the nodes have printed."""
        tools = {"topics": self.topics, "metadata-quorum": f"LeaderId:   {IDS[self.leader]}"}
        for tool, answer in tools.items():
            file = self.folder / f"bin/kafka-{tool}.sh"
            file.parent.mkdir(exist_ok=True)
            code = self.exit_code if tool == "topics" else 0
            file.write_text(
                f"#!/bin/sh\necho {tool} >>{self.folder}/asked\ncat <<'END'\n{answer}\nEND\nexit {code}\n"
            )
            file.chmod(0o755)
        hosts = {
            name: {
                "kquota_callback_node": {"node_id": IDS[name], "rack": rack, "votes": "controller" in roles},
                "due": due,
            }
            for name, (rack, roles, due) in NODES.items()
        }
        local = {
            "ansible_connection": "local",
            "ansible_python_interpreter": str(PROGRAMS / "python"),
            "kquota_kafka_home": str(self.folder),
            "kquota_callback_fingerprint": "new",
            "kquota_callback_exports": False,
        }
        inventory = self.folder / "hosts.yml"
        groups = {"kafka_brokers": {"hosts": hosts, "vars": local}, "kafka_controllers": {"hosts": {}}}
        inventory.write_text(json.dumps(groups))
        playbook = self.folder / "rolls.yml"
        playbook.write_text(json.dumps(plays))
        said = run_playbook(self.folder, playbook, given, inventory=str(inventory))
        return re.findall(r"\"?msg\"?: \"?((?:prepared|rolled|changed) [a-j ]+\b)", said)

    def asked(self) -> list[str]:
        file = self.folder / "asked"
        return file.read_text("utf-8").splitlines() if file.exists() else []


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_only_nodes_that_need_a_restart_enter_the_roll_and_the_active_controller_comes_last(
    cluster: Cluster,
) -> None:
    # Two rolls in one run, of which the second removes the plug-in, then one of a fleet that is done, which
    # asks Kafka nothing. All nodes are prepared at the same time, if the plug-in is wanted.
    rolled = cluster.roll(*roll({}), *roll({"kquota_plug_in_wanted": False}), *roll({}, due=False))
    prepared = f"prepared {' '.join(NODES)}"
    once = ["changed d", *(f"rolled {name}" for name in "abcefji")]
    removed = [f"rolled {name}" for name in "abcdefji"]
    assert rolled[:-1] == [prepared, *once, *removed, prepared]
    assert set(rolled[-1].split()) == {*NODES, "changed"}
    assert cluster.asked() == ["metadata-quorum"] * 2


def placed(on: str) -> str:
    """The description of a topic with a partition that has replicas on these nodes and needs two of them."""
    replicas = ",".join(IDS[name] for name in on)
    partition = f"\tTopic: t\tPartition: 0\tLeader: {IDS[on[0]]}\tReplicas: {replicas}\tIsr: {replicas}"
    return f"Topic: t\tConfigs: min.insync.replicas=2\n{partition}"


def test_a_batch_is_of_one_rack_and_controllers_are_restarted_alone(cluster: Cluster) -> None:
    cluster.topics = placed("abd")
    rolled = cluster.roll(*roll({"kquota_roll_batch": 2}))
    assert rolled[1:] == ["changed d", "rolled a c", "rolled f", "rolled b e", "rolled j", "rolled i"]


def test_a_batch_whose_nodes_share_a_partition_that_needs_both_is_refused(cluster: Cluster) -> None:
    # A placement that knows nothing of racks.
    cluster.topics = placed("acb")
    with pytest.raises(PlayFailed) as failed:
        cluster.roll(*roll({"kquota_roll_batch": 2}))
    said = " ".join(str(failed.value).split())
    assert "t-0 would have 1 in-sync replicas without 1, 3, and needs 2" in said
    assert "kquota_roll_batch (2) to a smaller number" in said
    assert "rolled" not in said
    assert "changed d" not in said


# By playbook: the play in batches.
@pytest.mark.parametrize(("name", "play"), [("roll_plug_in", 2), ("upgrade", 2), ("rotate_certificates", 1)])
def test_no_batch_follows_one_in_which_a_host_was_lost(name: str, play: int, tmp_path: Path) -> None:
    """The play's own order, batches and first task; the change of a host needs a connection."""
    batches = yaml.safe_load((REPOSITORY / f"playbooks/{name}.yml").read_text("utf-8"))[play]
    check = batches["tasks"][0]
    check["ansible.builtin.import_tasks"] = str(PLAYS.parent / check["ansible.builtin.import_tasks"])
    changes = {"ansible.builtin.command": f"touch {tmp_path}/changed-{{{{ inventory_hostname }}}}"}
    # k5 was dead from the beginning, where plays go on without; k2 dies once k1 is changed.
    first = yaml.safe_load((REPOSITORY / "playbooks/reachable.yml").read_text("utf-8"))[0]
    plays = [
        {**first, "hosts": "all"},
        {**batches, "hosts": "all", "become": False, "serial": [1, 1, 1, 1], "tasks": [check, changes]},
    ]
    dead = f"{{{{ 'ssh' if '{tmp_path}/changed-k1' is exists else 'local' }}}}"
    nowhere: dict[str, object] = {"ansible_host": "127.0.0.1", "ansible_port": 1}
    python = {"ansible_python_interpreter": str(PROGRAMS / "python"), "ansible_connection": "local"}
    hosts: dict[str, dict[str, object]] = {
        "k1": {},
        "k2": {"ansible_connection": dead, **nowhere},
        "k3": {},
        "k4": {},
        "k5": {"ansible_connection": "ssh", **nowhere},
    }
    inventory, playbook = tmp_path / "hosts.yml", tmp_path / "batches.yml"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": python}}))
    playbook.write_text(json.dumps(plays))
    with pytest.raises(PlayFailed) as failed:
        run_playbook(tmp_path, playbook, {}, inventory=str(inventory))
    assert [path.name for path in tmp_path.glob("changed-*")] == ["changed-k1"]
    assert "k2 could be reached at the beginning" in " ".join(str(failed.value).split())


# By node: the state of its unit, the age of its process in seconds, and whether the node is restored first.
# systemd keeps restarting the last one.
UNITS = {
    "failed": ("ActiveState=failed\nNRestarts=0\nMainPID=0", None, True),
    "about-to-be-started": ("ActiveState=activating\nNRestarts=7\nMainPID=0", None, True),
    "runs": ("ActiveState=active\nNRestarts=0\nMainPID=7", 12, False),
    "ran-out-of-memory-once": ("ActiveState=active\nNRestarts=1\nMainPID=7", 12, False),
    "came-back": ("ActiveState=active\nNRestarts=5\nMainPID=7", 86400, False),
    "stopped-on-purpose": ("ActiveState=inactive\nNRestarts=0\nMainPID=0", None, False),
    "tried-again": ("ActiveState=active\nNRestarts=7\nMainPID=7", 3, True),
}


@pytest.mark.long
def test_a_check_of_the_partitions_that_fails_without_a_word_is_reported(cluster: Cluster) -> None:
    cluster.topics, cluster.exit_code = placed("abd"), 3
    with pytest.raises(PlayFailed) as failed:
        cluster.roll(*roll({"kquota_roll_batch": 2, "kquota_roll_retries": 0}))
    assert "non-zero return code Set kquota_roll_batch" in " ".join(str(failed.value).split())


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
    seen = {"ansible.builtin.set_fact": {"kquota_callback_node": {"unit": "{{ unit }}"}}}
    # The role gathers the facts again and finds another process.
    later = {"ansible.builtin.set_fact": {"kquota_callback_node": {"unit": {"fails_to_start": False}}}}
    said = {"name": started["name"], "ansible.builtin.debug": {"msg": "started {{ inventory_hostname }}"}}
    first["tasks"] = [
        {**variables_of_the_role, "when": False},
        seen,
        remember,
        {**goes_back, "block": [later, said]},
    ]
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    hosts = {
        name: {"unit": look_at_unit(shown, [], seconds, 0, b"")}
        for name, (shown, seconds, _) in UNITS.items()
    }
    inventory = tmp_path / "hosts.yml"
    groups = {"kafka_brokers": {"hosts": hosts, "vars": local}, "kafka_controllers": {"hosts": {}}}
    inventory.write_text(json.dumps(groups))
    playbook = tmp_path / "first.yml"
    playbook.write_text(json.dumps([{**first, "become": False}]))
    said_by_all = run_playbook(tmp_path, playbook, {}, inventory=str(inventory))
    started_again = set(re.findall(r"\"?msg\"?: \"?started ([a-z-]+)", said_by_all))
    assert started_again == {name for name, (*_, back) in UNITS.items() if back}
