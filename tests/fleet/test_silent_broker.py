"""An agent dead for minutes on one of three hosts under load: the action `bounded`. Test follows test."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from testbed.hosts.fleet import Fleet
from testbed.hosts.host import Host
from testbed.hosts.rollout import AGENT, REPOSITORY, applied, decision, play, property_of, wait_for
from testbed.hosts.spec import VolumeSpec
from testbed.hosts.volumes import Volume
from tests.fleet.conftest import MakeKafka
from tests.fleet.producers import Producers, await_flow, configuration, longest_silences_seconds, producing
from tests.integration.spine.followed_topic import FollowedTopic

NAMES = ("broker-1", "broker-2", "broker-3")
SILENT, OTHERS = "broker-2", ("broker-1", "broker-3")
DATA = "/data/1"
VOLUMES = (VolumeSpec(path=DATA, size_mebibytes=256), VolumeSpec(path="/data/metadata", size_mebibytes=256))
SILENT_SECONDS = 180
STALENESS_SECONDS = 25
FILL_FLOOR_BYTES_PER_SECOND = 200_000
"""More than the load: no minute of it is faster."""
LOAD_BYTES_PER_SECOND = 25_000
"""Of each of three producers, each of whose topics has a replica on every broker."""
HARD_BYTES = 64 * 2**20
SOFT_BYTES = HARD_BYTES + 60 * FILL_FLOOR_BYTES_PER_SECOND
LEFT_BYTES = SOFT_BYTES + (SILENT_SECONDS + 60) * FILL_FLOOR_BYTES_PER_SECOND
"""Free before the rollout: the bound reaches the soft limit some time after `SILENT_SECONDS`."""
NEVER_SILENT_SECONDS = 10
DOWN = f"/run/systemd/system/{AGENT}.d/zz-down.conf"

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@dataclass
class Loaded:
    """Hosts with kquota, and a producer for each broker."""

    fleet: Fleet
    producers: Producers
    usage: FollowedTopic
    silent_since: dict[str, Any]
    """The last record of the silent broker's volume, with SnapshotAt; empty before its agent was killed."""

    @property
    def disk(self) -> Volume:
        """That of the broker without an agent."""
        return self.fleet[SILENT].volumes[DATA]

    def last_record(self) -> dict[str, Any]:
        """The record of the silent broker's data volume, with the time of its snapshot."""
        own = [message.value() for message in self.usage.records() if message.key() == b"2"]
        record = json.loads(own[-1] or b"{}")
        (volume,) = (volume for volume in record["Volumes"] if volume["MountPoint"] == DATA)
        return {**volume, "SnapshotAt": datetime.fromisoformat(record["SnapshotAt"])}


def states(fleet: Fleet) -> dict[str, str]:
    return {name: applied(fleet[name])["state"] for name in NAMES}


@pytest.fixture(scope="module")
def loaded(
    make_kafka: MakeKafka, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loaded]:
    """Three brokers with a disk on which the bound reaches the hard limit soon after `SILENT_SECONDS`."""
    own = {"kafka_clients_host": "{{ ansible_host }}", "kafka_log_dirs": [f"{DATA}/kafka"]}
    fleet, inventory = make_kafka(NAMES, "trixie", VOLUMES, {name: (name, own) for name in NAMES})
    fleet[SILENT].volumes[DATA].fill(leave_bytes=LEFT_BYTES)
    play(
        inventory,
        REPOSITORY / "playbooks/rollout.yml",
        kquota_dist_dir=str(packages),
        kquota_fallback_action="bounded",
        kquota_agent_limits={
            "hard": {"type": "MinFreeBytes", "level": HARD_BYTES},
            "soft": {"type": "MinFreeBytes", "level": SOFT_BYTES},
        },
        kquota_agent_settings={
            "staleness_seconds": STALENESS_SECONDS,
            "fill_floor_bytes_per_second": FILL_FLOOR_BYTES_PER_SECOND,
        },
    )

    logs = tmp_path_factory.mktemp("load")
    with (
        producing(fleet, inventory, NAMES, LOAD_BYTES_PER_SECOND, logs) as producers,
        FollowedTopic(configuration(fleet, inventory, "admin"), "__kquota_volume_usage") as usage,
    ):
        yield Loaded(fleet, producers, usage, {})


