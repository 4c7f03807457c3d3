"""The hosts themselves: the features that tests rely on, and that nothing is left of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from testbed.hosts import cgroups, network
from testbed.hosts.fleet import Fleet, FleetFailed
from testbed.hosts.places import HOSTS, all_fleets_locked
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


def test_each_suite_boots_its_own_systemd(fleet: Fleet):
    versions = {name: host.read("/etc/debian_version").strip() for name, host in fleet.items()}
    assert versions["old"].startswith("12.")
    assert versions["new"].startswith("13.")
    assert {host.run("systemctl", "is-system-running").stdout for host in fleet.values()} == {"running\n"}


def test_one_logs_in_by_ssh_and_becomes_root(fleet: Fleet):
    for name in fleet:
        command = [*fleet.ssh(name), "sudo id -un; hostname"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert done.stdout == f"root\n{name}\n"


def test_hosts_know_each_other_by_name_and_reach_nobody_else(fleet: Fleet):
    ask = "import socket, sys; socket.create_connection((sys.argv[1], 22), 10)"
    fleet["old"].run("python3", "-c", ask, "new")
    outside = fleet["old"].run("python3", "-c", ask, network.address(511, 200), check=False)
    assert "Network is unreachable" in outside.stderr


def test_limits_of_units_hold(fleet: Fleet):
    eat = "x = bytearray(300 * 2**20); print(len(x))"
    for host in fleet.values():
        limited = ("systemd-run", "--wait", "--pipe", "-q", "-p", "MemoryMax=100M", "-p", "MemorySwapMax=0")
        assert host.run(*limited, "python3", "-c", eat, check=False).returncode != 0
        assert (
            host.run("systemd-run", "--wait", "--pipe", "-q", "python3", "-c", eat).stdout
            == f"{300 * 2**20}\n"
        )


def test_a_volume_is_a_file_system_of_its_own(fleet: Fleet):
    for host in fleet.values():
        found = host.run("findmnt", "--noheadings", "--output", "FSTYPE", EXT4, check=False).stdout.strip()
        assert found == "ext4"
        assert host.run("stat", "-f", "-c", "%T", XFS).stdout == "xfs\n"
        assert all(len(volume.device().splitlines()) == 1 for volume in host.volumes.values())


def test_a_volume_is_taken_from_a_running_host_and_given_back(fleet: Fleet):
    host, volume = fleet["new"], fleet["new"].volumes[EXT4]
    host.write(f"{EXT4}/kept", "on the volume")
    volume.detach()
    assert host.run("ls", EXT4).stdout == ""
    assert host.run("mountpoint", EXT4, check=False).returncode != 0
    volume.attach()
    assert host.read(f"{EXT4}/kept") == "on the volume"


def test_this_machine_sees_what_a_running_host_has_in_its_memory(fleet: Fleet):
    for host in fleet.values():
        host.write("/run/seen", host.name)
        assert host.inside("/run/seen").read_text() == host.name
        boot_id = "/proc/sys/kernel/random/boot_id"
        assert host.inside(boot_id).read_text() == host.read(boot_id)
        shown = host.run("systemctl", "show", "--property=MainPID", "--value", "ssh.service").stdout
        assert host.inside(f"/proc/{shown.strip()}/comm").read_text() == "sshd\n"


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


def test_a_second_fleet_of_the_same_name_is_refused(fleet: Fleet):
    with pytest.raises(FleetFailed, match="already"):
        Fleet.create(fleet.name, [HostSpec(name="other")])


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


def test_hosts_are_gone_when_their_maker_was_killed_half_way():
    name = f"half-{os.getpid()}"
    command = [*COMMAND, "create", name, "--host", "first", "--host", "second"]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as maker:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not list((HOSTS / name).glob("hosts/first/pid")):
            assert time.monotonic() < deadline
            assert maker.poll() is None
            time.sleep(0.01)
        number = Fleet.open(name).number
        maker.send_signal(signal.SIGKILL)
    wait_until_nothing_remains(name, number)


def test_hosts_whose_maker_was_interrupted_before_they_had_a_keeper_are_gone(monkeypatch: pytest.MonkeyPatch):
    def interrupted(_fleet: Fleet) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Fleet, "_start_keeper", interrupted)
    name = f"early-{os.getpid()}"
    with pytest.raises(KeyboardInterrupt):
        Fleet.create(name, [HostSpec(name="only")])
    assert not (HOSTS / name).exists()


def test_what_a_killed_keeper_left_goes_when_the_next_fleet_is_made(make_fleet: MakeFleet):
    name = f"left-{os.getpid()}"
    started_by_somebody_else(name, 0)
    left = Fleet.open(name)
    with all_fleets_locked():  # the next fleet of another process would do as well
        keeper = psutil.Process(int((left.path / "keeper.pid").read_text()))
        keeper.kill()
        keeper.wait()
        assert remains(name, left.number) != []
    make_fleet([HostSpec(name="next")])
    assert remains(name, left.number) == []


def test_fleets_beside_each_other_have_networks_of_their_own(fleet: Fleet, make_fleet: MakeFleet):
    other = make_fleet([HostSpec(name="old")])
    assert other["old"].address != fleet["old"].address
    assert other["old"].run("getent", "hosts", "new", check=False).stdout == ""
    other.destroy()
    assert remains(other.name, other.number) == []
    assert fleet["old"].run("hostname").stdout == "old\n"
