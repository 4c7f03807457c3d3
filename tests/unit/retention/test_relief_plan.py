"""Relief plans: the document, and what is noted before anything is replaced."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.strict_json import InvalidJson, parse_json
from kquota.retention.inflow import THROTTLED_RATE, THROTTLED_REPLICAS
from kquota.retention.relief import Option, Step, StepKind, is_spared
from kquota.retention.relief_plan import (
    InvalidPlan,
    Plan,
    PlanState,
    ReplacedValue,
    plan_from_document,
    planned,
)
from tests.unit.policy.clusters import bounded
from tests.unit.policy.golden import Sample, complaints, each, refused_by_schema

NOW = datetime(2026, 11, 25, 10, 15, 30, tzinfo=UTC)
BY_MS = 1_795_601_730_123
STEP = Step(StepKind.RETENTION, "visits", 25, BY_MS, "retention.ms", 7 * 86_400_000, 4 * 86_400_000)
PLAN = Plan(
    id="a-plan",
    author="alice",
    reason="full",
    created=NOW,
    cluster="c",
    broker_id=3,
    volume="/dev/sdb1",
    to_free_bytes=24,
    steps=planned(Option((STEP, replace(STEP, target="logs", current=None)), enough=True), {0: "4 days"}),
)


@each("relief", "valid")
def test_a_valid_plan_is_accepted_by_schema_and_core_and_written_as_it_was_read(golden: Sample) -> None:
    document = golden.document
    assert complaints("relief", document) == []
    for key in ("unknown_key", "version", "partitions"):  # the latter are Kafka's own form of moves
        document.pop(key, None)
    assert plan_from_document(document).to_document() == document


@each("relief", "invalid")
def test_an_invalid_plan_is_refused_by_schema_and_core(golden: Sample) -> None:
    text = golden.text
    assert refused_by_schema("relief", text)
    with pytest.raises((InvalidPlan, InvalidJson)):
        plan_from_document(parse_json(text))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": "done"}, "state: 'done' is none of proposed, applying, applied"),
        ({"created": "today"}, "created: 'today' is not an ISO 8601 time"),
        ({"to_free_bytes": 1.5}, "to_free_bytes: must be a whole number"),
        ({"broker_id": True}, "broker_id: must be a whole number"),
        ({"steps": [7]}, "steps.0: must be an object"),
        (
            {"restore": {"when": {"below_soft_seconds": -1}, "values": []}},
            "restore.when.below_soft_seconds: must",
        ),
    ],
)
def test_an_error_names_the_key_and_the_allowed_values(change: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidPlan) as refused:
        plan_from_document(PLAN.to_document() | change)
    assert str(refused.value).startswith(words)


def test_a_step_of_the_plan_is_the_option_s() -> None:
    first, second = PLAN.steps
    assert (first.was, first.to, first.loses) == ("604800000", "345600000", "4 days")
    assert (second.was, second.loses) == ("-1", "")
    assert [one.to_step() for one in PLAN.steps] == [STEP, replace(STEP, target="logs", current=None)]
    assert PLAN.frees_bytes == 50


def test_the_document_of_a_plan_in_work_can_be_read_back() -> None:
    plan = replace(PLAN, restore_after=timedelta(hours=1)).with_state(PlanState.APPLYING)
    plan = plan.recorded(ReplacedValue("visits", "retention.ms", None)).with_step(
        1, PlanState.FAILED, "denied"
    )
    document = json.loads(json.dumps(plan.to_document()))
    assert complaints("relief", document) == []
    assert plan_from_document(document) == plan


places = st.tuples(st.sampled_from("ab"), st.sampled_from(["retention.ms", "segment.ms"]))


@pytest.mark.accepts("G15")
@given(found=st.lists(st.tuples(places, st.sampled_from([None, "1", "2"])), max_size=8))
@bounded(100)
def test_however_often_a_plan_is_applied_the_first_value_is_the_one_to_restore(
    found: list[tuple[tuple[str, str], str | None]],
) -> None:
    plan, first = PLAN, dict[tuple[str, str], str | None]()
    for place, value in found:
        plan = plan.recorded(ReplacedValue(*place, value))
        first.setdefault(place, value)
    assert {(one.target, one.setting): one.value for one in plan.values} == first
    assert len(plan.values) == len(first)


def test_a_move_is_planned_with_both_log_dirs_and_played_as_it_was() -> None:
    move = Step(
        *(StepKind.LOGDIR_MOVE, "visits-3", 25, BY_MS, "log_dirs"),
        source="/data/1",
        destination="/data/2",
    )
    plan = replace(PLAN, steps=planned(Option((move,), enough=True), {}))
    assert (plan.moves, PLAN.moves) == (True, False)
    (step,) = plan_from_document(plan.to_document()).steps
    assert (step.target, step.setting, step.was, step.to) == ("visits-3", "log_dirs", "/data/1", "/data/2")
    assert step.to_step() == move
    twice = replace(plan, steps=plan.steps * 2)
    with pytest.raises(InvalidPlan, match="a plan moves each partition once"):
        plan_from_document(twice.to_document())


@pytest.mark.parametrize("to", ["4,5,1", "4,2", "2,2,1", "3,2,1", "3,1,2"])
def test_a_move_to_brokers_replaces_one_of_them(to: str) -> None:
    move = Step(StepKind.REPLICA_MOVE, "visits-3", 25, BY_MS, "replicas", source="3,2,1", destination="4,2,1")
    plan = replace(PLAN, steps=planned(Option((move,), enough=True), {}))
    assert plan_from_document(plan.to_document()).steps[0].to_step() == move
    wrong = replace(plan, steps=planned(Option((replace(move, destination=to),), enough=True), {}))
    with pytest.raises(
        InvalidPlan, match=r"steps\.0\.to: must be the brokers of from, but one other in its place"
    ):
        plan_from_document(wrong.to_document())


@pytest.mark.accepts("G16")
def test_the_topics_of_a_plan_are_known_so_that_none_is_touched_that_relief_leaves_alone() -> None:
    def topics(*steps: Step) -> tuple[str, ...]:
        return replace(PLAN, steps=planned(Option(steps, enough=True), {})).topics

    move = Step(StepKind.LOGDIR_MOVE, "a-b-3", 25, BY_MS, "log_dirs", source="/1", destination="/2")
    throttled = Step(StepKind.THROTTLE, "visits", 0, BY_MS, THROTTLED_REPLICAS, source="", destination="3:1")
    rate = replace(throttled, target="1", setting=THROTTLED_RATE, source="9", destination="8")
    assert topics(move, replace(move, target="a-b-4"), replace(move, target="c-0")) == ("a-b", "c")
    assert topics(throttled, rate) == ("visits",)
    assert topics(STEP, replace(STEP, target="logs")) == ("visits", "logs")
    assert topics(Step(StepKind.WAIT, "", 25, BY_MS)) == ()
    assert is_spared("__consumer_offsets", ())
    assert is_spared("audit.eu", ("pay", "audit.*"))
    assert not is_spared("pays", ("pay", "audit.*"))
