"""Where the replicas of a plan are, by the brokers of their partitions, and how they are moved."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from kquota.cli.move_run import Replica
from kquota.cli.relief_elsewhere import BrokerMover
from kquota.core.relief import StepKind
from kquota.core.relief_moves import brokers_reassignment
from kquota.core.relief_plan import PlannedStep
from kquota.kafka.operator_admin import PartitionReplicas
from kquota.kafka.reassign_tool import ReassignTool

NOW = datetime(2026, 11, 25, 10, 0, tzinfo=UTC)
STEP = PlannedStep(StepKind.REPLICA_MOVE, "visits-3", "replicas", "1,2", "4,2", 500, NOW)
HOME = Path("/opt/kafka/bin/kafka-reassign-partitions.sh")


class Connection:
    def __init__(self, *brokers: int) -> None:
        self.brokers = brokers

    def replicas_of(self, _topics: list[str]) -> Mapping[str, PartitionReplicas]:
        return {"visits-3": PartitionReplicas(self.brokers, in_sync=True)} if self.brokers else {}


class Rooms:
    def of(self, brokers: list[int]) -> dict[int, int]:
        return {one: room for one, room in {4: 300, 5: -20}.items() if one in brokers}


class Tool(ReassignTool):
    """Notes what it would be run with; the real tool runs in tests/integration/spine."""

    def __init__(self) -> None:
        super().__init__(HOME, "", {}, (0, 0))
        self.runs: list[tuple[str, ...]]
        object.__setattr__(self, "runs", [])

    def _run(self, *arguments: str, file: Mapping[str, object] | None = None) -> str:
        assert file == brokers_reassignment({"visits-3": "1,2"})
        self.runs.append(arguments)
        return ""


def mover(*brokers: int) -> BrokerMover:
    return BrokerMover(
        tool=Tool(),
        connection=cast("Any", Connection(*brokers)),
        broker_id=1,
        volumes=(),
        rooms=cast("Any", Rooms()),
        throttle=1000,
        stalled=timedelta(hours=1),
    )


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        ((1, 2), Replica("1,2", None, 500)),
        ((4, 2), Replica("4,2", None, 500)),
        ((4, 2, 1), Replica("1,2", "4,2", 0)),
        ((1, 2, 4), Replica("1,2", "4,2", 0)),
        ((5, 2), Replica("5,2", None, 500)),
        ((), Replica("", None, 500)),
    ],
)
def test_a_partition_on_both_ends_is_being_reassigned(brokers: tuple[int, ...], expected: Replica) -> None:
    assert mover(*brokers).look([STEP]) == {"visits-3": expected}


@pytest.mark.parametrize(
    ("brokers", "runs"),
    [
        (
            (4, 2, 1),
            [("--cancel", "--preserve-throttles"), ("--execute", "--additional", "--throttle", "1000")],
        ),
        ((1, 2, 4), [("--execute", "--additional", "--throttle", "1000")]),
        ((4, 2), [("--execute", "--additional", "--throttle", "1000")]),
    ],
)
def test_what_goes_the_other_way_is_ended_first(
    brokers: tuple[int, ...], runs: list[tuple[str, ...]]
) -> None:
    one = mover(*brokers)
    one.start({"visits-3": "1,2"})
    assert cast("Tool", one.tool).runs == runs


def test_the_room_is_that_of_the_broker_that_gets_a_replica() -> None:
    one = mover()
    assert one.target("4,2", "1,2") == "broker 4"
    assert one.target("1,2", "4,2") == "broker 1"
    assert one.missing_bytes("broker 4") == -300
    assert one.missing_bytes("broker 5") == 20
    assert one.missing_bytes("broker 6") == 0, "a report that is missing for a moment stops no copy"
