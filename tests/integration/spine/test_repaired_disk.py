"""A log dir is taken offline by I/O errors, its disk is repaired, and the broker has it again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from testbed.loopback.clients import admin_client, create_topic, partition_health
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import VolumeUnavailable
from tests.integration.spine.fleet import QUICK, Fleet
from tests.integration.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

BROKER, SECOND = 3, 2
"""The broker with two disks, and the number of the one that breaks."""
SURVIVORS = (1, 2)
_BREACH = -0.2


@pytest.fixture(scope="module")
def repairable(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """Three brokers, the last one with two disks."""
    # A replica whose log dir has failed holds up the usage topic until it is dropped from the in-sync ones.
    properties = {"replica.lag.time.max.ms": "5000"}
    settings = {**QUICK, "staleness_seconds": 60}
    volumes = {1: 1, 2: 1, BROKER: 2}
    with Fleet(kafka_runtime, callback_jar, volumes, settings=settings, properties=properties) as fleet:
        for agent in fleet.of():
            agent.start()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        yield fleet


def break_disk(fleet: Fleet, topic: str) -> None:
    """Have each access to the disk fail, and wait until the broker has taken its log dir offline."""
    agent, volume = fleet.agents[BROKER], fleet.disk(BROKER, SECOND)
    # Data that is not on the disk yet would be lost.
    subprocess.run(["sync", "--file-system", str(volume.mount_point)], check=True)
    subprocess.run(["xfs_io", "-x", "-c", "shutdown", str(volume.mount_point)], check=True)
    # Only a write shows the broker that the disk is gone: new partitions go to the emptier log dir.
    create_topic(admin_client(fleet.cluster.client_configuration()), topic, [[1, BROKER]] * 8)
    log_dir = str(fleet.cluster.nodes[BROKER].layout.log_dirs[SECOND - 1])
    eventually(lambda: agent.applied["offline_log_dirs"] == [log_dir], "the plug-in reports the log dir")


def repair_disk(fleet: Fleet) -> None:
    """Repair the disk of a broker that is stopped."""
    volume = fleet.disk(BROKER, SECOND)

    def is_unmounted() -> bool:
        try:
            volume.unmount()
        except VolumeUnavailable as busy:  # the agent just looks at it
            print(busy)
            return False
        return True

    eventually(is_unmounted, "nothing uses it")
    volume.repair()


def statuses(fleet: Fleet, since: int) -> list[str]:
    """The status of the second volume in one report after the other, as far as it changes."""
    reports = [report for _, report in fleet.usage_of(BROKER)[since:]]
    mount_point = str(fleet.disk(BROKER, SECOND).mount_point)  # its name is a loop device, and changes
    found = [
        one.get("Status", "ok")
        for report in reports
        for one in report["Volumes"]
        if one["MountPoint"] == mount_point
    ]
    return [status for status, _ in groupby(found)]


def await_whole(fleet: Fleet, topic: str) -> None:
    admin = admin_client(fleet.cluster.client_configuration())
    eventually(
        lambda: not any(one.under_replicated for one in partition_health(admin, topic)),
        "the repaired log dir has its replicas again",
        120,
    )


@pytest.mark.accepts("F55")
@pytest.mark.parametrize("is_emptied", [True, False], ids=["emptied", "still full"])
def test_a_full_disk_that_breaks_and_is_repaired_counts_by_what_is_on_it(
    repairable: Fleet, is_emptied: bool
) -> None:
    fleet, agent, topic = repairable, repairable.agents[BROKER], f"spread-{is_emptied}"
    marks, reports = fleet.marks(), len(fleet.usage_of(BROKER)) - 1  # with the last one before
    fleet.fill(BROKER, _BREACH, SECOND)
    fleet.await_enforced("PAUSE")
    break_disk(fleet, topic)
    fleet.await_enforced("OPEN")
    assert fleet.cluster.nodes[BROKER].running(), "offline, it has no vote while the broker lives"

    fleet.cluster.nodes[BROKER].stop()
    fleet.await_enforced("PAUSE", SURVIVORS)
    repair_disk(fleet)
    if is_emptied:
        fleet.clear()
    repaired_marks = fleet.marks()
    fleet.cluster.restart(BROKER)
    eventually(lambda: agent.applied["offline_log_dirs"] == [], "the broker has its log dir again")
    eventually(lambda: statuses(fleet, reports)[-1:] == ["ok"], "it is reported")
    if not is_emptied:
        fleet.await_enforced("PAUSE")
        device = fleet.disk(BROKER, SECOND).device
        for one in fleet.of():
            eventually(
                lambda one=one: (
                    [(why["broker_id"], why["volume"], why["cause"]) for why in one.decision["reasons"]]
                    == [(BROKER, device, "hard")]
                ),
                f"{one} decides by the volume itself",
            )
            assert one.decision["undetermined"] == []
            assert set(one.states_told(repaired_marks[one.broker_id])) <= {"PAUSE"}, "it never opened"
        fleet.clear()
    fleet.await_enforced("OPEN", timeout_seconds=120)
    await_whole(fleet, topic)
    passed = statuses(fleet, reports)
    assert passed in (["ok", "offline", "ok"], ["ok", "failed", "offline", "ok"]), passed
    for broker_id in SURVIVORS:
        fleet.agents[broker_id].await_passed("PAUSE", "OPEN", "PAUSE", "OPEN", since=marks[broker_id])


@pytest.mark.accepts("F55")
def test_a_disk_with_room_that_breaks_and_is_repaired_holds_no_producer_afterwards(
    repairable: Fleet,
) -> None:
    fleet, agent = repairable, repairable.agents[BROKER]
    reports = len(fleet.usage_of(BROKER)) - 1  # with the last one before
    break_disk(fleet, "roomy")
    fleet.await_enforced("OPEN")
    eventually(lambda: statuses(fleet, reports)[-1:] == ["offline"], "it is reported")
    marks, sequence = fleet.marks(), agent.applied["sequence"]
    fleet.cluster.nodes[BROKER].stop()
    fleet.cluster.restart(BROKER)
    eventually(lambda: agent.applied["sequence"] > sequence, "the broker runs without its disk")
    assert agent.applied["offline_log_dirs"] != []
    fleet.cluster.nodes[BROKER].stop()
    repair_disk(fleet)
    fleet.cluster.restart(BROKER)
    eventually(lambda: agent.applied["offline_log_dirs"] == [], "the broker has its log dir again")
    eventually(lambda: statuses(fleet, reports)[-1:] == ["ok"], "it is reported")
    fleet.await_enforced("OPEN")
    await_whole(fleet, "roomy")
    for broker_id in SURVIVORS:
        assert set(fleet.agents[broker_id].states_told(marks[broker_id])) <= {"OPEN"}
    passed = statuses(fleet, reports)
    assert passed in (["ok", "offline", "ok"], ["ok", "failed", "offline", "ok"]), passed
