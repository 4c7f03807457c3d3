"""History: every transition and order, and a sample now and then, in the form of its schema."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kquota.guard.applied_state import parse_applied_state
from kquota.history.history import HistoryRecorder
from kquota.retention.topic_sizes import Contents
from tests.unit.guard.cycles import CLUSTER, NEWS, Bench, arrival, volume
from tests.unit.policy.golden import complaints, sample
from tests.unit.retention.test_topic_sizes import contents


class Historian:
    def __init__(self, broker_id: int = 1) -> None:
        self.bench = Bench()
        self.recorder = HistoryRecorder(broker_id, "an-instance", sample_interval_seconds=30)

    def run(self, *arrivals: Any, after: float = 0.2) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = list(self.recorder.record(self.bench.run(*arrivals, after=after)))
        for record in records:
            assert complaints("history", record) == []
        return records

    def settle(self) -> list[dict[str, Any]]:
        return [record for _ in range(4) for record in self.run()]


def kinds(records: list[dict[str, Any]]) -> list[str]:
    return [record["Kind"] for record in records]


def test_a_sample_is_taken_at_the_first_decision_and_at_intervals() -> None:
    historian = Historian()
    first = historian.settle()
    assert kinds(first) == ["usage", "decision"]
    usage, decision = first
    assert (usage["ClusterId"], usage["BrokerId"], usage["InstanceId"]) == (CLUSTER, 1, "an-instance")
    assert usage["Body"]["Volumes"][0]["VolumeName"] == "/dev/sda1"
    assert decision["Body"]["State"] == "OPEN"
    assert "PreviousState" not in decision["Body"]
    assert historian.run(after=25) == []
    again = historian.run(after=10)
    assert kinds(again) == ["usage", "decision"]
    assert [record["Sequence"] for record in again] == [2, 2], "each kind counts for itself"


def test_each_transition_is_recorded_at_once_with_its_figures() -> None:
    historian = Historian()
    historian.settle()
    historian.bench.ports.volumes = (volume(15, topics=("a", "b")),)
    usage, decision = historian.run()
    assert usage["Body"]["Volumes"][0]["Consumed"] == 85
    assert (decision["Body"]["PreviousState"], decision["Body"]["State"]) == ("OPEN", "THROTTLE")
    assert decision["Body"]["Factor"] == 0.5
    assert decision["Body"]["Reasons"][0]["BrokerId"] == 1
    assert historian.run() == []


def test_topics_are_named_when_they_change_and_once_an_hour_and_referred_to_otherwise() -> None:
    historian = Historian()
    historian.settle()

    def sampled(*topics: str, after: float = 31) -> dict[str, Any]:
        historian.bench.ports.volumes = (volume(15, topics=topics or None), volume(15, name="/dev/sdb1"))
        usage = next(record for record in historian.run(after=after) if record["Kind"] == "usage")
        first, second = usage["Body"]["Volumes"]
        assert not {"Topics", "TopicsSequence"} & set(second)
        return {"Sequence": usage["Sequence"]} | {key: first[key] for key in first if "Topics" in key}

    def named(sequence: int, *topics: str) -> dict[str, Any]:
        return {"Sequence": sequence, "Topics": list(topics), "TopicsComplete": True}

    assert sampled("a", "b") == named(2, "a", "b")
    assert sampled("a", "b") == {"Sequence": 3, "TopicsSequence": 2}
    assert sampled("a", "b", after=3_500) == {"Sequence": 4, "TopicsSequence": 2}
    assert sampled("a", "b", after=101) == named(5, "a", "b"), "an hour later"
    assert sampled("a") == named(6, "a")
    assert sampled() == {"Sequence": 7}, "they are not known"
    assert sampled("a") == named(8, "a")


def test_an_order_is_written_down_by_the_first_active_broker_alone() -> None:
    for broker_id, expected in ((1, ["operator"]), (2, [])):
        historian = Historian(broker_id)
        historian.bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
        historian.bench.run(arrival(2, historian.bench.usage(50)))
        historian.settle()
        until = "2026-11-20T11:00:00.000Z"
        hold = {"Action": "pause", "Until": until, "Reason": "a test", "Actor": "alice"}
        records = historian.run(arrival("hold", hold))
        assert [kind for kind in kinds(records) if kind == "operator"] == expected
        for record in records[: len(expected)]:
            assert record["Body"] == {"Key": "hold", "Order": hold}


def test_clients_are_told_of_between_two_samples_of_one_plug_in() -> None:
    historian = Historian()
    document = sample("applied", "clients")
    assert isinstance(document, dict)
    first = parse_applied_state(document)
    later = replace(first, written_uptime_ms=first.written_uptime_ms + 30_000)
    restarted = replace(
        later, started_uptime_ms=first.started_uptime_ms + 1, written_uptime_ms=later.written_uptime_ms + 1
    )
    told = []
    for applied in (first, later, restarted):
        historian.settle()
        report = replace(historian.bench.run(after=31), applied=applied)
        records = list(historian.recorder.record(report))
        assert all(complaints("history", record) == [] for record in records)
        told.append([record["Body"]["WindowSeconds"] for record in records if record["Kind"] == "clients"])
    assert told == [[], [30.0], []]


def test_nothing_is_recorded_of_a_cluster_nobody_knows() -> None:
    historian = Historian()
    historian.bench.news = replace(NEWS, cluster_id=None)
    assert historian.settle() == []


def test_a_look_at_the_segments_is_recorded_once_with_topics_and_expiry() -> None:
    historian = Historian()
    historian.settle()
    records = list(historian.recorder.record(historian.bench.run(after=0.2), contents(25, span_seconds=600)))
    assert kinds(records) == ["topics", "expiry"]
    for record in records:
        assert complaints("history", record) == []
        assert record["At"] == "2026-11-20T10:15:30.000Z"
    failed = Contents(datetime(2026, 11, 20, tzinfo=UTC), None, (), ("the disk does not answer",))
    assert list(historian.recorder.record(historian.bench.run(after=0.2), failed)) == []
