"""Applying relief plans and undoing them, interrupted at any moment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.cli.relief_run import ReliefRun, ReliefStopped, Room
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.retention.operator_admin import TopicSetting
from kquota.retention.relief import Option, Step, StepKind
from kquota.retention.relief_plan import Plan, PlanState, plan_from_document, planned
from tests.unit.policy.clusters import bounded
from tests.unit.policy.golden import complaints

BEGUN = datetime(2026, 11, 25, 10, 0, tzinfo=UTC)
DEFAULT = "604800000"
HOUR_MS = 3_600_000
DENIED = KafkaFailure(Kind.ACL_DENIED, "The cluster denied alter-configs on topic a.")


class Interrupted(Exception):
    """The process is killed here."""


@dataclass
class Cluster:
    """Topics whose retention frees the volume a while after it is shortened, and the plan's file."""

    own: dict[str, str | None]
    frees: Mapping[str, int]
    consumed_bytes: int = 100
    now: datetime = BEGUN
    delay: timedelta = timedelta(seconds=60)
    denies: str | None = None
    calls_left: int = 10**9
    file: str = ""
    due: dict[str, datetime] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def _live(self) -> None:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise Interrupted

    def read(self, topic: str, _name: str) -> TopicSetting | KafkaFailure:
        self._live()
        own = self.own[topic]
        return TopicSetting(DEFAULT if own is None else own, own)

    def change(
        self, topic: str, _name: str, value: str | None, *, validate_only: bool = False
    ) -> KafkaFailure | None:
        self._live()
        if topic == self.denies:
            return DENIED
        if not validate_only:
            self.own[topic] = value
            if value == "3600000":
                self.due.setdefault(topic, self.now + self.delay)
            self._live()
        return None

    def save(self, plan: Plan) -> None:
        self._live()
        self.file = json.dumps(plan.to_document())
        assert complaints("relief", plan.to_document()) == []
        self._live()

    def room(self) -> Room:
        freed = sum(self.frees[topic] for topic, due in self.due.items() if due <= self.now)
        return Room(self.consumed_bytes - freed, 50)

    def sleep(self, seconds: float) -> None:
        self._live()
        self.now += timedelta(seconds=seconds)

    def run(self) -> ReliefRun:
        plan = plan_from_document(json.loads(self.file))
        return ReliefRun(
            plan, self.save, self.room, self.said.append, self.sleep, lambda: self.now, settings=self
        )


def cluster(own: Mapping[str, str | None], frees: Mapping[str, int], **other: object) -> Cluster:
    """Return a cluster with a plan for these topics, that has not begun."""
    by_ms = round((BEGUN + timedelta(seconds=60)).timestamp() * 1000)
    steps = tuple(
        Step(
            StepKind.RETENTION,
            topic,
            frees[topic],
            by_ms,
            "retention.ms",
            int(own[topic] or DEFAULT),
            HOUR_MS,
        )
        for topic in frees
    )
    plan = Plan("p", "alice", "full", BEGUN, "c", 1, "/dev/sdb1", 50, planned(Option(steps, enough=True), {}))
    made = Cluster(dict(own), frees)
    made.save(plan)
    return replace(made, **other)  # type: ignore[arg-type]


@pytest.mark.accepts("G15")
def test_a_plan_is_applied_until_enough_is_free_and_undone() -> None:
    here = cluster({"a": None, "b": "86400000", "c": None}, {"a": 30, "b": 40, "c": 50})
    run = here.run()
    run.check()
    assert here.own == {"a": None, "b": "86400000", "c": None}, "a check changes nothing"
    assert run.apply()
    assert here.own == {"a": "3600000", "b": "3600000", "c": None}, "the last step was not needed"
    assert (run.plan.state, run.plan.steps[2].state) == (PlanState.APPLIED, PlanState.PROPOSED)
    assert here.now - BEGUN <= timedelta(seconds=1.2 * 60 + 62)
    assert here.run().undo()
    assert here.own == {"a": None, "b": "86400000", "c": None}
    assert here.run().plan.state is PlanState.RESTORED
    with pytest.raises(ReliefStopped, match="plan p is restored"):
        here.run().check()


def test_a_plan_that_is_not_enough_ends_when_its_time_is_over() -> None:
    here = cluster({"a": None}, {"a": 30})
    assert not here.run().apply()
    assert here.now - BEGUN == timedelta(seconds=72)


def test_nothing_is_changed_where_nothing_is_missing() -> None:
    here = cluster({"a": None}, {"a": 30}, consumed_bytes=50)
    assert here.run().apply()
    assert here.own == {"a": None}


