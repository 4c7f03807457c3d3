"""The hosts themselves: they have the faults that tests give them, and nothing is left of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from testbed.hosts import cgroups, network
from testbed.hosts.fleet import Fleet
from testbed.hosts.places import HOSTS
from testbed.hosts.spec import HostSpec, VolumeSpec
from tests.fleet.conftest import MakeFleet

# A Debian has to be fetched and unpacked for each suite first, which takes minutes on a fresh machine.
pytestmark = pytest.mark.long

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "testbed.hosts")
PATIENCE_SECONDS = 120.0
EXT4, XFS = "/data/1", "/srv/kafka"


@pytest.fixture(scope="module")
def fleet(make_fleet: MakeFleet) -> Fleet:
    volumes = (
        VolumeSpec(path=EXT4, size_mebibytes=32),
        VolumeSpec(path=XFS, filesystem="xfs", size_mebibytes=320),
    )
    return make_fleet(
        [
            HostSpec(name="old", suite="bookworm", volumes=volumes),
            HostSpec(name="new", suite="trixie", volumes=volumes),
        ]
    )


@pytest.mark.parametrize("path", [EXT4, XFS])
def test_a_disk_that_is_shut_down_answers_with_an_error(fleet: Fleet, path: str):
    host, volume = fleet["old"], fleet["old"].volumes[path]
    host.write(f"{path}/file", "text")
    volume.shut_down()
    assert "Input/output error" in host.run("touch", f"{path}/another", check=False).stderr
    volume.detach()
    volume.attach()
    host.write(f"{path}/another", "text")


def test_a_disk_with_an_error_turns_read_only(fleet: Fleet):
    host, volume = fleet["old"], fleet["old"].volumes[EXT4]
    volume.break_read_only()
    assert "Read-only file system" in host.run("touch", f"{EXT4}/another", check=False).stderr


def test_a_host_without_its_cable_is_not_reached(fleet: Fleet):
    host = fleet["new"]
    host.plug_network(connected=False)
    assert not host.answers(22)
    host.plug_network(connected=True)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not host.answers(22):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_host_that_lost_its_power_boots_again_with_its_disks(fleet: Fleet):
    host = fleet["new"]
    boot = host.read("/proc/sys/kernel/random/boot_id")
    host.write("/etc/kept", "on the root file system")
    host.power_off()
    host.start()
    host.wait_until_booted()
    assert host.read("/etc/kept") == "on the root file system"
    assert host.read("/proc/sys/kernel/random/boot_id") != boot


# --- nothing is left --------------------------------------------------------------------------------------


def remains(name: str, number: int) -> list[str]:
    """Everything that there still is of a fleet."""
    mounts = [
        part.mountpoint for part in psutil.disk_partitions(all=True) if f"/{name}/" in f"{part.mountpoint}/"
    ]
    images = [
        file.read_text().strip()
        for file in Path("/sys/block").glob("loop*/loop/backing_file")
        if f"/{name}/" in file.read_text()
    ]
    machine = network.namespaces(number).removesuffix("*")
    links = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True).stdout
    spaces = [path.name for path in Path("/run/netns").glob(f"{machine}*")]
    cables = [line for line in links.splitlines() if f" {machine}" in line or f" {machine[:-1]}:" in line]
    groups = [
        str(path) for root, _ in cgroups.hierarchies() for path in root.glob(f"kquota-hosts/{machine}*")
    ]
    return [*mounts, *images, *spaces, *cables, *groups, *([name] if (HOSTS / name).exists() else [])]


def wait_until_nothing_remains(name: str, number: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := remains(name, number):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def started_by_somebody_else(name: str, owner: int) -> dict[str, object]:
    command = [
        *COMMAND,
        "create",
        name,
        "--host",
        "only",
        "--volume",
        "/data/1=ext4:16",
        "--owner",
        str(owner),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
    described: dict[str, object] = json.loads(done.stdout)
    return described


def test_hosts_are_gone_when_their_owner_was_killed():
    name = f"owned-{os.getpid()}"
    with subprocess.Popen(["sleep", "600"]) as owner:
        try:
            started_by_somebody_else(name, owner.pid)
            fleet = Fleet.open(name)
            assert remains(name, fleet.number) != []
            assert fleet["only"].run("hostname").stdout == "only\n"
        finally:
            owner.kill()
    wait_until_nothing_remains(name, fleet.number)
