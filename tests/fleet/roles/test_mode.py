"""The mode: plays without one keep it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_play, run_playbook
from tests.unit.repository.tree import REPOSITORY

PLAYBOOKS = REPOSITORY / "playbooks"
MODES = {"a": "enforce", "b": "observe", "c": "enforce"}


def set_mode(folder: Path, variables: Mapping[str, str], *options: str) -> str:
    """Run the play for brokers whose agents have a configuration, except d, which is new."""
    hosts = {}
    for name in [*MODES, "d"]:
        file = folder / f"{name}.yml"
        if name in MODES:
            file.write_text(f"mode: {MODES[name]}\n")
        hosts[name] = {"kquota_agent_config_file": str(file)}
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    inventory = folder / "hosts.yml"
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": hosts, "vars": local}}))
    given = {"ansible_become": False, **variables}
    return run_playbook(folder, PLAYBOOKS / "set_mode.yml", given, *options, inventory=str(inventory))


@pytest.mark.parametrize(
    "variables", [{}, pytest.param({"kquota_mode": ""}, marks=pytest.mark.long)], ids=["not given", "empty"]
)
def test_without_a_mode_nothing_changes_and_the_play_reports_the_modes(
    variables: Mapping[str, str], tmp_path: Path
) -> None:
    said = set_mode(tmp_path, variables)
    assert "enforce: a, c. Agents that observe: b, d." in " ".join(said.split())
    recap = said.rsplit("PLAY RECAP", 1)[1]
    assert recap.count("changed=0") == len(MODES) + 1
    assert {name: yaml.safe_load((tmp_path / f"{name}.yml").read_text())["mode"] for name in MODES} == MODES


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlayFailed, match="kquota_mode is 'enfroce'"):
        set_mode(tmp_path, {"kquota_mode": "enfroce"})


COMMANDS = {
    "systemctl": "echo LoadState=loaded; echo ActiveState=active; echo MainPID=0",
    "kafka/bin/kafka-configs.sh": 'echo "$@" >>"$ASKED"; echo "  kquota.mode=null sensitive=true"',
}


@pytest.mark.parametrize(
    ("options", "changes"),
    [pytest.param((), 1, marks=pytest.mark.long), (("--limit=a",), 0)],
    ids=["all", "one"],
)
def test_a_single_broker_observes_through_its_agent_and_the_setting_of_all_brokers_stays(
    options: Sequence[str], changes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in COMMANDS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    asked = tmp_path / "asked"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(asked))
    (tmp_path / "server.properties").write_text("node.id=1\n")
    given = {
        "kquota_mode": "observe",
        "kquota_kafka_home": str(tmp_path / "kafka"),
        "kquota_server_properties": str(tmp_path / "server.properties"),
    }
    asked.touch()
    set_mode(tmp_path, given, *options)
    lines = asked.read_text("utf-8").splitlines()
    assert sum("--alter" in line for line in lines) == changes
    assert sum("--describe" in line for line in lines) == changes


# The wanted mode, the agent's current mode, and the mode that the rollout sets.
CASES: list[tuple[dict[str, str], str, str]] = [
    ({}, "enforce", "enforce"),
    ({}, "observe", "observe"),
    ({"kquota_mode": ""}, "enforce", "enforce"),
    # The agent enforces only after the plug-in exempts it, at the end of the rollout.
    ({"kquota_mode": "enforce"}, "observe", "observe"),
    ({"kquota_mode": "enforce"}, "enforce", "enforce"),
    ({"kquota_mode": "observe"}, "enforce", "observe"),
]


def test_a_rollout_keeps_the_mode_of_an_agent_unless_it_must_observe(tmp_path: Path) -> None:
    plays = yaml.safe_load((PLAYBOOKS / "rollout.yml").read_text("utf-8"))
    (expression,) = [
        task["vars"]["kquota_agent_mode"]
        for play in plays
        for task in play.get("tasks", [])
        if "kquota_agent_mode" in task.get("vars", {})
    ]
    hosts = {
        f"case-{number}": {**given, "kquota_current_mode": present, "then": then}
        for number, (given, present, then) in enumerate(CASES)
    }
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
    check = {"ansible.builtin.assert": {"that": "mode == then"}, "vars": {"mode": expression}}
    said = run_play(tmp_path, [check], {}, inventory=str(inventory))
    assert said.rsplit("PLAY RECAP", 1)[1].count("ok=1") == len(CASES)


def test_a_mode_that_an_operator_set_for_all_brokers_is_replaced_only_by_force(
    tmp_path: Path,
) -> None:
    tasks = [
        {key: value for key, value in task.items() if key != "run_once"}
        for task in yaml.safe_load((PLAYBOOKS / "tasks/enforce.yml").read_text("utf-8"))
        if "kquota_force_enforce" in str(task)
    ]
    given = {"none": {}, "forced": {"kquota_force_enforce": True}}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": given}}))
    modes = {"kquota_mode": "enforce", "kquota_brokers_mode": "observe"}
    with pytest.raises(PlayFailed) as failed:
        run_play(tmp_path, tasks, modes, inventory=str(inventory))
    said, recap = str(failed.value).rsplit("PLAY RECAP", 1)
    failures = {line.split()[0]: "failed=1" in line for line in recap.splitlines() if "failed=" in line}
    assert failures == {"none": True, "forced": False}
    assert "-e kquota_force_enforce=true" in " ".join(said.split())
