"""The packages on booted hosts: the agent's service is installed, upgraded, downgraded, removed and purged.

Test follows test; there is no Kafka, so the agent has nothing but its disks.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kquota import __version__
from testbed.hosts.host import Host
from testbed.hosts.rollout import metrics_text, property_of, wait_for
from testbed.hosts.spec import HostSpec, VolumeSpec
from tests.fleet.conftest import MakeFleet
from tests.packaging.suite import next_version

pytestmark = pytest.mark.long

AGENT, EAST = "kquota-agent.service", "kquota-agent@east.service"
LOG_DIRS = ("/data/1", "/mnt/disk", "/home/kafka/logs", "/srv/kafka")
"""Each on a volume of its own; /var/lib/kafka besides, on the root file system."""
CONFIGURATION = """\
broker: {{server_properties: /etc/kafka/server.properties}}
kafka: {{bootstrap.servers: "127.0.0.1:1"}}
decision_file: /run/{name}/decision.json
state_dir: /var/lib/{name}
metrics: {{listen: "127.0.0.1:{port}"}}
"""
NUMBER = {"bookworm": "12", "trixie": "13"}


@pytest.fixture(scope="module", params=sorted(NUMBER))
def suite(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def package(suite: str, packages: Path) -> Path:
    (found,) = packages.glob(f"kquota_{__version__}-1~deb{NUMBER[suite]}_*.deb")
    return found


@pytest.fixture(scope="module")
def host(suite: str, make_fleet: MakeFleet) -> Host:
    """A host with log dirs of a broker's user, and no broker."""
    volumes = tuple(VolumeSpec(path=path, size_mebibytes=16) for path in LOG_DIRS)
    made = make_fleet([HostSpec(name=suite, suite=suite, volumes=volumes)])[suite]  # type: ignore[arg-type]
    made.run("useradd", "--system", "kafka")
    for path in (*LOG_DIRS, "/var/lib/kafka"):
        made.run("install", "-d", "-o", "kafka", "-g", "kafka", "-m", "0750", f"{path}/log")
    log_dirs = ",".join(f"{path}/log" for path in (*LOG_DIRS, "/var/lib/kafka"))
    made.write(
        "/etc/kafka/server.properties", f"node.id=1\nlog.dirs={log_dirs}\n", mode=0o640, owner="root:kafka"
    )
    return made


def install(host: Host, package: Path) -> str:
    shutil.copy(package, host.file("/root"))
    return host.run("dpkg", "--install", f"/root/{package.name}").stdout


@pytest.fixture(scope="module")
def installed(host: Host, package: Path) -> str:
    return install(host, package)


