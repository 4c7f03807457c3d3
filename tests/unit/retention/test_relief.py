"""Options that bring a volume back below its limit: their bytes, their times and their losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks.segments import BrokerRules, PartitionOnDisk, PartitionState, Segment, TopicRules
from kquota.retention.expiry import DAY_MS, HOUR_MS, MINUTE_MS, departures
from kquota.retention.relief import (
    ROLL_MS,
    SHORTEST_RETENTION_MS,
    Option,
    Situation,
    Step,
    StepKind,
    breaches_again,
    options,
    played,
)
from tests.unit.policy.clusters import bounded

NOW = 100 * DAY_MS
BROKER = BrokerRules(5 * MINUTE_MS)
WEEK = TopicRules(
    cleanup_delete=True,
    cleanup_compact=False,
    retention_ms=7 * DAY_MS,
    retention_bytes=None,
    segment_ms=7 * DAY_MS,
    segment_bytes=1000,
    file_delete_delay_ms=MINUTE_MS,
)
BY = NOW + 6 * MINUTE_MS


def partition(topic: str, *ages_ms: int, size_bytes: int = 100, number: int = 0) -> PartitionOnDisk:
    """Return a partition with a segment of ten offsets of each age, oldest first; the last is active."""
    last = len(ages_ms) - 1
    segments = tuple(
        Segment(10 * index, size_bytes, NOW - age_ms, index == last, size_bytes)
        for index, age_ms in enumerate(ages_ms)
    )
    end = 10 * len(ages_ms)
    return PartitionOnDisk(topic, number, "/data/1", PartitionState.LOG, segments, high_watermark=end)


def daily(topic: str, days: int = 6) -> PartitionOnDisk:
    """Return a partition with a segment of each of the last days, down to one of an hour ago."""
    return partition(topic, *(day * DAY_MS + HOUR_MS for day in range(days - 1, -1, -1)))


def situation(
    *partitions: PartitionOnDisk, to_free_bytes: int = 200, rules: Mapping[str, TopicRules] | None = None
) -> Situation:
    known = {one.topic: WEEK for one in partitions} | dict(rules or {})
    return Situation(partitions, known, BROKER, NOW, to_free_bytes)


def only(found: list[Option]) -> Step:
    (option,) = found
    (step,) = option.steps
    return step


@pytest.mark.accepts("G15")
def test_the_smallest_shortening_that_frees_enough_is_offered() -> None:
    step = only(options(situation(daily("visits"), to_free_bytes=150)))
    assert (step.kind, step.target, step.setting) == (StepKind.RETENTION, "visits", "retention.ms")
    assert (step.current, step.to) == (7 * DAY_MS, 4 * DAY_MS + HOUR_MS - 1), "the two oldest days go"
    assert (step.frees_bytes, step.by_ms) == (200, BY)


@pytest.mark.accepts("G16")
@pytest.mark.parametrize(
    ("topic", "rules"),
    [
        ("__consumer_offsets", WEEK),
        ("visits", replace(WEEK, cleanup_compact=True)),
        ("visits", replace(WEEK, cleanup_delete=False, cleanup_compact=True)),
        ("payments", WEEK),
        ("audit.eu", WEEK),
    ],
)
def test_internal_compacted_and_protected_topics_are_in_no_option(topic: str, rules: TopicRules) -> None:
    base = situation(daily(topic), rules={topic: rules})
    found = options(replace(base, protected=("payments", "audit.*"), flows=True))
    assert found == []
    to = 3 * DAY_MS
    (step,) = played(
        replace(base, protected=("payments", "audit.*")),
        [Step(StepKind.RETENTION, topic, 500, BY, "retention.ms", 7 * DAY_MS, to)],
    ).steps
    assert step.frees_bytes == 0, "a plan that an operator wrote frees nothing there"


def test_a_topic_without_known_settings_is_left_alone() -> None:
    assert options(replace(situation(daily("visits")), rules={})) == []


@pytest.mark.accepts("G15")
def test_what_leaves_by_itself_in_time_comes_first_and_loses_nothing() -> None:
    soon = partition("logs", 7 * DAY_MS - 10 * MINUTE_MS, HOUR_MS, size_bytes=300)
    wait, retention, *_ = options(situation(soon, daily("visits"), to_free_bytes=300))
    assert (wait.kind, wait.enough, wait.frees_bytes) == (StepKind.WAIT, True, 300)
    assert wait.by_ms == NOW + 16 * MINUTE_MS + 1
    assert retention.kind is StepKind.RETENTION
    assert options(situation(soon, daily("visits"), to_free_bytes=301))[-1].kind is StepKind.WAIT
    assert not options(situation(soon, daily("visits"), to_free_bytes=301))[-1].enough


def test_bytes_that_leave_anyway_are_no_merit_of_an_option() -> None:
    expired = partition("logs", 8 * DAY_MS, HOUR_MS, size_bytes=150)
    found = options(situation(expired, daily("visits"), to_free_bytes=200))
    visits = next(one for one in found if one.steps[0].target == "visits")
    assert (visits.frees_bytes, visits.enough) == (100, True), "150 of 200 leave by then anyway"


@pytest.mark.accepts("G15")
def test_a_topic_that_all_have_read_comes_before_one_with_a_lagging_group() -> None:
    month = replace(WEEK, retention_ms=30 * DAY_MS)
    base = situation(daily("orders"), daily("visits", 20), rules={"visits": month})
    assert [one.steps[0].target for one in options(base)] == ["visits", "orders"], "visits keeps more"
    reading = {"billing": {("visits", 0): 15}, "search": {("visits", 0): 20, ("orders", 0): 60}}
    first, second = options(replace(base, committed=reading))
    assert (first.steps[0].target, first.steps[0].unread_by) == ("orders", ())
    assert (second.steps[0].target, second.steps[0].unread_by) == ("visits", ("billing",))


def test_of_two_topics_the_one_that_keeps_more_of_its_time_comes_first() -> None:
    month = replace(WEEK, retention_ms=30 * DAY_MS)
    unlimited = replace(WEEK, retention_ms=None)
    rules = {"a": month, "b": unlimited}
    found = options(situation(daily("a", 29), daily("b", 29), daily("c", 6), rules=rules))
    assert [one.steps[0].target for one in found] == ["a", "c", "b"]
    assert found[-1].steps[0].current is None


def test_topics_that_are_too_small_alone_are_shortened_together_and_as_little_as_possible() -> None:
    found = options(situation(daily("a"), daily("b"), to_free_bytes=800))
    together = found[0]
    assert together.enough
    assert [step.target for step in together.steps] == ["a", "b"]
    assert {step.to for step in together.steps} == {2 * DAY_MS + HOUR_MS - 1}
    assert not any(one.enough for one in found[1:])


def test_nothing_is_offered_below_the_shortest_retention() -> None:
    (option,) = options(situation(partition("a", DAY_MS, 1000, 0), to_free_bytes=1000))
    assert (option.enough, option.frees_bytes) == (False, 100)
    assert option.steps[0].to is not None
    assert option.steps[0].to >= SHORTEST_RETENTION_MS


def test_of_a_tiered_topic_the_local_retention_is_shortened_and_nothing_is_lost() -> None:
    tiered = replace(WEEK, remote_storage=True, local_retention_ms=5 * DAY_MS + 2 * HOUR_MS)
    visits = replace(daily("visits"), uploaded_to_offset=39)
    base = situation(visits, rules={"visits": tiered})
    step = only(options(replace(base, committed={"billing": {("visits", 0): 0}})))
    assert (step.setting, step.current, step.keeps_ratio) == (
        "local.retention.ms",
        5 * DAY_MS + 2 * HOUR_MS,
        1.0,
    )
    assert (step.frees_bytes, step.unread_by) == (200, ())
    assert options(situation(replace(visits, uploaded_to_offset=-1), rules={"visits": tiered})) == []


# --- Active segments

HOURLY = replace(WEEK, retention_ms=20 * MINUTE_MS)


def test_while_producers_write_an_active_segment_does_not_leave_and_an_earlier_roll_frees_it() -> None:
    written = partition("logs", 8 * HOUR_MS, 0, size_bytes=500)
    base = situation(written, rules={"logs": HOURLY}, to_free_bytes=900)
    (held,) = options(base)
    assert (held.kind, held.enough) == (StepKind.WAIT, True), "in a PAUSE it gets no record"
    found = {one.kind: one for one in options(replace(base, flows=True))}
    assert not found[StepKind.WAIT].enough
    (roll,) = found[StepKind.SEGMENT].steps
    assert (roll.setting, roll.current, roll.to) == ("segment.ms", 7 * DAY_MS, ROLL_MS)
    assert (roll.frees_bytes, roll.by_ms) == (500, BY + 20 * MINUTE_MS)
    assert found[StepKind.SEGMENT].enough


@pytest.mark.parametrize(
    "ages",
    [(8 * HOUR_MS, HOUR_MS), (ROLL_MS - 1, 0), (0,)],
    ids=["no record lately", "it began lately", "its beginning is not known"],
)
def test_a_segment_that_its_next_record_does_not_roll_is_not_promised(ages: tuple[int, ...]) -> None:
    base = situation(partition("logs", *ages), rules={"logs": HOURLY}, to_free_bytes=900)
    assert StepKind.SEGMENT not in {one.kind for one in options(replace(base, flows=True))}


# --- Laws

ages = st.lists(st.integers(0, 9 * DAY_MS), min_size=1, max_size=6).map(
    lambda found: sorted(found, reverse=True)
)
disks = st.lists(st.tuples(st.sampled_from("abc"), ages, st.integers(1, 1000)), min_size=1, max_size=5).map(
    lambda found: [
        partition(topic, *of, size_bytes=size, number=number)
        for number, (topic, of, size) in enumerate(found)
    ]
)


def left_bytes(base: Situation, by_ms: int, changed: Mapping[str, TopicRules]) -> int:
    """Return the bytes that Kafka's deletion leaves on the volume, played with these settings."""
    total = sum(one.size_bytes for one in base.partitions)
    return total - sum(
        gone.size_bytes
        for one in base.partitions
        for gone in departures(one, {**base.rules, **changed}[one.topic], base.broker, base.now_ms).leaving
        if gone.at_ms <= by_ms
    )


