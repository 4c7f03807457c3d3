"""The evidence in the brokers' logs and volumes after a disk has run full."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kquota.policy.decision import State
from testbed.demo.aftermath import Aftermath, BrokerLog
from testbed.demo.sight import Sight
from testbed.loopback.clients import PartitionHealth
from testbed.loopback.volumes import MIB
from tests.unit.demo.test_tally import sight

OFFLINE = "2026-11-21 WARN LogManager Stopping serving logs in dir /w/node-3/disk-1/kafka\n"


def full(step: Sight, free_bytes: int) -> Sight:
    broker = step.brokers[0]
    volume = replace(broker.volumes[0], capacity_bytes=100 * MIB, consumed_bytes=100 * MIB - free_bytes)
    return replace(step, brokers=(replace(broker, volumes=(volume,)),))


def test_each_fact_is_told_once(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.write_text("java.io.IOException: No space left on device\n" + OFFLINE + "half a line, No space left")
    aftermath = Aftermath({3: BrokerLog(log)})
    step = full(sight(7.0, 0, State.OPEN), free_bytes=1000)

    news = aftermath.notice(step)

    assert news == ["volume /dev/loop1 of broker 1 is full", "broker 3 takes log dir disk-1 offline"]
    assert (aftermath.first_full_at, aftermath.no_space_errors) == (7.0, 1)
    with log.open("a") as more:
        more.write(" on device\n" + OFFLINE)
    dead = replace(step, at=9.0, brokers=(replace(step.brokers[0], running=False),))
    assert aftermath.notice(dead) == ["broker 1 has shut itself down: it has no log dir left"]
    assert (aftermath.first_full_at, aftermath.no_space_errors) == (7.0, 2)
    assert aftermath.notice(dead) == []


def test_log_dirs_of_one_path_on_two_hosts_are_two(tmp_path: Path) -> None:
    logs = {1: tmp_path / "1.log", 3: tmp_path / "3.log"}
    for log in logs.values():
        log.write_text(OFFLINE)
    aftermath = Aftermath({broker_id: BrokerLog(log) for broker_id, log in logs.items()})

    news = aftermath.notice(full(sight(7.0, 0, State.OPEN), free_bytes=2 * MIB))

    assert news == ["broker 1 takes log dir disk-1 offline", "broker 3 takes log dir disk-1 offline"]
    assert len(aftermath.offline_log_dirs) == 2


def test_a_volume_with_room_is_not_full(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.touch()
    aftermath = Aftermath({1: BrokerLog(log)})

    assert aftermath.notice(full(sight(1.0, 0, State.OPEN), free_bytes=2 * MIB)) == []
    assert aftermath.first_full_at is None


def test_a_partition_that_lost_its_leader_is_told_once() -> None:
    aftermath = Aftermath({})
    partitions = [
        PartitionHealth("orders", 0, 1, (1, 3), (1,)),
        PartitionHealth("orders", 2, None, (1, 3), (1,)),
    ]

    assert aftermath.notice_partitions(partitions) == [
        "partition 2 of orders has no leader: it can't be written or read"
    ]
    assert aftermath.notice_partitions(partitions) == []
