"""No secret of a run is in the process list of the control host or of a host, which are one machine here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.process_lists import OTHER_SECRETS, secrets_of_scenarios, watched
from tests.fleet.roles.authority import ISSUE, variables_for
from tests.fleet.roles.plays import run_play, run_tasks
from tests.fleet.roles.test_properties import SET, UNSET
from tests.fleet.roles.test_secrets import KNOWN, named
from tests.unit.repository.tree import REPOSITORY

SECRETS = {
    "kquota_tls_ca_passphrase": "a-passphrase-of-the-authority-5d1c",
    "kquota_tls_operator_passphrase": "a-passphrase-of-an-operator-3c9e",
    "sasl.password": "a-password-of-the-agent-77e0",
    "ssl.key.password": "a-password-of-the-agents-key-1b2f",
    "ssl.keystore.password": "a-password-of-the-broker-09aa",
}


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["sh", "-c", "sleep 0.5; exit 0", "sh", "{}"], "secret in cmdline of sh"),
        (["env", "A={}", "setpriv", "--reuid=nobody", "sleep", "0.5"], "secret in environ of user 65534"),
        (["env", "A={}", "sleep", "0.5"], None),
    ],
    ids=["an argument", "a user's environment", "root's environment"],
)
def test_a_planted_secret_is_found(command: list[str], found: str | None) -> None:
    """Root alone can read the last one; `env` itself has it as an argument for a moment."""
    secret = "planted-4c41"
    with watched({"secret": secret}) as end:
        subprocess.run([part.format(secret) for part in command], check=True)
        seen = [each for each in end() if not each.endswith("of env")]
    assert seen == ([found] if found else [])


def test_a_command_that_shows_a_secret_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `make scenario` runs Molecule, which may run now, with secrets of its own."""
    assert "kquota_tls_ca_passphrase" in secrets_of_scenarios()
    (tmp_path / "secret").write_text("planted-9d27")
    (tmp_path / "secrets.yml").write_text("kquota_tls_ca_passphrase: planted-9d27\n")
    monkeypatch.setenv(OTHER_SECRETS, str(tmp_path / "secrets.yml"))
    planted = ["sh", "-c", 'sh -c "sleep 0.5; exit 0" sh "$(cat secret)"']
    watch = [sys.executable, REPOSITORY / "tests/fleet/process_lists.py"]
    shown = subprocess.run([*watch, *planted], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (
        1,
        "process list: kquota_tls_ca_passphrase in cmdline of sh\n",
    )
    calm = [subprocess.run([*watch, "sh", "-c", f"exit {code}"], check=False).returncode for code in (0, 3)]
    assert calm == [0, 3]


def test_no_secret_of_a_play_is_in_a_process_list(tmp_path: Path, plug_in: dict[str, object]) -> None:
    """An authority, certificates, passwords of the agent, and the broker's properties."""
    properties = tmp_path / "server.properties"
    properties.write_text(
        "node.id=1\n"
        f"ssl.key.password={SECRETS['ssl.key.password']}\n"
        f"ssl.keystore.password={SECRETS['ssl.keystore.password']}\n"
    )
    write = named("configure.yml", "Write the secrets")
    write["ansible.builtin.copy"] |= {"owner": "root", "group": "root"}  # there is no group kquota here
    agent: dict[str, Any] = {
        "kquota_kafka_secrets": {name: SECRETS[name] for name in ("sasl.password", "ssl.key.password")},
        "kquota_agent_secrets_dir": str(tmp_path),
    }
    broker = {
        **plug_in,
        "kquota_callback_server_properties": str(properties),
        "kquota_callback_agent_principals": ["User:agent"],
        "kquota_callback_broker_principals": ["User:broker"],
    }
    authority = {
        **variables_for(tmp_path),
        "kquota_tls_ca_passphrase": SECRETS["kquota_tls_ca_passphrase"],
        "kquota_tls_operator_passphrase": SECRETS["kquota_tls_operator_passphrase"],
        "kquota_tls_operators_dir": str(tmp_path / "operators"),
        "kquota_operator": "jane",
    }
    with watched(SECRETS) as end:
        assert run_tasks(tmp_path, ISSUE, authority) > 0
        assert run_tasks(tmp_path, ISSUE, {**authority, "kquota_tls_renew": True}) > 0
        assert run_tasks(tmp_path, (("kquota_tls", "install_operator"),), authority) > 0
        run_play(tmp_path, [KNOWN, write], agent)
        assert run_tasks(tmp_path, (*SET, *UNSET), broker) > 0
        assert end() == []
