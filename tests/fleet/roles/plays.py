"""Run plays of the tests on this machine, with the unchanged roles; they change only files."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.unit.repository.tree import REPOSITORY

PROGRAMS = REPOSITORY / ".venv-fleet/bin"
# A node, as far as the plug-in's preflight reads it.
NODE: dict[str, Any] = {
    "properties": {},
    "node_id": "7",
    "ends_in_continuation": False,
    "unit": {"load_state": "loaded", "kafka_units": []},
    "problems": [],
}


class PlayFailed(AssertionError):
    """A play failed; the message is its output."""


def run_play(
    folder: Path,
    tasks: Sequence[Mapping[str, Any]],
    variables: Mapping[str, Any],
    *options: str,
    inventory: str = "localhost,",
) -> str:
    """Run tasks on this machine for all hosts of the inventory; return the output of Ansible.

    Raises:
        PlayFailed: a task failed.
    """
    play = {
        "hosts": "all",
        "connection": "local",
        "gather_facts": False,
        "tasks": tasks,
    }
    file = folder / "play.json"
    file.write_text(json.dumps([play]))
    return run_playbook(folder, file, variables, *options, inventory=inventory)


def run_playbook(
    folder: Path, playbook: Path, variables: Mapping[str, Any], *options: str, inventory: str
) -> str:
    """Run a playbook for the hosts of the inventory, a file or a list; return the output of Ansible.

    Raises:
        PlayFailed: a task failed.
    """
    # By a file, because a command line can be seen by others.
    given = folder / "variables.json"
    given.write_text(
        json.dumps({"ansible_python_interpreter": os.environ["KQUOTA_TEST_PYTHON"], **variables})
    )
    finished = subprocess.run(
        [PROGRAMS / "ansible-playbook", "-i", inventory, playbook, "-e", f"@{given}", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            **os.environ,
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
            "ANSIBLE_ROLES_PATH": str(REPOSITORY / "roles"),
            "ANSIBLE_LOCAL_TEMP": str(folder / "ansible"),
            "ANSIBLE_REMOTE_TEMP": str(folder / "ansible"),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
            "ANSIBLE_NOCOLOR": "1",
            "LC_ALL": "C.UTF-8",
        },
    )
    if finished.returncode:
        raise PlayFailed(finished.stdout + finished.stderr)
    return finished.stdout


def check_of_problems(role: str, file: str) -> list[dict[str, Any]]:
    """The role's check that there is no problem, after its defaults and variables without its tasks."""
    tasks = yaml.safe_load((REPOSITORY / f"roles/{role}/tasks/{file}.yml").read_text("utf-8"))
    load = {"ansible.builtin.import_role": {"name": role, "tasks_from": file}, "when": False}
    return [load, *(task for task in tasks if task["name"] == "Preflight | Check that there is no problem")]


def run_tasks(
    folder: Path, entrances: Sequence[tuple[str, str]], variables: Mapping[str, Any], *options: str
) -> int:
    """Run entry points (role, tasks_from) on localhost; return the number of changed tasks."""
    tasks = [
        {"ansible.builtin.include_role": {"name": role, "tasks_from": part, "public": True}}
        for role, part in entrances
    ]
    recap = run_play(folder, tasks, variables, *options).rsplit("PLAY RECAP", 1)[1]
    return int(recap.split("changed=")[1].split()[0])
