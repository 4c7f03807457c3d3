"""Properties for every cluster: the policy against an independent one, and against its promises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kquota.formats.records import TopicRecord, read_event
from kquota.formats.topic_replay import read_backlog
from kquota.policy.decision import State, UndeterminedCause, decision_document
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView, FoldResult
from tests.unit.policy.clusters import (
    BROKERS,
    CAPACITY,
    MALFORMED,
    bounded,
    cases,
    cases_of_one_broker,
    decide_case,
    decide_view,
    messages,
    usage_indices,
    view_of,
    with_value,
)
from tests.unit.policy.golden import complaints
from tests.unit.policy.oracle import Case, Message, expected
from tests.unit.policy.situations import GB, NOW, TOLERANCE, free, raw, usage


@pytest.mark.accepts("A3", "A4", "A5", "A6", "A8", "A9", "A18", "A24", "A25", "A28", "A29", "A30", "A31")
@given(case=cases())
@bounded(300)
def test_the_decision_is_that_of_an_independent_policy(case: Case) -> None:
    decision, oracle = decide_case(case), expected(case)
    assert (decision.state.value, decision.headroom) == (oracle.state, oracle.headroom)
    assert {(entry.broker_id, entry.cause.value) for entry in decision.undetermined} == oracle.undetermined
    assert (decision.hold is not None) is oracle.held


@pytest.mark.accepts("A6", "A18", "A24", "A25", "A28", "A29", "A30")
@given(case=cases_of_one_broker())
@bounded(500)
def test_of_one_broker_that_reports_each_volume_decides_as_the_independent_policy_says(case: Case) -> None:
    """In a cluster of several, another broker that is full or silent hides most of what a volume does."""
    decision, oracle = decide_case(case), expected(case)
    assert (decision.state.value, decision.headroom) == (oracle.state, oracle.headroom)
    assert {(entry.broker_id, entry.cause.value) for entry in decision.undetermined} == oracle.undetermined


@given(case=cases())
@bounded(100)
def test_a_decision_agrees_with_itself_and_with_its_schema(case: Case) -> None:
    decision = decide_case(case)
    assert complaints("decision", decision_document(decision, broker_id=case.self_id), "offline") == []
    assert decision.headroom == min((r.headroom for r in decision.reasons), default=Fraction(1))
    assert [r.headroom for r in decision.reasons] == sorted(r.headroom for r in decision.reasons)
    assert (decision.factor == 1, decision.factor == 0) == (
        decision.state is State.OPEN,
        decision.state is State.PAUSE,
    )


@pytest.mark.accepts("A10")
@given(case=cases(), data=st.data())
@bounded(100)
def test_the_order_of_records_of_different_keys_never_matters(case: Case, data: st.DataObject) -> None:
    keys = data.draw(st.permutations([key for key, _ in case.records]))
    queues = {key: [value for k, value in case.records if k == key] for key in set(keys)}
    mixed = [(key, queues[key].pop(0)) for key in keys]
    assert decide_case(replace(case, records=mixed)) == decide_case(case)


@pytest.mark.accepts("A10")
@given(case=cases())
@bounded(60)
def test_without_orders_and_own_looks_every_broker_decides_the_same(case: Case) -> None:
    records = [(key, value) for key, value in case.records if not key.startswith(("quarantine", "hold"))]
    base = replace(case, records=records, own=None)
    decisions = {self_id: decide_case(replace(base, self_id=self_id)) for self_id in (None, 1, 2, 3, 4)}
    assert all(decision == decisions[None] for decision in decisions.values())


@pytest.mark.accepts("A7", "A8")
@given(case=cases(), data=st.data())
@bounded(100)
def test_a_fuller_volume_never_raises_the_factor(case: Case, data: st.DataObject) -> None:
    indices = usage_indices(case)
    assume(indices)
    index = data.draw(st.sampled_from(indices))
    message = case.records[index][1]
    assert isinstance(message, dict)
    volumes = [dict(volume) for volume in message["Volumes"]]
    volume = data.draw(st.sampled_from(volumes))
    volume["Consumed"] = data.draw(st.integers(volume["Consumed"], volume["Capacity"]))
    fuller = with_value(case, index, {**message, "Volumes": volumes})
    assert decide_case(fuller).headroom <= decide_case(case).headroom


@pytest.mark.accepts("A9")
@given(
    case=cases(),
    newcomer=st.lists(messages() | st.sampled_from(MALFORMED) | st.none(), max_size=2),
    active=st.booleans(),
    joining=st.booleans(),
)
@bounded(100)
def test_one_more_broker_never_raises_the_factor(
    case: Case, newcomer: list[Message | bytes | None], active: bool, joining: bool
) -> None:
    larger = replace(
        case,
        records=[*case.records, *(("9", event) for event in newcomer)],
        active=case.active | ({9} if active else set()),
        joining=case.joining | ({9} if active and joining else set()),
    )
    # The others are asked whose clock is wrong: one more may be right.
    assume(all(entry.cause is not UndeterminedCause.CLOCK for entry in decide_case(case).undetermined))
    assert decide_case(larger).headroom <= decide_case(case).headroom


@pytest.mark.accepts("A18")
@given(case=cases())
@bounded(60)
def test_fallback_pause_never_loosens(case: Case) -> None:
    pause, bounded_, open_ = (
        decide_case(replace(case, fallback=action)) for action in ("pause", "bounded", "open")
    )
    assert pause.headroom <= bounded_.headroom <= open_.headroom
    silences = {entry.silence for entry in bounded_.covered}
    assert set(bounded_.undetermined) == set(pause.undetermined) - silences
    assert pause.covered == open_.covered == ()
    assert pause.undetermined == open_.undetermined
    assert pause.headroom == open_.headroom or (pause.fallback and pause.headroom == 0)


@pytest.mark.accepts("A10")
@given(case=cases(), own=messages(0.0))
@bounded(100)
def test_an_own_look_only_tightens(case: Case, own: Message) -> None:
    assume(case.self_id is not None)
    blind = replace(case, own=None)
    assert decide_case(replace(case, own=own)).headroom <= decide_case(blind).headroom


@pytest.mark.accepts("A26", "A31", "F5", "F7")
@given(case=cases(), data=st.data())
@bounded(100)
def test_malformed_and_future_records_change_nothing_for_who_has_a_record(
    case: Case, data: st.DataObject
) -> None:
    known = [broker for broker in BROKERS if isinstance(view_of(case).record_of(broker, NOW), UsageRecord)]
    assume(known)
    key = str(data.draw(st.sampled_from(known)))
    extra = data.draw(
        st.lists(st.sampled_from(MALFORMED) | messages(-30.001) | messages(-86_400.0), max_size=4)
    )
    spammed = replace(case, records=[*case.records, *((key, event) for event in extra)])
    assert decide_case(spammed) == decide_case(case)


@pytest.mark.accepts("A10", "A16")
@given(case=cases())
@bounded(100)
def test_the_topic_compacted_to_what_still_counts_gives_the_same_decision(case: Case) -> None:
    """A tombstone settles all before it; a good record not from the future, its own instance's."""
    kept = []
    for index, (key, value) in enumerate(case.records):
        later = [v for k, v in case.records[index + 1 :] if k == key]
        if not any(_settles(key, v) and not _of_another_instance(value, v) for v in later):
            kept.append((key, value))
    assert decide_case(replace(case, records=kept)) == decide_case(case)


