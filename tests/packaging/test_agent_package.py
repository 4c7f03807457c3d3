"""The agent's package on a real Debian: installed, upgraded, removed, purged. The tests follow each other."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from pathlib import Path

import pytest

from kquota import __version__
from tests.packaging.suite import REPOSITORY, Host, next_version

pytestmark = pytest.mark.long

ENABLED = "/etc/systemd/system/multi-user.target.wants/kquota-agent.service"
CONFIGURATION = (
    "broker: {server_properties: /etc/kafka/server.properties}\nkafka: {bootstrap.servers: localhost:9093}\n"
)
DECISION = "/run/kquota-east/decision.json"
EVERY_MODULE = """
import importlib, pkgutil, kquota
for module in pkgutil.walk_packages(kquota.__path__, "kquota."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
        print(module.name)
"""
RECORD = {
    "key": "1",
    "timestamp_ms": 0,
    "value": {
        "SnapshotAt": "2026-11-20T10:15:30.123Z",
        "HardLimit": {"type": "MinFreePercentage", "level": 5},
        "SoftLimit": {"type": "MinFreePercentage", "level": 15},
        "Volumes": [{"VolumeName": "/dev/sda1", "Capacity": 1000, "Consumed": 900}],
    },
}


@pytest.fixture(scope="module")
def installed(host: Host, agent_package: Path) -> str:
    return host.dpkg("-i", agent_package)


@pytest.fixture(scope="module")
def configured(host: Host, installed: str) -> None:
    host.write("/etc/kquota/agent.yml", CONFIGURATION)
    host.write("/etc/kquota/east.yml", CONFIGURATION)
    host.write("/etc/kquota/tls/agent.key", "a key")
    host.write("/etc/kquota/topics.json", "{}")
    host.write("/run/kquota-broker/applied.json", "{}")
    host.write(DECISION, '{"sequence": 1, "mode": "enforce"}\n')
    host.run("systemctl", "enable", "kquota-agent@east")
    for directory in ("kquota", "kquota-east", "kquota-other"):
        host.write(f"/var/lib/{directory}/agent-state.json", "{}")


@pytest.fixture(scope="module")
def upgraded(
    host: Host, configured: None, agent_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host.run("rm", ENABLED)  # as systemctl disable does
    host.dpkg("-i", next_version(agent_package, tmp_path_factory.mktemp("upgrade")))


@pytest.fixture(scope="module")
def removed(host: Host, upgraded: None) -> None:
    host.write(DECISION, '{"sequence": 2, "mode": "observe"}\n')
    host.dpkg("-r", "kquota")


@pytest.fixture(scope="module")
def purged(host: Host, removed: None) -> None:
    host.dpkg("-P", "kquota")


def test_the_command_runs_on_the_suite_s_own_python(host: Host, installed: str):
    assert host.run("kquota", "--version").stdout == f"kquota {__version__}\n"
    assert host.run("/opt/kquota/bin/python3", "-c", "import sys; print(sys.base_prefix)").stdout == "/usr\n"


def test_no_module_of_the_host_gets_into_the_command(host: Host, installed: str):
    host.write("/tmp/elsewhere/kquota/__init__.py", "raise SystemExit('not this one')")
    result = host.run("env", "PYTHONPATH=/tmp/elsewhere", "sh", "-c", "cd /tmp/elsewhere && kquota --version")
    assert result.stdout == f"kquota {__version__}\n"


def test_it_decides(host: Host, installed: str):
    host.write("/tmp/records.jsonl", json.dumps(RECORD) + "\n")
    now = "2026-11-20T10:15:31.000Z"
    result = host.run("kquota", "decide", "--records", "/tmp/records.jsonl", "--brokers", "1", "--now", now)
    decision = json.loads(result.stdout)
    assert (decision["state"], decision["factor"]) == ("THROTTLE", 0.5)


def test_every_module_that_the_agent_uses_can_be_loaded(host: Host, installed: str):
    modules = (
        "confluent_kafka, cryptography.x509, psutil, prometheus_client, systemd.daemon, systemd.journal, yaml"
    )
    host.run("/opt/kquota/bin/python3", "-I", "-c", f"import kquota.service.daemon, {modules}")


def test_every_module_of_the_agent_and_every_command_works_without_what_is_left_out(
    host: Host, installed: str
):
    modules = host.run("/opt/kquota/bin/python3", "-I", "-c", EVERY_MODULE).stdout.split()
    assert {"kquota.cli.main", "kquota.service.daemon", "kquota.policy.decide"} <= set(modules)
    commands = [[]]
    for path in commands:
        result = host.run("kquota", *path, "--help")
        assert "Usage:" in result.stdout
        if not path or "COMMAND" in result.stdout.splitlines()[0]:
            listed = re.findall(r"^  ([a-z][a-z-]*)  ", result.stdout, re.MULTILINE)
            commands += [[*path, name] for name in listed]
    assert len(commands) > 20
    assert "No such command" in host.run("kquota", "nonsense", code=2).stderr


def test_commands_that_draw_tables_work_without_what_is_left_out(host: Host, installed: str):
    host.write("/etc/kafka/server.properties", "node.id=1\nlog.dirs=/var\n")
    host.write("/tmp/agent.yml", CONFIGURATION.replace("9093", "1"))
    config = ("--config", "/tmp/agent.yml")
    # The root of this host is no mount, which the command reports.
    assert "HARD" in host.run("kquota", "volumes", *config, code=1).stdout
    assert "staleness_seconds" in host.run("kquota", "config", "show", *config).stdout
    # No broker is there: they show what they know.
    for command in ("status", "explain"):
        result = host.run("kquota", command, *config, "--timeout", "0.5", code=None)
        assert result.stdout, command
        assert "Traceback" not in result.stderr, command


def test_it_holds_nothing_but_what_runs_on_a_broker(host: Host, installed: str, agent_package: Path):
    control = subprocess.run(
        ["dpkg-deb", "--field", agent_package], check=True, capture_output=True, text=True
    )
    kibibytes = int(re.findall(r"^Installed-Size: (\d+)$", control.stdout, re.MULTILINE)[0])
    assert kibibytes * 1024 <= 50_000_000
    packages = {name.parent.name for name in host.path("/opt/kquota/lib").glob("python3*/site-packages/*/*")}
    assert {"kquota", "rich", "confluent_kafka"} <= packages
    assert not packages & {
        "kquota_pipeline",
        "testbed",
        "tests",
        "tools",
        "bench",
        "conformance",
        "pygments",
        "pip",
        "setuptools",
    }


def test_the_agent_s_user_and_directory_are_made(host: Host, installed: str):
    assert host.run("id", "-gn", "kquota").stdout == "kquota\n"
    assert host.run("stat", "-c", "%U %G %a", "/etc/kquota").stdout == "root kquota 751\n"
    # As anybody else a broker reads its thresholds there, and sees nothing else.
    host.write("/etc/kquota/topics.json", "{}")
    broker = ("runuser", "-u", "nobody", "--")
    assert host.run(*broker, "cat", "/etc/kquota/topics.json").stdout == "{}"
    assert host.run(*broker, "ls", "/etc/kquota", code=None).returncode != 0
    host.path("/etc/kquota/topics.json").unlink()


def test_it_is_enabled_and_says_what_it_waits_for(host: Host, installed: str):
    assert host.path(ENABLED).is_symlink()
    assert "write /etc/kquota/agent.yml" in installed


def test_it_brings_no_configuration_but_every_key_s_example(host: Host, installed: str):
    assert host.run("sh", "-c", "ls /etc/kquota/*", code=None).stdout == ""
    example = host.path("/usr/share/doc/kquota/examples/agent.yml").read_bytes()
    assert example == (REPOSITORY / "packaging/agent.yml.example").read_bytes()


def test_the_example_is_a_configuration_once_its_files_are_there(host: Host, installed: str):
    host.write("/etc/kafka/server.properties", "node.id=1\nlog.dirs=/var\n")
    example = "/usr/share/doc/kquota/examples/agent.yml"
    assert "refused" not in host.run("kquota", "config", "show", "--config", example).stdout


def test_the_journal_s_explanations_are_in_the_catalog(host: Host, installed: str):
    listed = host.run("journalctl", "--list-catalog").stdout
    assert "The kquota agent has started" in listed


def test_the_packaged_units_are_whole(host: Host, installed: str):
    units = ("kquota-agent.service", "kquota-agent@east.service")
    result = host.run("systemd-analyze", "verify", "--man=no", *units, code=None)
    assert "kquota" not in result.stderr
    assert result.returncode == 0


@pytest.mark.parametrize("unit", ["kquota-agent.service", "kquota-agent@.service"])
def test_the_sandbox_leaves_little_to_attack(host: Host, installed: str, unit: str):
    # Two of the points are for the command line of the broker, which any user of the host may read.
    host.run("systemd-analyze", "security", "--offline=true", "--threshold=19", "--no-pager", unit)


def test_nothing_of_the_package_can_be_written_by_others(host: Host, installed: str):
    files = host.run("dpkg-query", "-L", "kquota").stdout.split()
    modes = {name: host.path(name).lstat().st_mode for name in files}
    writable = [name for name, mode in modes.items() if not stat.S_ISLNK(mode) and mode & 0o022]
    assert len(files) > 1000
    assert writable == []


def test_an_upgrade_keeps_configuration_state_and_what_was_disabled(host: Host, upgraded: None):
    version = host.run("dpkg-query", "-f", "${Version}", "-W", "kquota").stdout
    assert version.startswith(f"{__version__}.1-")
    assert host.path("/etc/kquota/agent.yml").read_text("utf-8") == CONFIGURATION
    assert host.path("/var/lib/kquota/agent-state.json").exists()
    assert not host.path(ENABLED).is_symlink()
    host.run("kquota", "--version")


@pytest.mark.parametrize("option", ["--remove", "--purge"])
def test_it_is_not_removed_while_a_broker_enforces_its_decisions(host: Host, upgraded: None, option: str):
    shown = host.dpkg(option, "kquota", code=1)
    assert "kquota is in use" in shown
    assert f"  {DECISION}\n" in shown
    assert "playbooks/uninstall.yml" in shown
    assert host.status("kquota") == "i"
    host.run("kquota", "--version")


def test_a_removal_leaves_configuration_and_state_alone(host: Host, removed: None):
    assert host.status("kquota") == "c"
    assert not host.path("/opt/kquota").exists()
    assert not host.path("/usr/bin/kquota").is_symlink()
    assert host.path("/etc/kquota/agent.yml").exists()
    assert host.path("/var/lib/kquota/agent-state.json").exists()


def test_a_purge_takes_configuration_and_state_and_nobody_else_s_keys(host: Host, purged: None):
    assert host.status("kquota") in ("", "n")
    left = host.run(
        "find", "/etc/kquota", "/var/lib/kquota", "/var/lib/kquota-east", "-type", "f", code=None
    ).stdout
    assert left == "/etc/kquota/tls/agent.key\n"
    assert host.path("/var/lib/kquota-other/agent-state.json").exists()
    assert host.path("/run/kquota-broker/applied.json").exists()


def test_a_purge_leaves_no_unit_behind(host: Host, purged: None):
    assert host.run("find", "/etc/systemd/system", "-name", "kquota*").stdout == ""
