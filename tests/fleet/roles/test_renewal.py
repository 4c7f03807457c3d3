"""The timer on the control host: its service renews what is due, and agents take it while they run."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kquota.trust.authorities import AuthorityFile
from kquota.trust.signer import FileSigner, SigningFiles
from tests.fleet.process_lists import watched
from tests.fleet.roles.authority import ISSUE, variables_for
from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_play, run_tasks
from tests.fleet.roles.test_validity import put
from tests.unit.repository.tree import REPOSITORY

TIMER = [{"ansible.builtin.include_role": {"name": "kquota_tls", "tasks_from": "configure_timer"}}]
MINUTES = timedelta(minutes=10)
PASSPHRASE = secrets.token_hex()


def write_inventory(folder: Path) -> Path:
    """Two brokers on this machine whose certificates are valid for ten minutes, and one that is off."""
    hosts: dict[str, dict[str, object]] = {"off": {"ansible_host": "127.0.0.1", "ansible_port": 1}}
    for number, name in enumerate(("due", "kept"), start=1):
        properties = folder / f"{name}.properties"
        properties.write_text(f"node.id={number}\n")
        hosts[name] = {
            "ansible_connection": "local",
            "ansible_python_interpreter": str(PROGRAMS / "python"),
            "kquota_server_properties": str(properties),
            "kquota_tls_directory": str(folder / name),
        }
    own = {
        "kquota_tls": True,
        "kquota_ca_dir": str(folder / "authority"),
        "kquota_tls_group": "root",
        "kquota_tls_days": MINUTES / timedelta(days=1),
    }
    inventory = folder / "50% of hosts.yml"
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": hosts, "vars": own}}))
    return inventory


def write_units(folder: Path, inventory: Path, mode: int) -> Path:
    """Write the units as the play does; returns the directory in which they are."""
    passphrase = folder / "passphrase"
    passphrase.write_text(PASSPHRASE + "\n")
    passphrase.chmod(mode)
    units = folder / "units"
    units.mkdir()
    given = {
        "kquota_tls_units_dir": str(units),
        "kquota_tls_timer_dir": str(REPOSITORY),
        "kquota_tls_ca_passphrase_file": str(passphrase),
    }
    run_play(folder, TIMER, given, "--limit", "kept", inventory=str(inventory))
    return units


def start(service: Path, credentials: Path) -> subprocess.CompletedProcess[str]:
    """Run the service as systemd does, with its credentials in that directory."""
    settings = [line.partition("=")[::2] for line in service.read_text().splitlines() if "=" in line]

    def words(name: str) -> list[str]:
        # %% is a percent sign, %d the directory.
        said = " ".join(value for key, value in settings if key == name)
        return [
            re.sub("%(.)", lambda found: {"%": "%", "d": str(credentials)}[found[1]], word)
            for word in shlex.split(said)
        ]

    for word in words("LoadCredential"):
        name, _, file = word.partition(":")
        (credentials / name).write_bytes(Path(file).read_bytes())
    given = dict(word.split("=", 1) for word in words("Environment"))
    return subprocess.run(
        words("ExecStart"),
        cwd=words("WorkingDirectory")[0],
        env={"PATH": os.environ["PATH"], "HOME": str(credentials), "LC_ALL": "C.UTF-8", **given},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def signer(folder: Path, host: str, broker_id: int) -> FileSigner:
    pair = folder / host / "current"
    return FileSigner(
        SigningFiles(pair / "agent.pem", pair / "agent.key", folder / "etc/tls/signers.pem"), broker_id
    )


@pytest.mark.long
def test_the_service_renews_before_the_last_third_and_agents_take_it_while_they_run(tmp_path: Path) -> None:
    run_tasks(tmp_path, ISSUE, {**variables_for(tmp_path), "kquota_tls_ca_passphrase": PASSPHRASE})
    inventory = write_inventory(tmp_path)
    (tmp_path / "kquota-agents.txt").write_text("1 due\n2 kept\n")
    units = write_units(tmp_path, inventory, 0o600)
    timer = subprocess.run(
        ["systemd-analyze", "verify", units / "kquota-renewal.timer"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (timer.returncode, timer.stderr) == (0, "")

    # Older than three fifths, but not yet in the last third.
    put(tmp_path, "due", MINUTES * 0.62, MINUTES, broker_id=1, passphrase=PASSPHRASE)
    put(tmp_path, "kept", MINUTES * 0.1, MINUTES, broker_id=2, passphrase=PASSPHRASE)
    running = {"due": signer(tmp_path, "due", 1), "kept": signer(tmp_path, "kept", 2)}
    before = {host: agent.certificate for host, agent in running.items()}
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    with watched({"passphrase": PASSPHRASE}) as end:
        done = start(units / "kquota-renewal.service", credentials)
        assert end() == []
    assert PASSPHRASE not in done.stdout + done.stderr
    assert done.returncode == 4, (
        done.stdout + done.stderr
    )  # one host could not be reached, and the others are done
    assert re.search(r"off\s+: ok=\d+\s+changed=0\s+unreachable=1", done.stdout)

    for agent in running.values():
        agent.refresh()
        assert agent.problem is None
        assert agent.doubt(datetime.now(UTC)) is None
    assert running["kept"].certificate == before["kept"]
    assert running["due"].certificate != before["due"]
    found = AuthorityFile(tmp_path / "etc/tls/signers.pem").certificate(running["due"].certificate)
    assert found is not None
    assert found.verifies(running["due"].sign(b"a report"), b"a report")
    assert MINUTES * 0.85 < found.not_after - found.not_before <= MINUTES


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlayFailed, match=r"passphrase\s+has\s+mode\s+0640[^$]*nothing\s+was\s+changed"):
        write_units(tmp_path, write_inventory(tmp_path), 0o640)
    assert list((tmp_path / "units").iterdir()) == []
