"""Root runs no file of Kafka that another user can write, and an administrator's tools run on one host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.fleet import test_judge_restart as judge
from tests.unit.repository.tree import REPOSITORY

TOPIC = yaml.safe_load((REPOSITORY / "roles/kquota_topic/vars/main.yml").read_text("utf-8"))
CALLBACK = yaml.safe_load((REPOSITORY / "roles/kquota_callback/vars/main.yml").read_text("utf-8"))
BROKER, GROUP = "nobody", "nogroup"
TOOL = '#!/bin/sh\nid -un; echo "$KAFKA_HEAP_OPTS $*"\n'


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of Kafka that is root's, as are the directories above it."""
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o755)
    for name in ("bin", "libs", "config"):
        (place / "kafka" / name).mkdir(parents=True)
    (place / "kafka/libs/kafka.jar").touch()
    (place / "kafka/bin/kafka-topics.sh").write_text(TOOL)
    (place / "kafka/bin/kafka-topics.sh").chmod(0o755)
    yield place / "kafka"
    shutil.rmtree(place)


def run(home: Path, configuration: str = "") -> subprocess.CompletedProcess[str]:
    """Run the tool as the plays do: as root, by the script of the role."""
    command = ["sh", "-c", TOPIC["kquota_topic_tool_script"], "sh", home, BROKER, GROUP, configuration]
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    return subprocess.run(
        [*as_root, *command, "kafka-topics.sh", "--list", "a b"], capture_output=True, text=True, check=False
    )


def give(path: Path) -> None:
    subprocess.run(["chown", "-h", BROKER, path], check=True)


def test_root_runs_tools_that_only_root_can_write(home: Path) -> None:
    done = run(home)
    assert (done.returncode, done.stdout) == (0, "root\n-Xmx256m --list a b\n"), done.stderr


@pytest.mark.parametrize(
    "what", ["bin/kafka-topics.sh", "bin", "libs/kafka.jar", "libs", "config", ".", ".."]
)
@pytest.mark.parametrize("way", [give, lambda path: path.chmod(0o777)], ids=["owner", "mode"])
def test_the_broker_s_user_runs_tools_that_others_can_write(home: Path, what: str, way: Any) -> None:
    way(home / what)
    done = run(home)
    assert (done.returncode, done.stdout) == (0, f"{BROKER}\n-Xmx256m --list a b\n"), done.stderr


def test_a_link_to_files_that_others_can_write_does_not_deceive(home: Path) -> None:
    (home / "libs").rename(home.parent / "elsewhere")
    (home / "libs").symlink_to(home.parent / "elsewhere")
    assert run(home).stdout.startswith("root\n")
    give(home.parent / "elsewhere/kafka.jar")
    assert run(home).stdout.startswith(f"{BROKER}\n")
    link = home.parent / "current"
    link.symlink_to(home)
    assert run(link).stdout.startswith(f"{BROKER}\n")


def test_packages_have_the_tools_without_sh_and_the_jars_below_share(home: Path) -> None:
    (home / "bin/kafka-topics.sh").rename(home / "bin/kafka-topics")
    (home / "libs/kafka.jar").unlink()
    (home / "libs").rmdir()
    jar = home / "share/java/kafka/kafka.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    # Of another package, which the tools do not load.
    (home / "bin/other").touch()
    give(home / "bin/other")
    assert run(home).stdout == "root\n-Xmx256m --list a b\n"
    give(jar)
    assert run(home).stdout == f"{BROKER}\n-Xmx256m --list a b\n"
    jar.unlink()
    give(home / "bin/kafka-topics")
    assert run(home).stdout == f"{BROKER}\n-Xmx256m --list a b\n"


def test_an_administrator_s_file_that_the_broker_s_user_cannot_read_is_named(home: Path) -> None:
    secret = home.parent / "admin.properties"
    secret.touch(0o600)
    assert run(home, str(secret)).stdout.startswith("root\n")
    give(home / "libs/kafka.jar")
    done = run(home, str(secret))
    assert (done.returncode, done.stdout) == (77, "")
    assert f"{home}/libs/kafka.jar and {BROKER} cannot read {secret}" in done.stderr
    secret.chmod(0o644)
    assert run(home, str(secret)).stdout.startswith(f"{BROKER}\n")


