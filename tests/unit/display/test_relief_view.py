"""Options that make room, in words and as JSON."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from kquota.disks.segments import PartitionOnDisk, PartitionState, Segment
from kquota.display.relief_view import by_hand, inflow_text, option_lines, options_document
from kquota.retention.inflow import THROTTLED_RATE, THROTTLED_REPLICAS, Inflow
from kquota.retention.relief import Option, Step, StepKind

NOW = datetime(2026, 11, 25, 10, 0, tzinfo=UTC)
MOVE = Step(
    *(StepKind.LOGDIR_MOVE, "visits-3", 25_000_000_000, round(NOW.timestamp() * 1000) + 560_000, "log_dirs"),
    source="/data/1",
    destination="/data/2",
)


def test_a_move_says_where_to_and_that_nothing_is_lost() -> None:
    assert list(option_lines(1, Option((MOVE,), enough=True), NOW, groups_known=False)) == [
        "1. frees 25.0G by 2026-11-25T10:09:20Z (9 min 20 s), enough",
        "   move partition visits-3 from /data/1 to /data/2",
        "   loses nothing: its records stay on this broker",
    ]
    to_broker = replace(MOVE, kind=StepKind.REPLICA_MOVE, source="1,2", destination="3,2")
    assert list(option_lines(1, Option((to_broker,), enough=True), NOW, groups_known=False))[1:] == [
        "   move partition visits-3 from brokers 1,2 to 3,2",
        "   loses nothing: its records are on as many brokers and racks as before",
    ]
    (document,) = options_document([Option((MOVE,), enough=True)], groups_known=True)
    (step,) = document["steps"]
    assert (step["kind"], step["target"], step["setting"]) == ("logdir-move", "visits-3", "log_dirs")
    assert (step["from"], step["to"]) == ("/data/1", "/data/2")


def test_a_throttle_frees_nothing_and_says_what_it_slows() -> None:
    by_ms = round(NOW.timestamp() * 1000)
    steps = (
        Step(StepKind.THROTTLE, "visits", 0, by_ms, THROTTLED_REPLICAS, source="", destination="3:1"),
        Step(StepKind.THROTTLE, "1", 0, by_ms, THROTTLED_RATE, source="9", destination="1000000"),
    )
    assert list(option_lines(2, Option(steps, enough=False), NOW, groups_known=True)) == [
        "2. frees nothing, and slows what is copied to this volume",
        "   slow the copying of topic visits: follower.replication.throttled.replicas 3:1",
        "   loses nothing: these replicas stay behind until it is undone",
        "   throttle their replication to broker 1 to 1.00M/s: follower.replication.throttled.rate",
    ]


def test_the_replication_that_fills_a_volume_is_named_with_its_rate_and_its_end() -> None:
    inflow = Inflow(
        1, 250_000_000, {f"visits-{number}": 100_000 for number in range(7)}, {"a-0": 300_000}, {}, None
    )
    assert inflow_text("/dev/sdb1", inflow) == (
        "replication fills volume /dev/sdb1 at 1.00M/s: it gets replicas of a-0, visits-0, visits-1,"
        " visits-2, visits-3 and 3 more, and is full in 4 min 10 s"
    )
    copies = replace(inflow, replication={})
    assert inflow_text("/dev/sdb1", copies).startswith(
        "a copy between log dirs fills volume /dev/sdb1 at 300K/s"
    )


def test_what_people_alone_may_give_back_is_named() -> None:
    def directory(topic: str, state: PartitionState) -> PartitionOnDisk:
        segments = (Segment(0, 1_500_000, 0, is_active=False, log_bytes=1_500_000),)
        return PartitionOnDisk(topic, 0, "/data/1", state, segments)

    in_use = directory("visits", PartitionState.LOG)
    assert list(by_hand([in_use], "/dev/sdb1", "ext4", 0)) == []
    stray = [directory(f"gone-{number}", PartitionState.STRAY) for number in range(6)]
    assert list(by_hand([in_use, *stray], "/dev/sdb1", "ext4", 25_000_000_000)) == [
        "9.00M are in stray directories (…-stray) of topics gone-0, gone-1, gone-2, gone-3, gone-4 and 1"
        " more: neither Kafka nor kquota deletes them, because this broker does not hold these partitions"
        " any more",
        "25.0G are reserved for root: tune2fs -m 0 /dev/sdb1 gives them back, where the volume has nothing"
        " but log dirs",
    ]
    assert list(by_hand([], "/dev/sdb1", "xfs", 25_000_000_000)) == [], "it has no such blocks"