@pytest.mark.accepts("A10", "A16")
@given(case=cases())
@bounded(100)
def test_a_backlog_read_from_its_end_gives_the_same_decision(case: Case) -> None:
    view = ClusterView(TOLERANCE)
    of_usage = [(key, value) for key, value in case.records if key.isdecimal()]
    case = replace(case, records=of_usage)
    records = [TopicRecord(key, raw(value)) for key, value in of_usage]
    events = read_backlog(records, view, NOW)
    assert len(events) == len(records)
    for event in events:
        if event is not None:
            view.fold(event, NOW)
    assert decide_view(view, case) == decide_case(case)


def _of_another_instance(value: Message | bytes | None, later: Message | bytes | None) -> bool:
    if not isinstance(value, Mapping) or not isinstance(later, Mapping):
        return False
    return value.get("InstanceId") not in (None, later.get("InstanceId"))


@pytest.mark.accepts("F16")
@given(case=cases(), data=st.data())
@bounded(100)
def test_of_two_fresh_instances_the_worse_decides_whatever_the_order(case: Case, data: st.DataObject) -> None:
    """The decision is never weaker than with the records of one of them alone."""
    records = [entry for entry in case.records if entry[0] != "1"]
    mine = [
        [
            {**data.draw(messages(1.0)), "InstanceId": name, "Sequence": number, "Replaces": None}
            for number in range(1, 4)
        ]
        for name in ("first", "second")
    ]
    turns = data.draw(st.permutations([0, 0, 0, 1, 1, 1]))
    both = [("1", mine[turn][turns[:index].count(turn)]) for index, turn in enumerate(turns)]
    together = decide_case(replace(case, records=[*records, *both]))
    for one in mine:
        alone = decide_case(replace(case, records=[*records, *(("1", message) for message in one)]))
        assert together.headroom <= alone.headroom


