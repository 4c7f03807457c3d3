"""The agent's access to the broker's files by the role: by ACLs for its user, or by the broker's group."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.roles.plays import run_play
from tests.fleet.roles.test_secrets import KNOWN, ROLE, named

ASKED = named("configure.yml", "Get the files that the agent cannot read")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that all users can search."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def rendered(folder: Path, variables: dict[str, object]) -> tuple[list[str], list[str]]:
    """The settings of the unit's drop-in, and the command that asks what the agent can't read."""
    drop_in = {"src": str(ROLE / "templates/fleet.conf.j2"), "dest": f"{folder}/drop-in"}
    asks = {"content": "{{ {'argv': argv} | to_json }}", "dest": f"{folder}/asks"}
    tasks = [
        KNOWN,
        {"ansible.builtin.template": drop_in},
        {
            "ansible.builtin.copy": asks,
            "vars": {**ASKED["vars"], "argv": ASKED["ansible.builtin.command"]["argv"]},
        },
    ]
    run_play(folder, tasks, variables)
    lines = (folder / "drop-in").read_text("utf-8").splitlines()
    asked: list[str] = json.loads((folder / "asks").read_text("utf-8"))["argv"]
    return [line for line in lines if line and line[0] not in "#["], asked


def test_by_the_group_the_drop_in_is_as_before(tmp_path: Path) -> None:
    settings, asked = rendered(tmp_path, {"kquota_broker_group": "brokers"})
    assert settings == ["Before=kafka.service", "SupplementaryGroups=brokers"]
    assert "--groups=kquota,brokers" in asked


def test_by_acls_the_agent_is_in_no_group_and_gets_access_before_each_start_and_reload(
    tmp_path: Path, place: Path
) -> None:
    file = place / 'a 100% "good" $place/server.properties'
    file.parent.mkdir()
    keys = {name: place / name for name in ("agent.key", "ca.pem", "password")}
    for each in (file, *keys.values()):
        each.touch()
        each.chmod(0o644)
    variables = {
        "kquota_agent_access": "acl",
        "kquota_server_properties": str(file),
        "kquota_kafka": {
            "bootstrap.servers": "a:1",
            "ssl.ca.location": str(keys["ca.pem"]),
            "ssl.key.location": str(keys["agent.key"]),
        },
        "kquota_agent_secret_files": {
            "sasl.password": str(keys["password"]),
            "ssl.key.password": "credential",
        },
        "kquota_agent_node": {"log_dirs": [str(place), f"{place}/closed/log"]},
    }
    settings, asked = rendered(tmp_path, variables)
    before, start, none, again, reload = settings
    assert (before, none) == ("Before=kafka.service", "ExecReload=")
    assert reload == "ExecReload=/bin/sh -c 'kill -HUP $MAINPID'"
    command = start.removeprefix("ExecStartPre=-+")
    assert again == f"ExecReload=-+{command}"
    # As systemd reads it, which has its own signs for specifiers and variables.
    assert shlex.split(command.replace("%%", "%").replace("$$", "$")) == [
        "/usr/bin/kquota",
        "access",
        str(file),
    ]

    # The question itself, to a user that every host has.
    assert asked[:4] == ["setpriv", "--reuid=kquota", "--regid=kquota", "--groups=kquota"]
    ask = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *asked[4:]]
    (place / "closed").mkdir(0o700)
    (place / "closed/log").mkdir()

    def unreadable() -> list[str]:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines()

    assert unreadable() == [f"{place}/closed/log"]
    (place / "closed").chmod(0o711)
    for each in (file, *keys.values()):
        each.chmod(0o640)
    assert set(unreadable()) == {str(file), *map(str, keys.values())}
