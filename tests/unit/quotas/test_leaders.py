"""Passing on the leaders of partitions: when the agent asks, and what it reports where it may not see all."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kquota.guard.applied_state import LeadersUsed
from kquota.guard.report import CycleReport
from kquota.host.boot_clock import BootClock
from kquota.kafka.admin import Pending
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.quotas.leaders import REGULAR_SECONDS, SOON_SECONDS, LeadersSchedule, LeaderWatch, Wanted
from tests.unit.guard.cycles import CLUSTER, VERIFIED, Bench, applied_state
from tests.unit.policy.golden import complaints

MISSING = KafkaFailure(Kind.TOPIC_MISSING, "there is no such topic")
DENIED = KafkaFailure(Kind.ACL_DENIED, "denied")
DOWN = KafkaFailure(Kind.UNREACHABLE, "no broker answers")


@dataclass
class Cluster:
    """Answers an Admin client's questions."""

    leaders_by_topic: Mapping[str, Sequence[int | None]] | KafkaFailure
    probe: KafkaFailure = MISSING
    asked: list[str] = field(default_factory=list)

    def describe_topic(self, name: str) -> Pending[Any]:
        self.asked.append(name)
        return Pending(lambda: self.probe)

    def leaders(self) -> Pending[Any]:
        return Pending(lambda: self.leaders_by_topic)


def report(*, divides: bool = True) -> CycleReport:
    """The report of a cycle whose plug-in divides by leaders, or does not."""
    bench = Bench()
    bench.ports.plug_in = applied_state(leaders=LeadersUsed("broker", 1) if divides else None), VERIFIED
    return bench.run()


@pytest.fixture
def watch(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LeaderWatch]:
    made = LeaderWatch(request.param, tmp_path / "decision.json", 1, BootClock())
    yield made
    made.close()


def followed(watch: LeaderWatch, seconds: float = 20) -> str:
    """The first trouble that is reported within this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for trouble in watch.follow(report()):
            return trouble.sentence
        time.sleep(0.02)
    raise AssertionError("there is no trouble")


@pytest.mark.parametrize("watch", [Cluster({"orders": [1, 2, 1, None]})], indirect=True)
def test_the_file_is_written_once_the_plug_in_divides_by_leaders(watch: LeaderWatch, tmp_path: Path) -> None:
    assert list(watch.follow(report(divides=False))) == []
    time.sleep(0.1)
    file = tmp_path / "leaders.json"
    assert not file.exists()
    asked_uptime_ms = BootClock().now().uptime_ms
    end = time.monotonic() + 20
    while not file.exists():
        assert list(watch.follow(report())) == []
        assert time.monotonic() < end
        time.sleep(0.02)
    document = json.loads(file.read_text("utf-8"))
    assert complaints("leaders", document) == []
    assert (document["cluster_id"], document["broker_id"]) == (CLUSTER, 1)
    assert document["topics"] == {"orders": [2, 3]}
    assert document["seen_uptime_ms"] >= asked_uptime_ms


@pytest.mark.parametrize("watch", [Cluster({"orders": [1]}, probe=DENIED)], indirect=True)
def test_a_principal_that_may_not_see_all_topics_passes_none_on(watch: LeaderWatch, tmp_path: Path) -> None:
    assert "may not see all topics: allow it to describe topic *" in followed(watch)
    assert not (tmp_path / "leaders.json").exists()


@pytest.mark.parametrize("watch", [Cluster(DOWN)], indirect=True)
def test_a_cluster_that_does_not_answer_is_reported(watch: LeaderWatch, tmp_path: Path) -> None:
    assert followed(watch) == "no broker answers"
    assert not (tmp_path / "leaders.json").exists()


MANY = {f"{number:05}-{'x' * 200}": [1] for number in range(6000)}


@pytest.mark.parametrize("watch", [Cluster(MANY)], indirect=True)
def test_more_topics_than_the_file_holds_are_reported(watch: LeaderWatch) -> None:
    assert "larger than readers accept" in followed(watch)


def test_the_name_that_is_asked_for_is_another_each_time(tmp_path: Path) -> None:
    cluster = Cluster({})
    made = LeaderWatch(cluster, tmp_path / "decision.json", 1, BootClock())  # type: ignore[arg-type]
    made._ask()
    made._ask()
    assert len(set(cluster.asked)) == 2, "an ACL for one name shows nothing"


def test_it_asks_each_half_minute_and_sooner_after_a_change() -> None:
    schedule, two = LeadersSchedule(), Wanted("c", frozenset({1, 2}))
    assert schedule.is_due(two, 0.0)
    schedule.asked(two, {"orders": (1, 2)}, 0.0)
    assert not schedule.is_due(two, SOON_SECONDS - 0.1)
    assert schedule.is_due(two, SOON_SECONDS)
    schedule.asked(two, {"orders": (1, 2)}, 10.0)
    assert not schedule.is_due(two, 9.9 + REGULAR_SECONDS)
    assert schedule.is_due(two, 10.0 + REGULAR_SECONDS)
    one = Wanted("c", frozenset({1}))
    assert schedule.is_due(one, 11.0), "a broker has gone, and its partitions have other leaders"
    schedule.asked(one, {"orders": (2, 2)}, 11.0)
    assert schedule.is_due(one, 11.0 + SOON_SECONDS)
    schedule.asked(one, {"orders": (2, 2)}, 16.0)
    assert not schedule.is_due(one, 15.9 + REGULAR_SECONDS)
