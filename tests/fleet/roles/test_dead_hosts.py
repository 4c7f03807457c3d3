"""Plays while the first host, where Kafka's tools should run, is dead and the second broker does not answer.

Hosts are this machine, with fakes of their commands that record what they were asked.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_play, run_playbook
from tests.unit.repository.tree import REPOSITORY

DEAD = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
# Nodes run with the plug-in until they are restarted.
SYSTEMCTL = """for unit; do :; done
case "$*" in
    show*)
        echo LoadState=loaded; echo ActiveState=active
        [ -e "$RESTARTED/$unit" ] || echo "MainPID=$RUNNING" ;;
    restart*) touch "$RESTARTED/$unit" ;;
esac"""
VOTERS = "\n".join(f"{node} AAAA 100 0 1000 1000 {role}" for node, role in ((3, "Leader"), (8, "Follower")))
# The partition has a replica on the dead broker, and needs one in-sync replica.
TOPICS = """Topic: t\tTopicId: q\tPartitionCount: 1\tReplicationFactor: 3\tConfigs:
\tTopic: t\tPartition: 0\tLeader: 2\tReplicas: 1,2,3\tIsr: 2,3\tElr: \tLastKnownElr: """
ANSWERS = {
    "kafka-configs.sh": 'case "$*" in *entity-default) echo "  kquota.mode=null sensitive=true" ;; esac',
    "kafka-metadata-quorum.sh": f'case "$*" in *status) echo "LeaderId:   3" ;; *) echo "{VOTERS}" ;; esac',
    "kafka-topics.sh": f"echo '{TOPICS}'",
}
Play = Callable[..., str]


def program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A file with each call of Kafka's tools: the host and the arguments."""
    return tmp_path / "asked"


@pytest.fixture
def running() -> Iterator[str]:
    """The id of a process that was started with the plug-in."""
    sleep = shutil.which("sleep")
    assert sleep
    with subprocess.Popen([sleep, "600"], env={"KQUOTA_BROKER_CONFIGURATION": "0f"}) as process:
        yield str(process.pid)
        process.kill()


@pytest.fixture
def play(tmp_path: Path, asked: Path, running: str, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Runs a playbook for three brokers."""
    program(tmp_path / "systemctl", SYSTEMCTL)
    hosts: dict[str, dict[str, object]] = {}
    for number, name in enumerate("abc", start=1):
        for tool, answer in ANSWERS.items():
            ends = "echo no answer >&2; exit 1" if name == "b" else answer
            program(tmp_path / name / "bin" / tool, f'echo {name} {tool} "$@" >>{asked}\n{ends}')
        (tmp_path / name / "server.properties").write_text(
            f"node.id={number}\nprocess.roles={'broker,controller' if name == 'c' else 'broker'}\n"
        )
        hosts[name] = {
            "kquota_kafka_home": str(tmp_path / name),
            "kquota_broker_unit": f"kafka@{name}.service",
            "kquota_server_properties": str(tmp_path / name / "server.properties"),
            **(DEAD if name == "a" else {"ansible_connection": "local"}),
        }
    inventory = tmp_path / "hosts.yml"
    local = {"ansible_python_interpreter": str(PROGRAMS / "python"), "kquota_tools_host": "a"}
    groups = {"kafka_brokers": {"hosts": hosts, "vars": local}, "kafka_controllers": {"hosts": {}}}
    inventory.write_text(json.dumps(groups))
    monkeypatch.setenv("RESTARTED", str(tmp_path))
    monkeypatch.setenv("RUNNING", running)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def run(name: str, **given: object) -> str:
        variables = {"ansible_become": False, **given}
        playbook = REPOSITORY / f"playbooks/{name}.yml"
        return run_playbook(tmp_path, playbook, variables, inventory=str(inventory))

    return run


@pytest.mark.accepts("G18")
@pytest.mark.parametrize(
    ("name", "given"),
    [("set_mode", {"kquota_mode": "observe"}), pytest.param("rollback", {}, marks=pytest.mark.long)],
)
def test_the_cluster_s_switch_comes_first_from_a_host_that_can_and_the_dead_one_is_named(
    name: str, given: dict[str, str], play: Play, asked: Path
) -> None:
    with pytest.raises(PlayFailed) as failed:
        play(name, **given)
    said, recap = str(failed.value).rsplit("PLAY RECAP", 1)
    calls = asked.read_text("utf-8").splitlines()
    configs = [line.split(" kafka-configs.sh ") for line in calls if "-configs" in line]
    assert [host for host, _ in configs[:3]] == ["b", "c", "c"]
    assert "--describe" in configs[1][1]
    assert configs[2][1].endswith("--entity-default --delete-config kquota.mode")
    changed = said.index("TASK [Delete kquota.mode of all brokers]")
    assert changed < said.index("TASK [Set the mode of the agent]")
    last = " ".join(said[said.index("TASK [Check that the run is complete]") :].replace("\\n", "\n").split())
    assert "was not completed on 1 of 3 hosts: a: it could not be reached" in last
    assert "kquota.mode of all brokers was not deleted" not in last
    done = {line.split()[0]: line for line in recap.splitlines() if "unreachable=" in line}
    assert "unreachable=1" in done["a"]
    if name == "rollback":
        assert changed < said.index("TASK [Remove the plug-in]")
        # The gate lets both restart, the active controller last.
        restarted = [asked.parent / f"kafka@{host}.service" for host in "bc"]
        assert restarted[0].stat().st_mtime_ns < restarted[1].stat().st_mtime_ns
        assert sum(" kafka-topics.sh " in call for call in calls) == 4
        assert sum("entity-name 2" in line or "entity-name 3" in line for _, line in configs) == 2


@pytest.mark.accepts("G18")
def test_enforcing_needs_every_host_and_changes_nothing_without(play: Play, asked: Path) -> None:
    with pytest.raises(PlayFailed, match=r"fatal: \[a\]: UNREACHABLE"):
        play("set_mode", kquota_mode="enforce")
    assert not asked.exists()


@pytest.mark.accepts("G18")
@pytest.mark.parametrize(
    ("dead", "closed", "failed"),
    [(1, 1, 0), *(pytest.param(*case, marks=pytest.mark.long) for case in ((1, 2, 1), (0, 1, 1)))],
)
def test_brokers_of_dead_hosts_need_not_accept_the_connections_of_others(
    tmp_path: Path, dead: int, closed: int, failed: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        ports = [*range(1, 1 + closed), broker.getsockname()[1]]
        servers = [f"127.0.0.1:{port}" for port in ports]
        variables = {"kquota_agent_kafka": {"bootstrap.servers": ",".join(servers)}}
        connect = {"name": "kquota_agent", "tasks_from": "preflight_connections"}
        inventory = tmp_path / "hosts.yml"
        inventory.write_text(json.dumps({"all": {"hosts": {"b": {}} | ({"a": DEAD} if dead else {})}}))
        tasks = [{"ansible.builtin.ping": {}}, {"ansible.builtin.include_role": connect}]
        try:
            said = run_play(tmp_path, tasks, variables, inventory=str(inventory))
        except PlayFailed as error:
            said = str(error)
    done = {line.split()[0]: line for line in said.rsplit("PLAY RECAP", 1)[1].splitlines() if "ok=" in line}
    assert f"failed={failed}" in done["b"], said
    assert not dead or "unreachable=1" in done["a"]
