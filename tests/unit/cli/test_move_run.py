"""Applying plans of moves and undoing them, interrupted at any moment, on a broker that copies by itself."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.cli.move_run import MoveRun, Replica
from kquota.cli.plan_run import ReliefStopped, Room
from kquota.core.relief import Option, Step, StepKind
from kquota.core.relief_plan import Plan, PlannedStep, PlanState, plan_from_document, planned
from kquota.kafka.reassign_tool import ToolFailed
from tests.unit.cli.test_relief_run import BEGUN, Interrupted
from tests.unit.core.clusters import bounded
from tests.unit.core.golden import complaints

FULL, EMPTY = "/data/1", "/data/2"
DELAY = timedelta(seconds=60)


@dataclass
class Broker:
    """Two log dirs, each a volume with a soft limit at 100; it copies ten bytes a second, and removes what it
    has copied a minute later.
    """

    sizes: Mapping[str, int]
    at: dict[str, str]
    ballast: dict[str, int] = field(default_factory=lambda: {FULL: 0, EMPTY: 0})
    copies: dict[str, tuple[str, int]] = field(default_factory=dict)
    removed: list[tuple[str, str, int, datetime]] = field(default_factory=list)
    rate: int = 10
    now: datetime = BEGUN
    reassigned_names: Collection[str] = ()
    failure: str | None = None
    stalled: timedelta = timedelta(minutes=5)
    silent_until: datetime = BEGUN
    hindered: str | None = None
    finished: dict[str, str] = field(default_factory=dict)
    starts: list[dict[str, str]] = field(default_factory=list)
    calls_left: int = 10**9
    file: str = ""
    said: list[str] = field(default_factory=list)

    def _live(self) -> None:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise Interrupted

    def reassigned(self) -> Collection[str]:
        self._live()
        if self.failure is not None:
            raise ToolFailed(self.failure)
        return self.reassigned_names

    def start(self, moves: Mapping[str, str]) -> None:
        self._live()
        if self.failure is not None:
            raise ToolFailed(self.failure)
        self.starts.append(dict(moves))
        for name, log_dir in moves.items():
            to, copied = self.copies.get(name, (log_dir, 0))
            if to != log_dir or self.at[name] == log_dir:
                self.copies.pop(name, None)
                if copied:
                    self.removed.append((name, to, copied, self.now + DELAY))
            if self.at[name] != log_dir:
                self.copies.setdefault(name, (log_dir, 0))
        self._live()

    def look(self, steps: Collection[PlannedStep]) -> dict[str, Replica]:
        self._live()
        if self.now < self.silent_until:
            raise ToolFailed("no broker answers")
        found = {}
        for name in (step.target for step in steps):
            copied_to, copied = self.copies.get(name, (None, 0))
            removed = sum(size for one, _, size, _ in self.removed if one == name)
            found[name] = Replica(self.at[name], copied_to, self.sizes[name], copied, removed)
        return found

    def obstacle(self) -> str | None:
        return self.hindered

    def target(self, goal: str, _other: str) -> str:
        return goal

    def missing_bytes(self, target: str) -> int:
        return self.room_of(target).missing_bytes

    def finish(self, moves: Mapping[str, str]) -> None:
        self._live()
        self.finished = dict(moves)

    def room_of(self, log_dir: str) -> Room:
        here = sum(size for name, size in self.sizes.items() if self.at[name] == log_dir)
        here += sum(size for to, size in self.copies.values() if to == log_dir)
        here += sum(size for _, place, size, _ in self.removed if place == log_dir)
        return Room(self.ballast[log_dir] + here, 100)

    def sleep(self, seconds: float) -> None:
        self._live()
        self.now += timedelta(seconds=seconds)
        for name, (log_dir, size) in list(self.copies.items()):
            copied = min(size + round(self.rate * seconds), self.sizes[name])
            self.copies[name] = log_dir, copied
            if copied == self.sizes[name]:
                self.removed.append((name, self.at[name], copied, self.now + DELAY))
                self.at[name] = log_dir
                del self.copies[name]
        self.removed = [one for one in self.removed if one[3] > self.now]

    def save(self, plan: Plan) -> None:
        self._live()
        self.file = json.dumps(plan.to_document())
        assert complaints("relief", plan.to_document()) == []
        self._live()

    def run(self) -> MoveRun:
        return MoveRun(
            plan=plan_from_document(json.loads(self.file)),
            save=self.save,
            room=lambda: self.room_of(FULL),
            say=self.said.append,
            sleep=self.sleep,
            now=lambda: self.now,
            mover=self,
            removal_delay=DELAY,
        )

    def states(self) -> list[str]:
        return [step["state"] for step in json.loads(self.file)["steps"]]


def broker(sizes: Mapping[str, int], ballast: int = 60, **other: object) -> Broker:
    """Return a broker with a plan that moves all of these replicas, and has not begun."""
    by_ms = round((BEGUN + timedelta(seconds=90)).timestamp() * 1000)
    steps = tuple(
        Step(
            *(StepKind.LOGDIR_MOVE, name, size, by_ms, "log_dirs"),
            source=FULL,
            destination=EMPTY,
        )
        for name, size in sizes.items()
    )
    plan = Plan("p", "alice", "full", BEGUN, "c", 1, "/dev/sdb1", 50, planned(Option(steps, enough=True), {}))
    made = Broker(sizes, dict.fromkeys(sizes, FULL), {FULL: ballast, EMPTY: 0})
    made.save(plan)
    return replace(made, **other)  # type: ignore[arg-type]


@pytest.mark.accepts("G15")
def test_replicas_are_moved_at_once_and_the_volume_is_watched_until_the_broker_has_removed_them() -> None:
    here = broker({"a-0": 40, "b-1": 20})
    run = here.run()
    run.check()
    assert here.starts == []
    assert run.apply()
    assert here.starts == [{"a-0": EMPTY, "b-1": EMPTY}]
    assert here.at == {"a-0": EMPTY, "b-1": EMPTY}
    assert here.now - BEGUN == timedelta(seconds=62), "b-1 is copied after 2 s, which is enough, and removed"
    assert here.said[:4] == [
        "0 of 60 copied",
        "20 of 60 copied, 20/s",
        "partition b-1 is on /data/2",
        "40 of 60 copied, 20/s",
    ]
    assert "the broker removes 60 within 60 s" in here.said
    assert (run.plan.state, here.states()) == (PlanState.APPLIED, ["applied", "applied"])
    assert here.run().undo() is False, "the ballast and both are more than the limit"
    assert here.at == {"a-0": EMPTY, "b-1": FULL}


@pytest.mark.accepts("G15")
def test_undone_all_replicas_are_where_they_were() -> None:
    here = broker({"a-0": 40, "b-1": 20})
    assert here.run().apply()
    here.ballast[FULL] = 40
    assert here.run().undo()
    assert here.at == {"a-0": FULL, "b-1": FULL}
    assert here.removed == []
    assert here.run().plan.state is PlanState.RESTORED
    with pytest.raises(ReliefStopped, match="plan p is restored"):
        here.run().check()


@pytest.mark.accepts("G15")
@given(cuts=st.lists(st.integers(0, 60), max_size=5), goes_on=st.booleans(), lasts=st.integers(0, 100))
@bounded(100)
def test_interrupted_at_any_moment_it_goes_on_or_goes_back(
    cuts: list[int], goes_on: bool, lasts: int
) -> None:
    here = broker({"a-0": 40, "b-1": 20})
    for number, calls in enumerate(cuts):
        here.calls_left = calls
        try:
            if goes_on or number == 0:
                here.run().apply()
            else:
                here.run().undo()
        except Interrupted:
            here.calls_left = 10**9
            here.sleep(lasts)
    here.calls_left = 10**9
    if goes_on:
        here.run().check()
        assert here.run().apply()
        assert here.at["b-1"] == EMPTY
        assert here.room_of(EMPTY).missing_bytes <= 0
    here.ballast[FULL] = 0
    assert here.run().undo()
    assert here.at == {"a-0": FULL, "b-1": FULL}
    assert here.copies == {}


def test_an_interrupted_copy_is_ended_by_undo_and_needs_no_room() -> None:
    here = broker({"a-0": 60}, calls_left=12)
    with pytest.raises(Interrupted):
        here.run().apply()
    here.calls_left = 10**9
    assert here.copies
    assert here.run().undo()
    assert (here.at, here.copies) == ({"a-0": FULL}, {})


def test_nothing_is_moved_where_nothing_is_missing() -> None:
    here = broker({"a-0": 40}, ballast=60)
    assert here.run().apply()
    assert (here.starts, here.states()) == ([], ["proposed"])


def test_what_is_not_enough_is_said_when_its_time_is_over() -> None:
    here = broker({"a-0": 40}, ballast=120)
    assert not here.run().apply()
    assert here.at == {"a-0": EMPTY}
    assert here.states() == ["applied"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reassigned_names": {"a-0"}}, "partition a-0 is being reassigned between brokers"),
        ({"at": {"a-0": "/data/3"}}, "partition a-0 is neither on /data/1 nor on /data/2"),
        ({"copies": {"a-0": ("/data/3", 1)}}, "partition a-0 is being copied to /data/3 already"),
        ({"copies": {"a-0": (EMPTY, 1)}}, "partition a-0 is being copied to /data/2 already"),
        (
            {"ballast": {FULL: 90, EMPTY: 61}},
            "has room for 39 until a soft limit, and 40 would be copied",
        ),
        ({"failure": "the tool failed: denied"}, "the tool failed: denied"),
        ({"hindered": "others have a throttle"}, "others have a throttle"),
    ],
)
def test_a_plan_that_does_not_fit_any_more_changes_nothing(change: dict[str, object], words: str) -> None:
    here = replace(broker({"a-0": 40}, ballast=90), **change)  # type: ignore[arg-type]
    with pytest.raises(ReliefStopped, match="nothing was changed: ") as stopped:
        here.run().check()
    assert words in str(stopped.value)
    assert here.starts == []


def test_a_move_that_the_tool_refuses_is_in_the_plan_and_can_be_tried_again() -> None:
    here = broker({"a-0": 60}, failure="the tool failed: denied")
    with pytest.raises(ReliefStopped, match="denied"):
        here.run().apply()
    assert (here.states(), here.at) == (["failed"], {"a-0": FULL})
    here.failure = None
    here.run().check()
    assert here.run().apply()


def test_a_target_that_comes_over_its_soft_limit_ends_the_copying() -> None:
    here = broker({"a-0": 60}, ballast=80)
    begun = here.sleep

    def sleep(seconds: float) -> None:
        here.ballast[EMPTY] = 90
        begun(seconds)

    with pytest.raises(ReliefStopped, match="/data/2 has come over a soft limit: the copying was"):
        replace(here.run(), sleep=sleep).apply()
    assert here.starts == [{"a-0": EMPTY}, {"a-0": FULL}]
    assert (here.copies, here.states()) == ({}, ["failed"])
    assert here.run().undo()


def test_a_copy_that_gets_no_bytes_has_stopped() -> None:
    here = broker({"a-0": 60}, rate=0)
    with pytest.raises(ReliefStopped, match="nothing was copied for 300 s: see the broker's log"):
        here.run().apply()
    assert here.now - BEGUN == timedelta(minutes=5)


def test_a_replica_that_others_have_moved_since_stays() -> None:
    here = broker({"a-0": 60})
    assert here.run().apply()
    here.at["a-0"] = "/data/3"
    assert not here.run().undo()
    assert here.said[-1] == "partition a-0 is on /data/3 by now: it stays"
    assert here.run().plan.steps[0].problem == here.said[-1]


def test_at_its_end_the_mover_takes_back_what_the_moves_needed() -> None:
    here = broker({"a-0": 40, "b-1": 20})
    assert here.run().apply()
    assert here.finished == {"a-0": EMPTY, "b-1": EMPTY}
    here.ballast[FULL] = 60
    assert not here.run().undo()
    assert here.finished == {"a-0": EMPTY, "b-1": FULL}


def test_a_cluster_that_does_not_answer_is_asked_again_for_a_while() -> None:
    here = broker({"a-0": 60}, silent_until=BEGUN + timedelta(seconds=30))
    assert here.run().apply()
    here = broker({"a-0": 60}, silent_until=BEGUN + timedelta(seconds=90))
    with pytest.raises(ReliefStopped, match="no broker answers"):
        here.run().apply()
    assert here.now - BEGUN == timedelta(seconds=60)
