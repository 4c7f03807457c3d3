"""The way in of a release's user: a folder with packages and collection, an inventory, and plays by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kquota import __version__
from testbed.hosts.rollout import BROKER, applied, property_of, wait_for
from testbed.hosts.spec import VolumeSpec
from tests.fleet.conftest import MakeKafka
from tests.fleet.control_host import ControlHost
from tests.fleet.process_lists import secrets_of_scenarios

NAMES = ("broker-1", "broker-2", "broker-3")
VOLUMES = (
    VolumeSpec(path="/data/1", size_mebibytes=128),
    VolumeSpec(path="/data/2", size_mebibytes=128),
    VolumeSpec(path="/data/metadata", size_mebibytes=64),
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
def release(packages: Path, collection: Path, tmp_path: Path) -> Path:
    """A folder with what these hosts need of a release."""
    folder = tmp_path / f"kquota-{__version__}"
    folder.mkdir()
    for name in (f"kquota_{__version__}-1~deb13_*.deb", f"kquota-callback_{__version__}_all.deb"):
        (package,) = packages.glob(name)
        shutil.copy(package, folder)
    shutil.copy(collection, folder)
    return folder


def inventory_of(example: Path, mine: Path, prepared: Path, release: Path) -> Path:
    """Copy an example of the collection and change its hosts and variables, for the prepared brokers."""
    shutil.copytree(example, mine)
    shutil.copytree(prepared.parent / "authority", mine / "kquota-ca")
    document = json.loads(prepared.read_text("utf-8"))
    names = list(document["kafka_brokers"]["hosts"])
    variables = {
        "kquota_dist_dir": str(release),
        "kquota_bootstrap_servers": ",".join(f"{name}:9093" for name in names),
        "kquota_tls_ca_passphrase": secrets_of_scenarios()["kquota_tls_ca_passphrase"],
        "kquota_tls_trusted_files": [str(prepared.parent / "kafka-authority/ca.pem")],
        "kquota_broker_principals": [f"User:CN={name}" for name in names],
        "kquota_admin_principals": ["User:CN=admin"],
        # Hosts of tests cannot set the clock.
        "kquota_agent_preflight_clock_synchronized": False,
    }
    # Not in hosts.yml: a value of the example's group_vars/all.yml counts more than one there.
    (mine / "group_vars/kafka_brokers.yml").write_text(json.dumps(variables), "utf-8")
    inventory = mine / "hosts.yml"
    inventory.write_text(json.dumps(document), "utf-8")
    return inventory


def test_a_release_s_folder_alone_rolls_out_to_observe_and_uninstalls(
    make_kafka: MakeKafka, release: Path, tmp_path: Path
) -> None:
    fleet, prepared = make_kafka(NAMES, "trixie", VOLUMES)
    operator = ControlHost(tmp_path / "home")
    operator.home.mkdir()
    operator.install(next(release.glob("kquota-kquota-*.tar.gz")))
    example = operator.collection / "inventories/tls"
    inventory = inventory_of(example, operator.home / "mine", prepared, release)

    def play(name: str) -> None:
        done = operator.run("ansible-playbook", "--inventory", str(inventory), f"kquota.kquota.{name}")
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]

    play("rollout")
    for name in NAMES:
        host = fleet[name]
        wait_for(
            lambda host=host: applied(host),
            lambda seen: (seen.get("mode"), seen.get("state")) == ("observe", "OPEN"),
        )
        wait_for(
            lambda host=host: host.run("kquota", "status", check=False).stdout,
            lambda text: "OPEN" in text.partition("\n")[0],
        )

    play("uninstall")
    for name in NAMES:
        host = fleet[name]
        assert property_of(host, BROKER, "ActiveState") == "active"
        assert "kquota" not in host.read("/etc/kafka/server.properties")
        assert host.run("sh", "-c", "command -v kquota", check=False).returncode != 0