@pytest.mark.accepts("G15")
@given(disks=disks, to_free_bytes=st.integers(1, 4000), own_days=st.integers(0, 8))
@bounded(100)
def test_an_option_frees_what_it_says_and_a_longer_retention_would_not_be_enough(
    disks: list[PartitionOnDisk], to_free_bytes: int, own_days: int
) -> None:
    rules = {"a": replace(WEEK, retention_ms=own_days * DAY_MS)}
    base = situation(*disks, to_free_bytes=to_free_bytes, rules=rules)
    before = sum(one.size_bytes for one in disks)
    found = options(base)
    assert found == sorted(found, key=lambda one: one.rank)
    for option in found:
        changed = {
            step.target: replace(base.rules[step.target], retention_ms=step.to)
            for step in option.steps
            if step.kind is StepKind.RETENTION
        }
        left = left_bytes(base, option.by_ms, changed)
        assert option.enough == (before - left >= to_free_bytes)
        if option.kind is StepKind.RETENTION:
            assert left_bytes(base, option.by_ms, {}) - left == option.frees_bytes
            assert all(step.to is not None and step.to >= SHORTEST_RETENTION_MS for step in option.steps)
            assert played(base, option.steps) == option
        if option.kind is StepKind.RETENTION and option.enough:
            longer = {
                name: replace(one, retention_ms=(one.retention_ms or 0) + 1) for name, one in changed.items()
            }
            assert before - left_bytes(base, option.by_ms, longer) < to_free_bytes or any(
                base.rules[name].retention_ms == one.retention_ms for name, one in longer.items()
            )