@pytest.fixture(scope="module")
def running(host: Host, installed: str) -> None:
    for unit, name, port in ((AGENT, "kquota", 9464), (EAST, "kquota-east", 9465)):
        file = "agent" if unit == AGENT else "east"
        host.write(
            f"/etc/kquota/{file}.yml",
            CONFIGURATION.format(name=name, port=port),
            mode=0o640,
            owner="root:kquota",
        )
        host.write(f"/etc/systemd/system/{unit}.d/group.conf", "[Service]\nSupplementaryGroups=kafka\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "enable", "--now", AGENT, EAST)


@pytest.fixture(scope="module")
def upgraded(host: Host, running: None, package: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    install(host, next_version(package, tmp_path_factory.mktemp("upgrade")))


@pytest.fixture(scope="module")
def downgraded(host: Host, upgraded: None, package: Path) -> None:
    install(host, package)


@pytest.fixture(scope="module")
def removed(host: Host, downgraded: None) -> str:
    return host.run("dpkg", "--remove", "kquota").stderr


@pytest.fixture(scope="module")
def purged(host: Host, removed: str) -> None:
    host.run("dpkg", "--purge", "kquota")


def version(host: Host) -> str:
    return host.run("dpkg-query", "-f", "${Version}", "-W", "kquota").stdout


def test_without_a_configuration_it_waits_and_says_for_what(host: Host, installed: str):
    assert property_of(host, AGENT, "UnitFileState") == "enabled"
    assert property_of(host, AGENT, "ActiveState") == "inactive"
    assert "write /etc/kquota/agent.yml" in installed


def test_the_service_gets_ready_without_kafka(host: Host, running: None):
    assert property_of(host, AGENT, "Type") == "notify"
    assert property_of(host, AGENT, "ActiveState") == "active"
    assert "PAUSE" in property_of(host, AGENT, "StatusText")


def test_a_second_broker_on_the_host_has_an_agent_of_its_own(host: Host, running: None):
    assert property_of(host, EAST, "ActiveState") == "active"
    assert property_of(host, EAST, "MainPID") != property_of(host, AGENT, "MainPID")
    assert host.run("stat", "-c", "%U %a", "/run/kquota-east", "/run/kquota").stdout == "kquota 755\n" * 2


def test_the_sandbox_lets_it_see_log_dirs_wherever_they_are(host: Host, running: None):
    for port in (9464, 9465):
        seen = wait_for(lambda port=port: metrics_text(host, port), lambda text: "kquota_volume" in text)
        lines = [line for line in seen.splitlines() if line.startswith("kquota_volume_capacity_bytes{")]
        assert len(lines) == len(LOG_DIRS) + 1, seen
        assert all(float(line.rsplit(" ", 1)[1]) > 0 for line in lines)


def test_the_sandbox_hides_everything_else(host: Host, running: None):
    pid = property_of(host, AGENT, "MainPID")
    status = host.read(f"/proc/{pid}/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"
    assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0
    inside = ("nsenter", f"--target={pid}", "--mount", "touch")
    assert "Read-only file system" in host.run(*inside, "/data/1/log/file", check=False).stderr
    assert "Read-only file system" in host.run(*inside, "/etc/file", check=False).stderr


@pytest.mark.parametrize("unit", [AGENT, EAST])
def test_the_sandbox_leaves_little_to_attack(host: Host, running: None, unit: str):
    # Two of the points are for the command line of the broker, which any user of the host may read.
    host.run("systemd-analyze", "security", "--no-pager", "--threshold=19", unit)


def test_its_memory_is_bounded(host: Host, running: None):
    assert property_of(host, AGENT, "MemoryMax") == str(2**30)
    assert 0 < int(property_of(host, AGENT, "MemoryCurrent")) < 256 * 2**20


def test_an_upgrade_restarts_it_with_its_configuration(host: Host, upgraded: None):
    assert version(host).startswith(f"{__version__}.1-")
    assert property_of(host, AGENT, "ActiveState") == property_of(host, EAST, "ActiveState") == "active"
    assert "127.0.0.1:1" in host.read("/etc/kquota/agent.yml")


def test_a_downgrade_is_an_upgrade_the_other_way_round(host: Host, downgraded: None):
    assert version(host).startswith(f"{__version__}-")
    assert property_of(host, AGENT, "ActiveState") == property_of(host, EAST, "ActiveState") == "active"
    assert "127.0.0.1:1" in host.read("/etc/kquota/agent.yml")


def test_a_removal_stops_it_and_keeps_configuration_and_state(host: Host, removed: str):
    assert host.run("pgrep", "--full", "/opt/kquota", check=False).stdout == ""
    assert host.run("ls", "/etc/kquota").stdout == "agent.yml\neast.yml\n"
    assert host.run("ls", "/var/lib/kquota").stdout != ""


def test_a_purge_leaves_nothing(host: Host, purged: None):
    left = host.run(
        "find", "/etc/kquota", "/var/lib/kquota", "/var/lib/kquota-east", "/opt/kquota", check=False
    )
    assert left.stdout == ""
    assert property_of(host, AGENT, "LoadState") == "not-found"
