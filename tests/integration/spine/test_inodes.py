"""A disk that runs out of inodes while bytes are free."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.integration.spine.fleet import INODES, Fleet
from tests.integration.waiting import eventually
from tests.unit.wording import say

HARD_FREE = 0.02  # the agent's default
LeaveFree = Callable[[float], None]


def free_inodes(disk: Path) -> int:
    return os.statvfs(disk).f_favail


@pytest.fixture
def leave_free(fleet: Fleet) -> Iterator[LeaveFree]:
    """Makes empty files on the volume of broker 3, or removes some, until this share of inodes is free."""
    disk = fleet.disk(3).mount_point
    ballast = disk / "files"
    ballast.mkdir()
    names = (ballast / str(number) for number in count())

    def leave(share: float) -> None:
        wanted = round(share * os.statvfs(disk).f_files)
        for _ in range(free_inodes(disk) - wanted):
            os.mknod(next(names), 0o600)
        made = list(ballast.iterdir()) if free_inodes(disk) < wanted else []
        for name in made[: wanted - free_inodes(disk)]:
            name.unlink()

    yield leave
    shutil.rmtree(ballast, ignore_errors=True)


@pytest.mark.long
@pytest.mark.accepts("F35")
def test_a_disk_short_of_inodes_pauses_until_files_are_gone(fleet: Fleet, leave_free: LeaveFree) -> None:
    disk, agent = fleet.disk(3), fleet.agents[3]
    assert os.statvfs(disk.mount_point).f_files == INODES
    marks = fleet.marks()
    leave_free(0.015)
    fleet.await_enforced("PAUSE")
    assert disk.consumed_bytes() < 0.4 * disk.capacity_bytes(), "bytes are below the soft limit"
    sentence = say("over-hard-in-inodes", volume=disk.device, broker=3)
    for one in fleet.of():
        [reason] = one.decision["reasons"]
        assert (reason["broker_id"], reason["volume"], reason["resource"]) == (3, disk.device, "inodes")
        eventually(lambda one=one: one.told(f"PAUSE: {sentence}", marks[one.broker_id]), "it is logged")
    labels = {"volume": disk.device, "mount_point": str(disk.mount_point), "role": "data"}
    agent.await_metric(INODES, "kquota_volume_inodes", **labels)
    free = agent.metric("kquota_volume_inodes_free", **labels)
    assert free is not None
    assert free < HARD_FREE * INODES
    assert sentence in fleet.agents[1].order("explain")
    status = json.loads(fleet.agents[1].order("status", "--json"))
    of_broker = next(one for one in status["brokers"] if one["broker_id"] == 3)
    assert of_broker["volumes"][0]["inodes"]["free"] < HARD_FREE * INODES

    leave_free(0.035)  # half way between the limits, and above the release margin
    fleet.await_enforced("THROTTLE")
    assert 0.4 < fleet.agents[1].decision["factor"] < 0.6
    leave_free(0.1)
    fleet.await_enforced("OPEN")
    for one in fleet.of():
        one.await_passed("PAUSE", "THROTTLE", "OPEN", since=marks[one.broker_id])


@pytest.mark.long
@pytest.mark.accepts("F35", "F26")
def test_agents_that_count_no_inodes_live_with_those_that_do(fleet: Fleet, leave_free: LeaveFree) -> None:
    """One that counts none reports none, and is judged by bytes; it still follows the report of another."""
    off = {**fleet.agents[3].settings["limits"], "inodes": {"soft_free_percent": 0}}
    for broker_id in (1, 3):
        fleet.agents[broker_id].reload(limits=off)
    marks = fleet.marks()
    leave_free(0.015)
    reported = len(fleet.usage_of(3))
    while len(fleet.usage_of(3)) < reported + 3:
        assert all(agent.state == "OPEN" for agent in fleet.of())
    assert "Inodes" not in fleet.usage_of(3)[-1][1]["Volumes"][0]
    fleet.agents[3].reload(limits=fleet.agents[2].settings["limits"])
    fleet.await_enforced("PAUSE")
    leave_free(0.1)
    fleet.await_enforced("OPEN")
    fleet.agents[1].await_passed("PAUSE", "OPEN", since=marks[1])
