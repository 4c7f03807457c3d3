"""A rollout whose control host dies, at tasks that lots choose, and what the next rollout makes of it."""

from __future__ import annotations

import os
import random
import re
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from testbed.hosts.fleet import Fleet
from testbed.hosts.rollout import BROKER, REPOSITORY, PlayFailed, applied, play, property_of, wait_for
from testbed.hosts.spec import VolumeSpec
from tests.fleet.conftest import MakeKafka

VOLUMES = (
    VolumeSpec(path="/data/1", size_mebibytes=128),
    VolumeSpec(path="/data/2", size_mebibytes=128),
    VolumeSpec(path="/data/metadata", size_mebibytes=64),
)
NAMES = ("broker-1", "broker-2", "broker-3")
INTERRUPTIONS = int(os.environ.get("KQUOTA_INTERRUPTIONS", "5"))
SEED = int(os.environ.get("KQUOTA_SEED", str(int(time.time()))))

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


class Rollout:
    """The playbook, whose control host may die at a task."""

    def __init__(self, inventory: Path, packages: Path) -> None:
        self._inventory, self._packages = inventory, packages
        self.tasks: list[str] = []
        """The tasks of the last run, in their order."""

    def run(self, dies_at: int | None = None) -> str | None:
        """Run it; None if it was killed as that task began."""
        self.tasks = []

        def banner(kind: str, name: str) -> None:
            if kind == "TASK":
                self.tasks.append(name)
                if len(self.tasks) == dies_at:
                    kill_ansible()

        try:
            return play(
                self._inventory,
                REPOSITORY / "playbooks/rollout.yml",
                on_banner=banner,
                kquota_dist_dir=str(self._packages),
            )
        except PlayFailed:
            if dies_at is not None and len(self.tasks) >= dies_at:
                return None
            raise


def kill_ansible() -> None:
    """SIGKILL to ansible-playbook and its workers; their connections end with them."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any("ansible-playbook" in argument for argument in process.cmdline()):
                process.kill()


def brokers_run(fleet: Fleet) -> None:
    for name in NAMES:
        wait_for(
            lambda name=name: property_of(fleet[name], BROKER, "ActiveState"), lambda state: state == "active"
        )


@pytest.mark.accepts("F52")
def test_a_rollout_that_was_killed_anywhere_is_finished_by_the_next_one(
    make_kafka: MakeKafka, packages: Path
) -> None:
    print(f"\nseed {SEED}, {INTERRUPTIONS} interruptions")
    lots = random.Random(SEED)
    fleet, inventory = make_kafka(NAMES, "trixie", VOLUMES)
    rollout = Rollout(inventory, packages)
    begins_from, kills = 0, 0
    for _ in range(INTERRUPTIONS):
        # Further on each time, so that interruptions meet all parts of a first rollout.
        dies_at = begins_from + lots.randrange(10, 60)
        if rollout.run(dies_at) is not None:
            break
        kills += 1
        print(f"killed at task {dies_at}: {rollout.tasks[-1]}")
        brokers_run(fleet)
        assert {applied(fleet[name]).get("state") for name in NAMES} <= {"OPEN", None}
        begins_from = dies_at
    assert kills > 0
    finished = rollout.run()
    assert finished is not None
    for name in NAMES:
        host = fleet[name]
        wait_for(
            lambda host=host: applied(host),
            lambda seen: (seen.get("mode"), seen.get("state")) == ("enforce", "OPEN"),
        )
    again = rollout.run()
    assert again is not None
    assert set(re.findall(r"changed=(\d+)", again)) == {"0"}, again[-3000:]