@given(disks=disks, to_free_bytes=st.integers(1, 4000), more=st.integers(1, 500))
@bounded(60)
def test_the_more_is_missing_the_shorter_the_retention(
    disks: list[PartitionOnDisk], to_free_bytes: int, more: int
) -> None:
    def kept(missing_bytes: int) -> dict[str, int]:
        return {
            option.steps[0].target: option.steps[0].to or 0
            for option in options(situation(*disks, to_free_bytes=missing_bytes))
            if option.kind is StepKind.RETENTION and len(option.steps) == 1
        }

    less, much = kept(to_free_bytes), kept(to_free_bytes + more)
    assert all(much[topic] <= less[topic] for topic in less.keys() & much.keys())


def test_nothing_is_offered_where_nothing_is_missing() -> None:
    assert options(situation(daily("visits"), to_free_bytes=0)) == []


# --- Giving values back


def test_a_retention_breaches_again_if_its_topic_grows_to_more_than_the_room() -> None:
    base = situation(partition("visits", 20 * HOUR_MS, 10 * HOUR_MS, 0))
    step = Step(StepKind.RETENTION, "visits", 500, BY, "retention.ms", 3 * DAY_MS, DAY_MS)
    # 300 bytes a day, and two days more to keep
    assert breaches_again(base, step, 599, 7 * DAY_MS)
    assert not breaches_again(base, step, 600, 7 * DAY_MS)
    assert not breaches_again(base, step, 300, DAY_MS), "not within that time"
    assert breaches_again(base, replace(step, current=None), 2099, 7 * DAY_MS)
    assert not breaches_again(base, replace(step, current=None), 2100, 7 * DAY_MS)
    assert not breaches_again(base, replace(step, kind=StepKind.SEGMENT), 0, DAY_MS)
