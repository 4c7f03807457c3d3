"""Which versions of Kafka the preflight accepts, by the jars of a broker, and which of Ansible."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.modules.kquota_node import look_for_plug_in
from testbed.loopback.runtime import ensure_kafka_runtime
from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY


class Module:
    """As Ansible's: runs programs."""

    params: Mapping[str, Any] = {"host": "broker-1"}

    def run_command(self, command: list[str], **_: object) -> tuple[int, str, str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


def look_at_vendor(folder: Path, vendors: str, kafka: str) -> tuple[str, list[str]]:
    """Look at all jars of a Kafka, under the names that a vendor gives them."""
    libs = folder / "libs"
    libs.mkdir()
    for jar in ensure_kafka_runtime(kafka).jars.iterdir():
        (libs / jar.name.replace(f"-{kafka}.jar", f"-{vendors}.jar")).symlink_to(jar)
    needs = {"kafka_home": str(folder), "kafka_libs": [str(libs), str(folder / "none")], "as_broker": ["env"]}
    found, problems = look_for_plug_in(Module(), {**needs, "java": shutil.which("java")})
    return found["kafka_version"], problems


@pytest.mark.parametrize(
    ("vendors", "kafka", "line"),
    [pytest.param("8.0.0-ccs", "4.0.2", "4.0", marks=pytest.mark.long), ("8.1.0-ccs", "4.1.2", "4.1")],
)
def test_the_version_of_a_vendor_is_what_the_jars_say(
    vendors: str, kafka: str, line: str, tmp_path: Path
) -> None:
    assert look_at_vendor(tmp_path, vendors, kafka) == (line, [])


def test_a_vendor_s_version_of_an_unsupported_kafka_is_refused(tmp_path: Path) -> None:
    _, (problem,) = look_at_vendor(tmp_path, "7.9.2-ccs", "3.9.2")
    assert "(kafka-clients-7.9.2-ccs.jar) is 7.9.2, but the plug-in supports" in problem


def test_the_role_refuses_what_is_not_supported_with_every_other_problem_and_keeps_the_version(
    tmp_path: Path,
) -> None:
    (tmp_path / "share/java/kafka").mkdir(parents=True)
    jar = tmp_path / "share/java/kafka/kafka-clients-3.9.2.jar"
    jar.touch()
    (tmp_path / "server.properties").write_text("node.id=x\n")
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\necho LoadState=loaded\n")
    systemctl.chmod(0o755)
    variables = {
        "kquota_callback_server_properties": str(tmp_path / "server.properties"),
        "kquota_callback_kafka_home": str(tmp_path),
        "kquota_callback_java": shutil.which("java"),
        "kquota_callback_broker_user": "root",
        "kquota_callback_broker_group": "root",
        "kquota_callback_agent_principals": ["User:agent"],
        "kquota_callback_broker_principals": ["User:broker"],
        "kquota_callback_install_method": "jar",
        "kquota_callback_quota_groups": [{"name": "of none"}],
    }
    role = {"name": "kquota_callback", "tasks_from": "preflight", "public": True}
    tasks = [
        {"ansible.builtin.include_role": role},
        {"ansible.builtin.assert": {"that": "kquota_callback_kafka_version == '4.4.0'"}},
    ]
    play = [{"environment": {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, "block": tasks}]
    with pytest.raises(PlayFailed) as failed:
        run_play(tmp_path, play, variables)
    said = " ".join(str(failed.value).split())
    assert (
        "(kafka-clients-3.9.2.jar) is 3.9.2, but the plug-in supports 4.0 to 4.4: set kquota_kafka_home"
        in said
    )
    assert "('x') must be a number" in said
    assert "kquota_callback_quota_groups: the name 'of none' is invalid" in said.replace("''", "'")
    jar.rename(jar.with_name("kafka-clients-4.4.0.jar"))
    (tmp_path / "server.properties").write_text("node.id=1\n")
    run_play(tmp_path, play, {**variables, "kquota_callback_quota_groups": []})


@pytest.mark.parametrize(
    ("version", "is_accepted"),
    [
        *((version, False) for version in ("2.14.18", "2.16.13", "2.17.14", "2.18.0", "2.18.0rc1")),
        *((version, True) for version in ("2.16.14", "2.18.1", "2.19.14", "2.20.3")),
    ],
)
def test_plays_end_before_a_release_that_runs_templates_of_hosts_reads_them(
    version: str, is_accepted: bool, tmp_path: Path
) -> None:
    play = yaml.safe_load((REPOSITORY / "playbooks/reachable.yml").read_text("utf-8"))[0]
    check = play["tasks"][0]
    assert not play["gather_facts"]
    of_version = json.loads(json.dumps(check).replace("ansible_version.full", f"'{version}'"))
    if is_accepted:
        run_play(tmp_path, [of_version], {})
    else:
        with pytest.raises(PlayFailed, match=rf"ansible-core {version} runs templates"):
            run_play(tmp_path, [of_version], {})
