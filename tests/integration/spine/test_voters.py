"""Voters of the metadata quorum come and go: no state follows them, and no state waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.loopback.cluster import BOTH_ROLES
from testbed.loopback.plug_in import FENCE_PROPERTIES
from testbed.loopback.quorum import MetadataQuorum, QuorumUnchanged
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, VolumeSpec
from tests.integration.spine.fleet import HARD_FREE_PERCENTAGE, QUICK, Fleet
from tests.integration.waiting import eventually

_METADATA_DISK = VolumeSpec(128 * MIB)
_FULL_RATIO = HARD_FREE_PERCENTAGE / 100 / 2
"""The free share of the metadata volume: past the hard limit, with room for Kafka."""
_BREACH = -0.02
CHANGING, FILLED = 3, 2
"""The broker that becomes a voter and ceases to be one, and the one whose data fills its disk."""


@dataclass
class Electorate:
    fleet: Fleet
    quorum: MetadataQuorum

    def add(self, node_id: int) -> None:
        def added() -> bool:
            try:
                self.quorum.add(node_id)
            except QuorumUnchanged as reason:  # it may not have read all metadata yet
                print(reason)
            return node_id in self.voters()

        eventually(added, f"{node_id} is a voter", 120)

    def remove(self, node_id: int) -> None:
        def removed() -> bool:
            try:
                self.quorum.remove(node_id)
            except QuorumUnchanged as reason:  # a leader that goes may leave no answer
                print(reason)
            return node_id not in self.voters()

        eventually(removed, f"{node_id} is a voter no more", 120)

    def voters(self) -> set[int]:
        return set(eventually(self._voters, "there is a leader"))

    def _voters(self) -> dict[int, str]:
        try:
            return self.quorum.voters()
        except QuorumUnchanged:
            return {}

    def restart_as(self, *roles: str) -> None:
        """Restart the broker that changes with these roles; its agent reads its configuration again."""
        node = self.fleet.cluster.nodes[CHANGING]
        node.stop()
        node.take_roles(roles)
        self.fleet.cluster.restart(CHANGING)
        self.fleet.agents[CHANGING].reload()

    def metadata_volume(self) -> tuple[str, bool]:
        """The role of the metadata volume by the broker's last report, and whether it is over its limit."""
        volume = self.fleet.cluster.nodes[CHANGING].layout.metadata_volume
        assert volume is not None
        reported = {one["VolumeName"]: one for one in self.fleet.usage_of(CHANGING)[-1][1]["Volumes"]}
        found = reported[volume.device]
        free_ratio = 1 - found["Consumed"] / found["Capacity"]
        return str(found["Role"]), free_ratio < HARD_FREE_PERCENTAGE / 100


@pytest.fixture(scope="module")
def electorate(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Electorate]:
    """Three brokers, of which the first two are controllers, too, and the first one the only voter."""
    with Fleet(
        kafka_runtime,
        callback_jar,
        dict.fromkeys((1, FILLED, CHANGING), 1),
        settings=QUICK | {"staleness_seconds": 60},
        properties=FENCE_PROPERTIES,
        controllers=(1, FILLED),
        dynamic_quorum=True,
        metadata_disk=_METADATA_DISK,
    ) as fleet:
        for agent in fleet.of():
            agent.start()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        yield Electorate(fleet, MetadataQuorum(fleet.cluster, kafka_runtime))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.accepts("F56")
def test_voters_that_come_and_go_change_no_state_and_hold_none_up(electorate: Electorate) -> None:
    fleet = electorate.fleet
    assert electorate.voters() == {1}
    volume = fleet.cluster.nodes[CHANGING].layout.metadata_volume
    assert volume is not None
    volume.fill(leave_bytes=int(_FULL_RATIO * volume.capacity_bytes()))
    eventually(lambda: electorate.metadata_volume() == ("metadata", True), "it is reported")

    def joins() -> None:
        electorate.restart_as(*BOTH_ROLES)
        electorate.add(CHANGING)

    def leaves() -> None:
        electorate.remove(CHANGING)
        electorate.restart_as("broker")

    changes: tuple[tuple[Callable[[], None], set[int]], ...] = (
        (lambda: electorate.add(FILLED), {1, FILLED}),
        (joins, {1, FILLED, CHANGING}),
        (lambda: electorate.remove(1), {FILLED, CHANGING}),
        (lambda: electorate.add(1), {1, FILLED, CHANGING}),
        (leaves, {1, FILLED}),
    )
    for change, voters in changes:
        marks = fleet.marks()
        fleet.fill(FILLED, _BREACH)
        change()
        assert electorate.voters() == voters
        fleet.await_enforced("PAUSE")
        for agent in fleet.of():
            assert [reason["broker_id"] for reason in agent.decision["reasons"]] == [FILLED]
        fleet.clear()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        assert electorate.metadata_volume() == ("metadata", True), "it is full, and has no vote"
        for agent in fleet.of():
            agent.await_passed("PAUSE", "OPEN", since=marks[agent.broker_id])
            assert agent.applied["lost"] is None
