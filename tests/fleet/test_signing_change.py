"""Signatures demanded, and given up again, on three hosts with producers running."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.hosts.fleet import Fleet
from testbed.hosts.rollout import REPOSITORY, applied, journal, now, play, wait_for
from testbed.hosts.spec import VolumeSpec
from tests.fleet.conftest import MakeKafka
from tests.fleet.producers import Producers, await_flow, longest_silences_seconds, producing

NAMES = ("broker-1", "broker-2", "broker-3")
VOLUMES = (
    VolumeSpec(path="/data/1", size_mebibytes=256),
    VolumeSpec(path="/data/metadata", size_mebibytes=64),
)
RATE_BYTES_PER_SECOND = 25_000
NEVER_SILENT_SECONDS = 10

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Running:
    """Hosts with kquota, what an operator runs for them, and a producer for each broker."""

    fleet: Fleet
    inventory: Path
    packages: Path
    producers: Producers

    def roll_out(self, signing: str) -> None:
        _roll_out(self.inventory, self.packages, signing)

    def signing(self) -> dict[str, object]:
        """The mode of signing by `kquota status` on each host."""
        seen = {name: self.fleet[name].run("kquota", "status", "--json").stdout for name in NAMES}
        return {name: json.loads(text)["signing"] for name, text in seen.items()}


def _roll_out(inventory: Path, packages: Path, signing: str) -> None:
    variables = {"kquota_dist_dir": str(packages), "kquota_signing": signing}
    play(inventory, REPOSITORY / "playbooks/rollout.yml", **variables)


@pytest.fixture(scope="module")
def running(
    make_kafka: MakeKafka, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Brokers that enforce, whose agents do not sign yet."""
    own = {"kafka_clients_host": "{{ ansible_host }}"}
    fleet, inventory = make_kafka(NAMES, "trixie", VOLUMES, {name: (name, own) for name in NAMES})
    _roll_out(inventory, packages, "off")
    logs = tmp_path_factory.mktemp("load")
    with producing(fleet, inventory, NAMES, RATE_BYTES_PER_SECOND, logs) as producers:
        yield Running(fleet, inventory, packages, producers)


@pytest.mark.accepts("G11")
@pytest.mark.parametrize("signing", ["required", "off"])
def test_a_change_of_signing_pauses_no_broker_and_silences_no_producer(
    running: Running, signing: str
) -> None:
    fleet = running.fleet
    for name in NAMES:
        wait_for(lambda host=fleet[name]: applied(host).get("state"), lambda state: state == "OPEN")
    await_flow(running.producers, RATE_BYTES_PER_SECOND)
    marks, begun = {name: now(fleet[name]) for name in NAMES}, time.monotonic()
    running.roll_out(signing)
    wait_for(running.signing, lambda seen: seen == dict.fromkeys(NAMES, signing))
    time.sleep(5)
    silences = longest_silences_seconds(running.producers, begun)
    longest = {name: round(seconds, 1) for name, seconds in silences.items()}
    took_seconds = time.monotonic() - begun
    print(f"\nto {signing} in {took_seconds:.0f} s; longest silence of each producer in seconds {longest}")
    for name in NAMES:
        lines = journal(fleet[name], f"--after-cursor={marks[name]}").splitlines()
        assert [line for line in lines if line.startswith(("THROTTLE", "PAUSE"))] == []
        assert applied(fleet[name])["state"] == "OPEN"
    assert max(silences.values()) < NEVER_SILENT_SECONDS
