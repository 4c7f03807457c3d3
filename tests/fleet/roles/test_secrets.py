"""The role writes the agent's secrets to files and shows none."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kquota.settings import load
from tests.fleet.roles.plays import PROGRAMS, PlayFailed, check_of_problems, run_play
from tests.unit.repository.tree import REPOSITORY

ROLE = REPOSITORY / "roles/kquota_agent"
SASL = str(REPOSITORY / "inventories/sasl")
PASSWORD = "correct-horse-battery-staple"
KNOWN: dict[str, Any] = {
    # Loads the defaults and variables of the role without running it.
    "ansible.builtin.import_role": {"name": "kquota_agent", "tasks_from": "service"},
    "when": False,
}


def named(file: str, part: str) -> dict[str, Any]:
    """The task of the role, possibly in a block, whose name contains `part`."""
    tasks = yaml.safe_load((ROLE / "tasks" / file).read_text("utf-8"))
    (found,) = [task for each in tasks for task in each.get("block", [each]) if part in task["name"]]
    assert isinstance(found, dict)
    return found


def test_a_secret_becomes_a_file_and_a_credential_stays_where_it_is(tmp_path: Path) -> None:
    secrets = named("configure.yml", "Write the secrets")
    secrets["ansible.builtin.copy"] |= {"owner": "root", "group": "root"}  # there is no group kquota here
    templates = [
        {
            "ansible.builtin.template": {
                "src": str(ROLE / "templates" / f"{name}.j2"),
                "dest": f"{tmp_path}/{name}",
            }
        }
        for name in ("agent.yml", "fleet.conf")
    ]
    variables = {
        "kquota_kafka": {"bootstrap.servers": "a:1", "sasl.username": "kquota-agent"},
        "kquota_kafka_secrets": {"sasl.password": PASSWORD},
        "kquota_agent_secrets_dir": str(tmp_path),
        "kquota_agent_credentials": {"key-password": "/etc/kafka/agent key.password"},
        "kquota_agent_secret_files": {"ssl.key.password": "key-password"},
    }
    said = run_play(tmp_path, [KNOWN, secrets, *templates], variables, "--diff", "-vvv")
    file = tmp_path / "sasl.password"
    assert file.read_text("utf-8") == PASSWORD
    assert file.stat().st_mode & 0o777 == 0o640
    configuration, unit = (tmp_path / name for name in ("agent.yml", "fleet.conf"))
    assert "LoadCredential=key-password:/etc/kafka/agent key.password" in unit.read_text("utf-8").splitlines()
    for where in (said, configuration.read_text("utf-8"), unit.read_text("utf-8")):
        assert PASSWORD not in where

    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "key-password").write_text("another")
    (credentials / "key-password").chmod(0o400)
    read = load(configuration, {"CREDENTIALS_DIRECTORY": str(credentials)}).librdkafka()
    assert (read["sasl.password"], read["ssl.key.password"]) == (PASSWORD, "another")


def encrypted(password_file: Path, value: str) -> str:
    """The value as ansible-vault writes it for YAML."""
    command = [PROGRAMS / "ansible-vault", "encrypt_string", "--vault-password-file", password_file]
    done = subprocess.run([*command, value], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    return done.stdout


def test_what_the_vault_has_encrypted_and_what_looks_like_something_else_arrive_as_they_are(
    tmp_path: Path,
) -> None:
    vault, inventory = tmp_path / "vault", tmp_path / "given.yml"
    vault.write_text("a password of the vault\n")
    name = encrypted(vault, "kquota-agent")
    passwords = {
        "sasl.password": encrypted(vault, " a leading space"),
        "ssl.key.password": '" 0x1F"\n',
        "ssl.keystore.password": "'[1, 2]'\n",
    }
    inventory.write_text(
        f"kquota_kafka:\n  bootstrap.servers: a:1\n  sasl.username: {name}"
        "kquota_kafka_secrets:\n" + "".join(f"  {key}: {value}" for key, value in passwords.items())
    )
    secrets = named("configure.yml", "Write the secrets")
    secrets["ansible.builtin.copy"] |= {"owner": "root", "group": "root"}  # there is no group kquota here
    template = {"src": str(ROLE / "templates/agent.yml.j2"), "dest": f"{tmp_path}/agent.yml"}
    run_play(
        tmp_path,
        [KNOWN, secrets, {"ansible.builtin.template": template}],
        {"kquota_agent_secrets_dir": str(tmp_path)},
        *("-e", f"@{inventory}", "--vault-password-file", str(vault)),
    )
    assert "kquota-agent" in (tmp_path / "agent.yml").read_text("utf-8")
    read = load(tmp_path / "agent.yml", {}).librdkafka()
    assert read["sasl.username"] == "kquota-agent"
    assert read["sasl.password"] == " a leading space"
    assert read["ssl.key.password"] == " 0x1F"
    assert read["ssl.keystore.password"] == "[1, 2]"


def test_a_configuration_with_credentials_is_checked_by_a_unit_that_gets_them(tmp_path: Path) -> None:
    write = {
        "ansible.builtin.copy": {
            "content": "{{ kquota_agent_validate_command }}",
            "dest": f"{tmp_path}/check",
        }
    }
    run_play(tmp_path, [KNOWN, write], {})
    plain = ["kquota", "config", "check", "--config", "FILE"]
    assert shlex.split((tmp_path / "check").read_text("utf-8") % "FILE") == plain
    given = {"kquota_agent_credentials": {"kafka-password": "/etc/kafka/a password"}}
    run_play(tmp_path, [KNOWN, write], given)
    unit, *words = shlex.split((tmp_path / "check").read_text("utf-8") % "FILE")
    assert unit == "systemd-run"
    assert words[-6:] == ["--property=LoadCredential=kafka-password:/etc/kafka/a password", *plain]


@pytest.mark.parametrize(
    "variables",
    [
        {"kquota_kafka_secrets": {}},
        {"kquota_kafka_secrets": {}, "kquota_agent_secret_files": {"sasl.password": "no-such-credential"}},
    ],
)
def test_a_login_without_a_password_is_refused(variables: dict[str, object], tmp_path: Path) -> None:
    tasks = check_of_problems("kquota_agent", "preflight_host")
    now = "{{ kquota_agent_control_clock | float }}"
    node = {"clock": {"control": now, "node": now}, "problems": []}
    given = {"kquota_agent_node": node, "ansible_facts": {"service_mgr": "systemd"}}
    run_play(tmp_path, tasks, {**given, "vault_kquota_agent_password": PASSWORD}, inventory=SASL)
    with pytest.raises(PlayFailed, match=r"sasl_ssl\s+needs\s+sasl\.username"):
        run_play(tmp_path, tasks, {**given, **variables}, inventory=SASL)
