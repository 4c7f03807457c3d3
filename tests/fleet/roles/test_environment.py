"""The role keeps the environment of a broker's unit and adds its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from plugins.modules.kquota_node import look_at_unit
from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

JAR = "/jar"
OURS = "/etc/kquota-callback/log4j2.yaml"
KAFKAS = "/opt/kafka/config/log4j2.yaml"
FLAGS = "-Dother=1 -Dlog4j2.configurationFile=/own.yaml -Dlog4j2.contextSelector=some.Selector"
# By name: the unit's environment, its environment files, and the resulting class path and logging options.
CASES = {
    "nothing": ("", [], JAR, f"-Dlog4j2.configurationFile={KAFKAS},{OURS}"),
    "options": (
        f'KAFKA_HEAP_OPTS=-Xmx1g "KAFKA_LOG4J_OPTS={FLAGS}" CLASSPATH=/one/*',
        [],
        f"/one/*:{JAR}",
        FLAGS.replace("/own.yaml", f"/own.yaml,{OURS}"),
    ),
    "files": (
        "CLASSPATH=/unit",
        [
            "; CLASSPATH=/not/this\n# -Dlog4j2.configurationFile=/nor/this\nCLASSPATH='/first'\n",
            f'CLASSPATH="/second"\n  # CLASSPATH=/commented\nKAFKA_LOG4J_OPTS="{FLAGS}"\n',
        ],
        f"/second:{JAR}",
        FLAGS.replace("/own.yaml", f"/own.yaml,{OURS}"),
    ),
    "unquoted": ("", [f"KAFKA_LOG4J_OPTS={FLAGS}\n"], JAR, FLAGS.replace("/own.yaml", f"/own.yaml,{OURS}")),
    "continued": (
        "",
        [
            'CLASSPATH="/one/*:\\\n/two/*:\\\n#/three"\n'
            "KAFKA_LOG4J_OPTS=\\\n  -Dother=1 \\\n-Dlog4j2.configurationFile=/own.yaml \\\n"
            "-Dlog4j2.contextSelector=some.Selector\n# CLASSPATH=/no\\\n",
        ],
        f"/one/*:/two/*:#/three:{JAR}",
        FLAGS.replace("/own.yaml", f"/own.yaml,{OURS}"),
    ),
    "escaped": (
        "",
        [
            'CLASSPATH="/a\\"b\\\\c\\$d`"\n',
            "KAFKA_LOG4J_OPTS=-Da=\\$HOME\\\\ -Dlog4j2.configurationFile=/own.yaml\n",
        ],
        f'/a"b\\c$d`:{JAR}',
        f"-Da=$HOME\\ -Dlog4j2.configurationFile=/own.yaml,{OURS}",
    ),
    "literal": (
        "",
        ["CLASSPATH='/a$b\\c'\n"],
        f"/a$b\\c:{JAR}",
        f"-Dlog4j2.configurationFile={KAFKAS},{OURS}",
    ),
    "another-way": ("", ["KAFKA_LOG4J_OPTS=-Dlog4j.configuration=file:/old.properties\n"], JAR, None),
}


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the environment file that the role writes in each case."""
    folder = tmp_path_factory.mktemp("environments")
    (folder / "server.properties").write_text("node.id=1\n")
    given = {
        name: {
            "unit": look_at_unit(
                f"LoadState=loaded\nEnvironment={unit}\nProtectSystem=no", files, None, 0, b""
            )
        }
        for name, (unit, files, _, _) in CASES.items()
    }
    variables = {
        "given": given,
        "kquota_callback_unit": "{{ given[inventory_hostname].unit }}",
        "kquota_callback_server_properties": str(folder / "server.properties"),
        "kquota_callback_agent_principals": ["User:CN=agent"],
        "kquota_callback_broker_principals": ["User:CN=broker"],
        "kquota_callback_jar": JAR,
    }
    template = REPOSITORY / "roles/kquota_callback/templates/broker.env.j2"
    written = {"src": str(template), "dest": str(folder / "{{ inventory_hostname }}")}
    tasks = [
        {
            "ansible.builtin.include_role": {
                "name": "kquota_callback",
                "tasks_from": "facts_properties",
                "public": True,
            }
        },
        {"ansible.builtin.template": written},
    ]
    run_play(folder, tasks, variables, inventory=",".join(CASES))
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_unit_s_environment_is_kept_and_the_role_s_is_added(environments: Path, name: str) -> None:
    _, _, class_path, logging = CASES[name]
    file = environments / name
    # As kafka-storage.sh gets it; systemd takes the same quotes and escapes.
    read = subprocess.run(
        ["env", "-i", "sh", "-c", 'set -a; . "$1"; env -0', "sh", file],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = dict(line.split("=", 1) for line in read.stdout.split("\0") if line)
    assert found["CLASSPATH"] == class_path
    assert found.get("KAFKA_LOG4J_OPTS") == logging
    assert re.fullmatch("[0-9a-f]{16}", found["KQUOTA_BROKER_CONFIGURATION"])


def test_no_drop_in_names_an_environment_file_that_could_not_be_written(tmp_path: Path) -> None:
    drop_in = tmp_path / "zz-kquota.conf"
    tasks = [
        {
            "ansible.builtin.include_role": {
                "name": "kquota_callback",
                "tasks_from": part,
                "public": True,
            }
        }
        for part in ("facts_properties", "configure")
    ]
    (tmp_path / "server.properties").write_text("node.id=1\n")
    variables = {
        "kquota_callback_unit": look_at_unit(
            "LoadState=loaded\nEnvironment=\nProtectSystem=no", [], None, 0, b""
        ),
        "kquota_callback_server_properties": str(tmp_path / "server.properties"),
        "kquota_callback_agent_principals": ["User:CN=agent"],
        "kquota_callback_broker_principals": ["User:CN=broker"],
        "kquota_callback_jar": JAR,
        "kquota_callback_environment_file": str(tmp_path / "none/broker.env"),
        "kquota_callback_drop_in": str(drop_in),
    }
    with pytest.raises(PlayFailed, match=r"none/broker\.env|Destination directory \S*none"):
        run_play(tmp_path, tasks, variables)
    # With it, the broker would not start again.
    assert not drop_in.exists()