def kill_for_good(host: Host) -> None:
    """Kill the agent, and have systemd not start it again."""
    host.write(DOWN, "[Service]\nRestart=no\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "kill", "--signal=KILL", AGENT)
    wait_for(lambda: property_of(host, AGENT, "ActiveState"), lambda state: state == "failed")


@pytest.mark.accepts("F3", "A18", "G6")
def test_an_agent_that_is_dead_for_minutes_pauses_no_broker_and_silences_no_producer(loaded: Loaded) -> None:
    fleet = loaded.fleet
    wait_for(lambda: states(fleet), lambda seen: set(seen.values()) == {"OPEN"})
    await_flow(loaded.producers, LOAD_BYTES_PER_SECOND)
    kill_for_good(fleet[SILENT])
    killed_at = time.monotonic()
    loaded.silent_since = loaded.last_record()
    seen: set[str] = set()
    while (silent_seconds := time.monotonic() - killed_at) < SILENT_SECONDS:
        found = states(fleet)
        seen |= set(found.values())
        assert "PAUSE" not in found.values(), f"{found} after {silent_seconds:.0f} s"
        time.sleep(0.5)
    silences = longest_silences_seconds(loaded.producers, killed_at)
    longest = {name: round(seconds, 1) for name, seconds in silences.items()}
    ceiling = loaded.silent_since["FillCeiling"]
    print(
        f"\nthe agent was dead for {silent_seconds:.0f} s, with a bound of {ceiling} bytes per second:"
        f" states {sorted(seen)}, longest silence of each producer in seconds {longest}"
    )
    assert max(silences.values()) < NEVER_SILENT_SECONDS
    assert property_of(fleet[SILENT], AGENT, "ActiveState") == "failed"
    assert "lease ran out" in applied(fleet[SILENT])["kept"]
    for name in OTHERS:
        assert [entry["broker_id"] for entry in decision(fleet[name])["covered"]] == [2]


@pytest.mark.accepts("F3", "A18", "G6")
def test_all_brokers_pause_before_the_disk_without_an_agent_is_over_its_hard_limit(loaded: Loaded) -> None:
    fleet, disk, last = loaded.fleet, loaded.disk, loaded.silent_since
    assert last, "the test before has killed the agent"
    filled = disk.mount_point / "filled"

    def grow_to(consumed_bytes: float) -> None:
        missing_bytes = round(consumed_bytes) - (disk.capacity_bytes() - disk.available_bytes())
        if missing_bytes > 0:
            with filled.open("ab") as file:
                os.posix_fallocate(file.fileno(), file.tell(), missing_bytes)

    def silent_for_seconds() -> float:
        return (datetime.now(UTC) - last["SnapshotAt"]).total_seconds()

    def fill_until(names: tuple[str, ...], most_bytes: Callable[[], float]) -> None:
        deadline = time.monotonic() + 300
        while any(applied(fleet[name])["state"] != "PAUSE" for name in names):
            assert time.monotonic() < deadline
            grow_to(most_bytes())
            time.sleep(0.1)

    # A busy machine decides up to two seconds late.
    fill_until(OTHERS, lambda: last["Consumed"] + last["FillCeiling"] * (silent_for_seconds() - 2))
    left_bytes, paused_seconds = disk.available_bytes() - HARD_BYTES, silent_for_seconds()
    assert left_bytes > 0, "full, and not every broker was paused"
    begun = time.monotonic()
    fill_until((SILENT,), lambda: disk.capacity_bytes() - HARD_BYTES + 2**20)
    own_seconds = time.monotonic() - begun
    print(
        f"\nthe others paused {paused_seconds:.1f} s after the last report, {left_bytes} bytes before the"
        f" hard limit; the broker without an agent {own_seconds:.1f} s after its disk was over it"
    )
    assert property_of(fleet[SILENT], AGENT, "ActiveState") == "failed"

    filled.unlink()
    (disk.mount_point / "ballast").unlink()
    fleet[SILENT].run("rm", DOWN)
    fleet[SILENT].run("systemctl", "daemon-reload")
    fleet[SILENT].run("systemctl", "start", AGENT)
    wait_for(lambda: states(fleet), lambda seen: set(seen.values()) == {"OPEN"})