def _settles(key: str, value: Message | bytes | None) -> bool:
    event = read_event(key, raw(value))
    result = ClusterView(TOLERANCE).fold(event, NOW)
    return result in (FoldResult.USAGE, FoldResult.TOMBSTONE, FoldResult.OPERATOR)


@pytest.mark.accepts("A10", "A16")
@given(case=cases(), minutes=st.lists(st.integers(0, 120), min_size=1, max_size=5))
@bounded(60)
def test_when_the_records_were_read_does_not_matter(case: Case, minutes: list[int]) -> None:
    """An agent that has followed the topic for hours decides as one that has just read all of it.

    Of two instances for one broker only records are kept that are not from the future when they come.
    """
    records = [
        (key, {name: field for name, field in value.items() if name != "InstanceId"})
        if isinstance(value, Mapping)
        else (key, value)
        for key, value in case.records
    ]
    case = replace(case, records=records)
    follower = ClusterView(TOLERANCE)
    for index, (key, value) in enumerate(case.records):
        ago = sorted(minutes, reverse=True)[min(index, len(minutes) - 1)]
        follower.fold(read_event(key, raw(value)), NOW - timedelta(minutes=ago))
    assert decide_view(follower, case) == decide_case(case)


@pytest.mark.accepts("A10")
@given(case=cases())
@bounded(60)
def test_equal_inputs_give_equal_decisions(case: Case) -> None:
    assert decide_case(case) == decide_case(replace(case, records=list(case.records)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(["SnapshotAt", "HardLimit", "Volumes", "Action", "Until", "type", "level"]),
            children,
            max_size=4,
        )
    ),
    max_leaves=12,
)
strange_values = st.binary(max_size=64) | json_values.map(lambda value: json.dumps(value).encode())
strange_keys = st.sampled_from([b"1", b"2", b"hold", b"quarantine/1", b"maintenance/1", b"01", b""])


@pytest.mark.accepts("F5", "F6")
@given(records=st.lists(st.tuples(strange_keys | st.binary(max_size=12), strange_values), max_size=6))
@bounded(200)
def test_no_bytes_raise_and_none_cause_or_lift_a_breach(records: list[tuple[bytes, bytes]]) -> None:
    case = Case([], frozenset({1}), frozenset(), 1, None, "open", NOW)
    for gigabytes, state in ((5, State.PAUSE), (50, State.OPEN)):
        view = ClusterView(TOLERANCE)
        view.fold(read_event(b"1", raw(usage(free(gigabytes)))), NOW)
        for key, value in records:
            view.fold(read_event(key, value), NOW)
        assert decide_view(view, case).state is state


@pytest.mark.accepts("A7")
@given(consumed=st.integers(0, 100 * GB))
@bounded(60)
def test_more_consumed_is_never_more_headroom(consumed: int) -> None:
    def headroom(consumed_bytes: int) -> Fraction:
        volume = {"VolumeName": "a", "Capacity": 100 * GB, "Consumed": consumed_bytes}
        case = Case([("1", usage(volume))], frozenset({1}), frozenset(), None, None, "pause", NOW)
        return decide_case(case).headroom

    assert headroom(min(consumed + CAPACITY, 100 * GB)) <= headroom(consumed)
