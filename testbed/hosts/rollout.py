"""Kafka and kquota on hosts, as operators get them: by the plays of this repository."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from testbed.hosts.fleet import Fleet
from testbed.hosts.host import Host
from testbed.hosts.image import USER

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY / "extensions/molecule/shared"
ANSIBLE = REPOSITORY / ".venv-fleet/bin"
AGENT, BROKER = "kquota-agent.service", "kafka.service"
OPERATOR = ("--command-config", "/etc/kafka/operator.properties")
"""The option of orders, with the client properties of the administrator."""
RESIDENT = {
    "ANSIBLE_STRATEGY": "resident",
    "ANSIBLE_STRATEGY_PLUGINS": str(SHARED / "strategy"),
    "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
    "ANSIBLE_HOST_KEY_CHECKING": "False",
}
"""Environment of Ansible with which processes that stay on the hosts do the tasks."""
PATIENCE_SECONDS = 300.0
T = TypeVar("T")
_BANNER = re.compile(r"(PLAY|TASK|RUNNING HANDLER) \[(.*)\] \*+$")


class PlayFailed(Exception):
    """A play failed; the message holds the end of its output."""


def write_inventory(
    fleet: Fleet,
    folder: Path,
    brokers: Mapping[str, tuple[str, Mapping[str, object]]] | None = None,
    settings: Mapping[str, object] | None = None,
) -> Path:
    """Write an inventory with all hosts of the fleet as brokers; returns its file.

    `brokers` names them instead: each with its host and with variables of its own, where hosts have several.
    `settings` are further variables of all brokers; those of group_vars win over them.
    """
    (folder / "group_vars").symlink_to(SHARED / "group_vars")
    options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    variables = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(fleet.key),
        "ansible_ssh_common_args": options,
        **(settings or {}),
    }
    named = brokers or {name: (name, {}) for name in fleet}
    hosts = {name: {"ansible_host": fleet[host].address, **own} for name, (host, own) in named.items()}
    inventory = folder / "hosts.yml"
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": hosts, "vars": variables}}), "utf-8")
    return inventory


def play(
    inventory: Path,
    playbook: Path,
    *,
    options: Sequence[str] = (),
    extra_environment: Mapping[str, str] | None = None,
    on_banner: Callable[[str, str], None] = lambda _kind, _name: None,
    **variables: object,
) -> str:
    """Run a playbook; `variables` win over those of the inventory. Returns its output.

    `on_banner` is called with PLAY, TASK or RUNNING HANDLER and its name, as each begins.

    Raises:
        PlayFailed: it failed.
    """
    arguments = ["--extra-vars", json.dumps(variables), *options, str(playbook)]
    return run_ansible(inventory, arguments, extra_environment=extra_environment, on_banner=on_banner)


def run_ansible(
    inventory: Path,
    arguments: Sequence[str],
    *,
    program: str = "ansible-playbook",
    extra_environment: Mapping[str, str] | None = None,
    on_banner: Callable[[str, str], None] = lambda _kind, _name: None,
) -> str:
    """Run a program of Ansible as operators do; `on_banner` as for `play`. Returns its output.

    Raises:
        PlayFailed: it failed.
    """
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(REPOSITORY / "roles"),
        "MOLECULE_PROJECT_DIRECTORY": str(REPOSITORY),
        "MOLECULE_EPHEMERAL_DIRECTORY": str(inventory.parent),
        **(extra_environment or {}),
    }
    lines = []
    with subprocess.Popen(
        [ANSIBLE / program, "--inventory", inventory, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=REPOSITORY,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines.append(line)
                if banner := _BANNER.match(line):
                    on_banner(banner[1], banner[2])
        except BaseException:
            process.terminate()  # it passes it on to its workers
            raise
    said = "".join(lines)
    if process.returncode != 0:
        raise PlayFailed(f"{arguments[-1]}: exit {process.returncode}\n{said[-6000:]}")
    return said


def wait_for(
    look: Callable[[], T], wanted: Callable[[T], bool], *, timeout_seconds: float = PATIENCE_SECONDS
) -> T:
    """Look until it is as wanted; returns the last look, and fails with it when time is up."""
    deadline = time.monotonic() + timeout_seconds
    while not wanted(seen := look()):
        assert time.monotonic() < deadline, f"still so after {timeout_seconds:g} s: {seen}"
        time.sleep(0.2)
    return seen


def decision(host: Host, instance: str = "") -> dict[str, Any]:
    """Return the decision that the plug-in reads; empty while there is none. `instance`: a broker's name."""
    return _document(host, f"/run/kquota{instance and f'-{instance}'}/decision.json")


def applied(host: Host, instance: str = "") -> dict[str, Any]:
    """Return the plug-in's report; empty while there is none. `instance`: a broker's name."""
    return _document(host, f"/run/kquota-broker{instance and f'-{instance}'}/applied.json")


def property_of(host: Host, unit: str, name: str) -> str:
    """Return a property of a unit."""
    return host.run("systemctl", "show", f"--property={name}", "--value", unit).stdout.strip()


def journal(host: Host, *arguments: str, unit: str = AGENT) -> str:
    """Return what the agent's unit has in the journal; `arguments` choose from it."""
    ask = ("journalctl", "--no-pager", "--output=cat", "--quiet", f"--unit={unit}")
    return host.run(*ask, *arguments, check=False).stdout


def now(host: Host) -> str:
    """Return a place in the host's journal, for ``--after-cursor``: after its present end."""
    last = host.run("journalctl", "--no-pager", "--quiet", "--lines=0", "--show-cursor").stdout
    return last.strip().removeprefix("-- cursor: ")


def metrics_text(host: Host, port: int = 9464) -> str:
    """Return the answer of the agent's HTTP endpoint."""
    ask = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/metrics').read().decode())"
    return host.run("python3", "-c", ask).stdout


def metrics(host: Host, port: int = 9464) -> dict[str, float]:
    """Return the agent's metrics, each by its name with its labels."""
    lines = metrics_text(host, port).splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def _document(host: Host, path: str) -> dict[str, Any]:
    done = host.run("cat", path, check=False)
    result: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    return result