@pytest.mark.accepts("G15")
@given(
    cuts=st.lists(st.integers(0, 40), max_size=5),
    own=st.tuples(*[st.sampled_from([None, "86400000"])] * 2),
    goes_on=st.booleans(),
)
@bounded(100)
def test_interrupted_at_any_moment_it_goes_on_or_goes_back(
    cuts: list[int], own: tuple[str | None, str | None], goes_on: bool
) -> None:
    before = dict(zip("ab", own, strict=True))
    here = cluster(before, {"a": 30, "b": 40})
    for number, calls in enumerate(cuts):
        here.calls_left = calls
        try:
            if goes_on or number == 0:
                here.run().apply()
            else:
                here.run().undo()
        except Interrupted:
            continue
    here.calls_left = 10**9
    if goes_on:
        assert here.run().apply()
        assert here.own == {"a": "3600000", "b": "3600000"}
    assert here.run().undo()
    assert here.own == before


@pytest.mark.accepts("G15")
def test_without_the_permission_nothing_is_changed() -> None:
    here = cluster({"a": None, "b": None}, {"a": 30, "b": 40}, denies="b")
    with pytest.raises(ReliefStopped, match="nothing was changed: The cluster denied alter-configs"):
        here.run().check()
    assert here.own == {"a": None, "b": None}


def test_a_step_that_fails_is_in_the_plan_and_can_be_tried_again_or_undone() -> None:
    here = cluster({"a": None, "b": None}, {"a": 30, "b": 40}, denies="b")
    with pytest.raises(ReliefStopped, match="denied alter-configs"):
        here.run().apply()
    plan = here.run().plan
    assert (plan.state, plan.steps[0].state, plan.steps[1].state) == ("failed", "applied", "failed")
    assert plan.steps[1].problem == DENIED.sentence
    here.denies = None
    assert here.run().apply()
    assert here.run().undo()
    assert here.own == {"a": None, "b": None}


def test_a_topic_that_has_another_value_than_the_plan_expects_is_not_changed() -> None:
    here = cluster({"a": None}, {"a": 60})
    here.own["a"] = "7200000"
    with pytest.raises(ReliefStopped, match="is 7200000 now, and was 604800000 when plan p was made"):
        here.run().apply()
    assert here.own == {"a": "7200000"}


def test_a_value_that_others_have_changed_since_stays() -> None:
    here = cluster({"a": None, "b": None}, {"a": 30, "b": 40})
    assert here.run().apply()
    here.own["b"] = "60000"
    assert not here.run().undo()
    assert here.own == {"a": None, "b": "60000"}
    assert here.said[-2] == "retention.ms of topic b is 60000 by now, which is not of this plan: it stays"


def test_a_topic_that_would_breach_again_keeps_its_value_and_the_others_go_back() -> None:
    here = cluster({"a": None, "b": None}, {"a": 30, "b": 40})
    assert here.run().apply()
    assert not here.run().undo({"a": "a would fill the volume again"})
    assert here.own == {"a": "3600000", "b": None}
    assert here.run().plan.state is PlanState.APPLIED
    assert here.run().undo()
    assert here.own == {"a": None, "b": None}


def test_values_wait_until_the_volume_has_been_below_its_soft_limit_for_as_long_as_agreed() -> None:
    here = cluster({"a": None}, {"a": 60})
    assert here.run().apply()
    free_at = here.now
    here.consumed_bytes += 40
    here.due["a"] = here.now + timedelta(seconds=100)
    here.frees = {"a": 95}
    here.run().await_calm(timedelta(seconds=30))
    assert here.now - free_at == timedelta(seconds=130)


def test_a_throttle_of_a_broker_is_set_at_once_and_given_back() -> None:
    here = cluster({"a": None}, {"a": 30})
    steps = (
        Step(
            StepKind.THROTTLE,
            "a",
            0,
            0,
            "follower.replication.throttled.replicas",
            source=DEFAULT,
            destination="0:1",
        ),
        Step(
            StepKind.THROTTLE,
            "1",
            0,
            0,
            "follower.replication.throttled.rate",
            source=DEFAULT,
            destination="9",
        ),
    )
    here.own["1"] = None
    document = json.loads(here.file)
    plan = replace(plan_from_document(document), steps=planned(Option(steps, enough=False), {}))
    steps_now = tuple(replace(one, by=BEGUN) for one in plan.steps)
    here.file = json.dumps(replace(plan, steps=steps_now).to_document())
    here.file = here.file.replace(f'"from": "{DEFAULT}", "to": "0:1"', '"from": "", "to": "0:1"')
    here.own["a"] = ""
    assert not here.run().apply(), "it frees nothing"
    assert (here.own, here.now) == ({"a": "0:1", "1": "9"}, BEGUN), "and waits for nothing"
    assert here.said[:2] == [
        "follower.replication.throttled.replicas of topic a is 0:1 instead of empty",
        f"follower.replication.throttled.rate of broker 1 is 9 instead of {DEFAULT}",
    ]
    assert here.run().undo()
    assert here.own == {"a": "", "1": None}
