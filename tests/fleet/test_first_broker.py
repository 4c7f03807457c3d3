"""The smallest way in: a package and four commands next to a broker that runs as Kafka ships it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kquota import __version__
from testbed.hosts.host import Host
from testbed.hosts.rollout import AGENT, property_of, wait_for
from testbed.hosts.spec import HostSpec, VolumeSpec
from testbed.loopback.runtime import ensure_kafka_runtime
from tests.fleet.conftest import MakeFleet

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

LOG_DIR = "/data/kafka/logs"
SERVER_PROPERTIES = f"""\
process.roles=broker,controller
node.id=7
controller.quorum.voters=7@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={LOG_DIR}
offsets.topic.replication.factor=1
log.cleaner.dedupe.buffer.size=4194304
"""
CLUSTER_ID = "Vx0ZbGgYQv6mTqYbDdL0mA"
UNIT = """\
[Service]
User=kafka
ExecStart=/usr/bin/java -Xmx256m -cp /opt/kafka/libs/* kafka.Kafka /etc/kafka/server.properties
SuccessExitStatus=143
"""


@pytest.fixture(scope="module")
def host(make_fleet: MakeFleet, packages: Path) -> Host:
    """A host with a broker, and the package installed."""
    shows = {"/opt/kafka/libs": ensure_kafka_runtime().jars}
    volumes = (VolumeSpec(path="/data", size_mebibytes=256),)
    made = make_fleet([HostSpec(name="first", suite="trixie", volumes=volumes, shows=shows)])["first"]
    made.run("useradd", "--system", "kafka")
    made.run("install", "-d", "-o", "kafka", "-g", "kafka", "-m", "0750", "/data/kafka", LOG_DIR)
    made.write("/etc/kafka/server.properties", SERVER_PROPERTIES, mode=0o640, owner="root:kafka")
    made.write("/etc/systemd/system/kafka.service", UNIT)
    storage = f"java -cp '/opt/kafka/libs/*' kafka.tools.StorageTool format -t {CLUSTER_ID}"
    made.run("runuser", "-u", "kafka", "--", "sh", "-c", f"{storage} -c /etc/kafka/server.properties")
    made.run("systemctl", "start", "kafka")
    wait_for(lambda: made.answers(9092), bool)
    (package,) = packages.glob(f"kquota_{__version__}-1~deb13_*.deb")
    shutil.copy(package, made.file("/root"))
    made.run("apt-get", "install", "--yes", f"/root/{package.name}")
    return made


@pytest.fixture(scope="module")
def configured(host: Host) -> str:
    return host.run("kquota", "config", "init").stdout


@pytest.fixture(scope="module")
def started(host: Host, configured: str) -> str:
    """The text of `kquota status` once the agent has decided."""
    host.run("systemctl", "start", "kquota-agent")
    return wait_for(lambda: host.run("kquota", "status", check=False).stdout, lambda text: "OPEN" in text)


def test_init_says_what_it_found_and_the_next_step(configured: str):
    assert f"found broker 7, /etc/kafka/server.properties, directories {LOG_DIR}" in configured
    assert "PLAINTEXT" in configured
    assert "localhost:9092" in configured
    assert configured.splitlines()[-1].startswith("next: systemctl start kquota-agent")


def test_a_second_init_leaves_the_file(host: Host, configured: str):
    before = host.read("/etc/kquota/agent.yml")
    refused = host.run("kquota", "config", "init", check=False)
    assert refused.returncode != 0
    assert "--force" in refused.stderr
    assert host.read("/etc/kquota/agent.yml") == before


def test_the_file_is_root_s_and_the_agent_reads_it(host: Host, configured: str):
    assert host.run("stat", "-c", "%U:%G %a", "/etc/kquota/agent.yml").stdout.strip() == "root:kquota 640"
    host.run("runuser", "-u", "kquota", "--", "kquota", "config", "check")


def test_the_broker_is_observed_without_a_restart(host: Host, started: str):
    assert property_of(host, "kafka.service", "NRestarts") == "0"
    decision = json.loads(host.read("/run/kquota/decision.json"))
    assert property_of(host, AGENT, "ActiveState") == "active"
    assert decision["state"] == "OPEN", decision