def test_the_plug_in_s_check_loads_kafka_s_jars_as_the_broker_s_user() -> None:
    shell, option, script, name, *_ = CALLBACK["kquota_callback_as_broker"]
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    done = subprocess.run(
        [*as_root, shell, option, script, name, BROKER, GROUP, "id", "-un"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{BROKER}\n"
    assert "kquota_callback_as_broker" in CALLBACK["kquota_callback_check_command"]
    for variable in ("kquota_callback_validate_command", "kquota_callback_validate_exported_command"):
        assert "+ kquota_callback_check_command" in CALLBACK[variable]


def commands() -> list[tuple[str, dict[str, Any], str]]:
    """Every task of plays and roles that runs a command: its file, the task, and the task's text."""
    found = []
    for file in [*REPOSITORY.glob("playbooks/**/*.yml"), *REPOSITORY.glob("roles/*/tasks/*.yml")]:
        waiting = list(yaml.safe_load(file.read_text("utf-8")))
        while waiting:
            task = waiting.pop()
            for part in ("tasks", "block", "rescue", "always"):
                waiting += task.get(part, [])
            for module in ("ansible.builtin.command", "ansible.builtin.shell"):
                if module in task:  # its variables may hold the command
                    text = str(task[module]) + str(task.get("vars", ""))
                    found.append((str(file.relative_to(REPOSITORY)), task, text))
    return found


def test_tools_with_an_administrator_s_rights_run_on_one_host() -> None:
    tools = [
        (file, task["name"], task.get("delegate_to"))
        for file, task, text in commands()
        if "kquota_topic_tool" in text or "kquota_topic_acl_tool" in text
    ]
    assert {file for file, _, _ in tools} > {
        "playbooks/tasks/judge_restart.yml",
        "playbooks/tasks/observe_brokers_from.yml",
        "roles/kquota_topic/tasks/remove.yml",
    }
    assert [each for each in tools if each[2] != "{{ kquota_topic_host }}"] == []


def test_nothing_runs_kafka_s_files_in_another_way() -> None:
    assert [
        (file, task["name"])
        for file, task, text in commands()
        if any(part in text for part in ("kafka_home", "/opt/kafka", "admin_config", "kafka-"))
        if "kquota_topic_tool" not in text and "kquota_callback_as_broker" not in text
    ] == []


def ask(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, topics: str, voters: str
) -> tuple[int, str]:
    tools = {"topics": ["sh", "-c", topics], "quorum": ["sh", "-c", voters] if voters else []}
    question = {"phase": "before", "batches": [["3"]], "ill": [], **tools}
    monkeypatch.setattr(sys, "argv", ["judge_restart.py", json.dumps(question)])
    return judge.JUDGE.main(), capfd.readouterr().out


def test_both_tools_are_asked_at_the_same_time_and_a_failure_of_either_is_told(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "topics").write_text("".join(judge.described([1, 3], [1])), "utf-8")
    (tmp_path / "voters").write_text("\n".join(judge.quorum(judge.FOLLOWING)), "utf-8")
    os.mkfifo(tmp_path / "meeting")
    # Each waits for the other one at the pipe.
    topics = f"cat {tmp_path}/topics; echo > {tmp_path}/meeting"
    voters = f"cat {tmp_path}/voters {tmp_path}/meeting"
    assert ask(capfd, monkeypatch, topics, voters) == (0, "")
    assert ask(capfd, monkeypatch, f"cat {tmp_path}/topics", "") == (0, "")
    assert ask(capfd, monkeypatch, f"cat {tmp_path}/topics; exit 3", f"cat {tmp_path}/voters")[0] == 3
    assert ask(capfd, monkeypatch, f"cat {tmp_path}/topics", "exit 4") == (
        4,
        "the controllers are not known\n",
    )
