"""Which records count: replays, backlogs, rereadings, and forgeries without the key of a broker."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.record_verifier import ReplayGuard, Signed
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.signature_headers import MAX_COUNTER, ORDERS_TOLERANCE_MS, REPORTS_TOLERANCE_MS
from kquota.formats.topic_replay import TopicReplay
from kquota.policy.events import BrokerOrder, HoldEvent, Refusal, RefusedEvent, UsageEvent
from kquota.policy.view import FoldResult, NoRecord
from tests.unit.policy.clusters import bounded
from tests.unit.policy.readings import counts, read, reading, value
from tests.unit.policy.signers import (
    NOW_MS,
    ORDERS_TOPIC,
    Authorities,
    Signer,
    agent,
    operator,
    verifier,
)
from tests.unit.policy.situations import NOW, TOLERANCE, order, raw

OUR_ID, OWN_KEY = 7, b"7"
GENUINE, STRANGER = agent(OUR_ID), agent(8)


def orders_reading() -> TopicReplay:
    return reading(topic=ORDERS_TOPIC)


# Genuine records, and forgeries of an intruder with the keys of broker 8 and of an unknown authority.
COPIES = [GENUINE.record(OWN_KEY, value(30 + n), NOW_MS + n) for n in range(4)]
FORGERS = (STRANGER, agent(OUR_ID, authority="a stranger's"), agent(OUR_ID, cluster="another"))
FORGED = st.one_of(
    st.builds(
        lambda signer, key, gigabytes, counter, partition: signer.record(
            key, None if gigabytes is None else value(gigabytes), NOW_MS + counter, partition=partition
        ),
        st.sampled_from(FORGERS),
        st.sampled_from([OWN_KEY, b"8", b"9", b"hold", b"quarantine/7", b"maintenance/7"]),
        st.none() | st.integers(0, 100),
        st.integers(-5, 50),
        st.integers(0, 1),
    ),
    st.builds(
        lambda copy, change: copy._replace(**change),
        st.sampled_from(COPIES),
        st.sampled_from(
            [
                {"value": value(1)}, {"value": None}, {"value": b""}, {"headers": ()}, {"partition": 1},
                {"headers": COPIES[0].headers}, {"key": b"hold"}, {"key": b"maintenance/7"},
            ]
        ),
    ).filter(lambda record: record not in COPIES),
)  # fmt: skip


@given(
    plan=st.lists(FORGED | st.integers(0, len(COPIES) - 1), max_size=12),
    splits=st.tuples(st.integers(0, 12), st.booleans()),
)
@bounded(300)
def test_nobody_without_its_key_changes_what_is_counted_for_a_broker(
    plan: list[TopicRecord | int], splits: tuple[int, bool]
) -> None:
    """Genuine records come in their order; forged ones and copies of genuine ones come anywhere."""
    highest, records = -1, []
    for step in plan:
        if isinstance(step, int):
            records.append(COPIES[step])
            highest = max(highest, step)
        else:
            records.append(step)
    cut, backlog = splits
    found = reading()
    read(found, records[:cut], backlog=True)
    read(found, records[cut:], backlog=backlog)
    expected = reading()
    read(expected, COPIES[: highest + 1][-1:])
    assert counts(found.view) == counts(expected.view)
    assert (found.view.orders.hold, found.view.orders.notes) == (None, {})


OF_BEFORE = [GENUINE.record(OWN_KEY, value(10 + n), NOW_MS - 9 + n, partition=1) for n in range(3)]


@given(from_old=st.lists(st.booleans(), max_size=8), cut=st.integers(0, 8), backlog=st.booleans())
@bounded(200)
def test_of_an_agent_s_records_in_two_partitions_the_newest_counts_however_they_are_read(
    from_old: list[bool], cut: int, backlog: bool
) -> None:
    """Partitions were added: those of before are in another one. Both are read in their order."""
    old, new = list(OF_BEFORE), list(COPIES)
    records = [(old if first else new).pop(0) for first in from_old if (old if first else new)] + new + old
    found = reading()
    read(found, records[:cut], backlog=True)
    read(found, records[cut:], backlog=backlog)
    expected = reading()
    read(expected, COPIES[-1:])
    assert counts(found.view) == counts(expected.view)


STEPS = st.tuples(st.sampled_from([GENUINE, operator(), STRANGER]), st.integers(0, 6), st.sampled_from("abt"))


@given(steps=st.lists(STEPS, max_size=12), cut=st.integers(0, 12))
@bounded(300)
def test_a_backlog_counts_what_the_same_records_do_one_by_one(
    steps: list[tuple[Signer, int, str]], cut: int
) -> None:
    """Of two instances and a tombstone, by an agent, an operator and a stranger, with any counters."""
    records = [
        signer.record(OWN_KEY, None if what == "t" else value(30 + n, what), NOW_MS + counter)
        for n, (signer, counter, what) in enumerate(steps)
    ]
    found, expected = reading(), reading()
    read(found, records[:cut], backlog=True)
    read(found, records[cut:], backlog=True)
    read(expected, records)
    assert counts(found.view) == counts(expected.view)
    assert found.view.others_of(OUR_ID, NOW) == expected.view.others_of(OUR_ID, NOW)


def test_a_replay_is_refused_and_a_record_that_lands_twice_is_no_news() -> None:
    found = reading()
    results = read(found, [COPIES[1], COPIES[1], COPIES[0]])
    assert results == [FoldResult.USAGE, None, FoldResult.REFUSED]
    assert found.read([COPIES[0]], NOW, backlog=False) == [RefusedEvent("7", Refusal.REPLAYED)]


def test_garbage_in_a_backlog_does_not_hide_the_record_before_it() -> None:
    garbage = [TopicRecord(OWN_KEY, b"garbage", NOW_MS), TopicRecord(OWN_KEY, None, NOW_MS)]
    for records in ([COPIES[0], *garbage], [garbage[0], COPIES[0], garbage[1]]):
        found = reading()
        read(found, records, backlog=True)
        assert counts(found.view) == 30


def test_an_older_record_of_another_instance_still_counts_in_a_backlog() -> None:
    found, rival = reading(), GENUINE.record(OWN_KEY, value(5, "b"), NOW_MS)
    read(found, [rival, GENUINE.record(OWN_KEY, value(50, "a"), NOW_MS + 1)], backlog=True)
    assert len(found.view.others_of(OUR_ID, NOW)) == 1


def test_of_a_backlog_only_what_still_counts_is_verified() -> None:
    authorities = Authorities()
    found = reading(authorities=authorities)
    read(found, [GENUINE.record(OWN_KEY, value(50), NOW_MS + n) for n in range(50)], backlog=True)
    assert authorities.asked == 1


def test_a_record_that_was_kept_back_is_a_replay() -> None:
    held = GENUINE.record(OWN_KEY, value(10), NOW_MS, appended_ms=NOW_MS + REPORTS_TOLERANCE_MS)
    (event,) = reading().read([held], NOW, backlog=False)
    assert isinstance(event, UsageEvent)
    late = held._replace(appended_ms=NOW_MS + REPORTS_TOLERANCE_MS + 1)
    refused = RefusedEvent(OWN_KEY.decode(), Refusal.REPLAYED)
    assert reading().read([late], NOW, backlog=False) == [refused]


@pytest.mark.parametrize("backlog", [False, True])
def test_a_counter_far_ahead_is_refused_and_no_later_one_looks_old(backlog: bool) -> None:
    bombs = [
        GENUINE.record(OWN_KEY, value(10), NOW_MS + REPORTS_TOLERANCE_MS + 1),
        GENUINE.record(OWN_KEY, value(10), 2**62 - 1),
        GENUINE.record(OWN_KEY, value(10), MAX_COUNTER, appended_ms=None),
    ]
    found = reading()
    assert found.verifier is not None
    results = read(found, [*bombs, GENUINE.record(OWN_KEY, value(30), NOW_MS)], backlog=backlog)
    assert results == [FoldResult.REFUSED] * len(bombs) + [FoldResult.USAGE]
    assert found.read(bombs[:1], NOW, backlog=False) == [RefusedEvent("7", Refusal.AHEAD)]
    assert found.verifier.counters.highest(OWN_KEY) == NOW_MS
    nearly = GENUINE.record(OWN_KEY, value(20), NOW_MS + REPORTS_TOLERANCE_MS)
    assert read(found, [nearly]) == [FoldResult.USAGE]


def pause(by: Signer, counter: int, appended_ms: int | None = NOW_MS) -> TopicRecord:
    value = raw(order(Action="pause"))
    return by.record(b"hold", value, counter, appended_ms=appended_ms, topic=TopicKind.ORDERS)


@pytest.mark.parametrize(
    ("difference_ms", "cause"),
    [
        (ORDERS_TOLERANCE_MS, None),
        (ORDERS_TOLERANCE_MS + 1, Refusal.AHEAD),
        (-ORDERS_TOLERANCE_MS, None),
        (-ORDERS_TOLERANCE_MS - 1, Refusal.REPLAYED),
    ],
)
def test_an_order_counts_within_minutes_of_its_own_time(difference_ms: int, cause: Refusal | None) -> None:
    (event,) = orders_reading().read([pause(operator(), NOW_MS + difference_ms)], NOW, backlog=False)
    if cause is None:
        assert isinstance(event, HoldEvent)
    else:
        assert event == RefusedEvent("hold", cause)


@pytest.mark.parametrize("again", ["read again", "restarted"])
@pytest.mark.parametrize("ends", ["jane", "bob"])
def test_a_withdrawn_order_does_not_count_when_compaction_has_left_its_copy_alone(
    again: str, ends: str
) -> None:
    given = pause(operator("jane"), NOW_MS)
    end = operator(ends).record(b"hold", None, NOW_MS + 1, topic=TopicKind.ORDERS)
    found = orders_reading()
    assert found.verifier is not None
    assert read(found, [given, end, given])[:2] == [FoldResult.OPERATOR, FoldResult.OPERATOR]
    assert found.view.orders.hold is None, "a copy undoes no withdrawal"
    if again == "restarted":
        kept = found.verifier.counters.kept(0, 10)
        found = orders_reading()
        assert found.verifier is not None
        found.verifier.counters.recall(kept)
    else:
        found.begin_again(same_topic=True)
    assert read(found, [given], backlog=True) == [None]
    found.reached_end(NOW)
    assert found.view.orders.hold is None
    later = pause(operator("jane"), NOW_MS + 2)
    assert read(found, [later]) == [FoldResult.OPERATOR], "a new order counts"


def test_an_order_that_stands_counts_after_a_restart() -> None:
    jane, bob = (pause(operator(name), NOW_MS + n) for n, name in enumerate(("jane", "bob")))
    for records in ([jane, bob], [bob, pause(operator("jane"), NOW_MS - 1)]):
        found = orders_reading()
        assert found.verifier is not None
        read(found, records)
        kept, found = found.verifier.counters.kept(0, 10), orders_reading()
        assert found.verifier is not None
        found.verifier.counters.recall(kept)
        read(found, records[-1:], backlog=True)
        found.reached_end(NOW)
        assert found.view.orders.hold is not None
        assert found.verifier.counters.kept(0, 10) == kept


def test_the_newest_counters_of_orders_are_kept_and_old_ones_are_not() -> None:
    counters = ReplayGuard()
    for number in range(5):
        counters.turn(b"relief/%d" % number, Signed("operator/jane", number, "c"))
    kept = counters.kept(1, 3)
    assert [(one.key, one.counter) for one in kept] == [("relief/2", 2), ("relief/3", 3), ("relief/4", 4)]
    assert [one.counter for one in counters.kept(1, 9)] == [1, 2, 3, 4]
    assert ReplayGuard().kept(0, 3) == ()


def test_counters_of_two_writers_of_a_key_do_not_compare() -> None:
    found = reading()
    tombstone = operator().record(OWN_KEY, None, NOW_MS + 100)
    assert read(found, [tombstone, COPIES[0]]) == [FoldResult.TOMBSTONE, FoldResult.USAGE]


def test_while_the_topic_is_read_again_old_records_are_no_replays_and_no_news() -> None:
    found = reading()
    read(found, COPIES)
    found.begin_again(same_topic=True)
    found.begin_again(same_topic=True)  # the reader says so, and so does a reload
    results = read(found, COPIES)
    assert results == [None, None, None, FoldResult.USAGE]
    found.reached_end(NOW)
    assert counts(found.view) == 33
    assert read(found, COPIES[:1]) == [FoldResult.REFUSED]


def test_a_copy_takes_no_place_that_compaction_has_cleared() -> None:
    found = reading()
    read(found, COPIES)
    found.begin_again(same_topic=True)
    assert read(found, [TopicRecord(OWN_KEY, b"garbage", NOW_MS), COPIES[0]]) == [FoldResult.REFUSED, None]
    found.reached_end(NOW)
    assert counts(found.view) == 33, "what was known before still is"


def test_what_counted_unsigned_is_forgotten_where_a_reading_forgets() -> None:
    for forget, left in ((False, 30), (True, NoRecord.MISSING)):
        found = TopicReplay(TOLERANCE)
        read(found, [TopicRecord(OWN_KEY, value(30), NOW_MS)])
        found.verifier = verifier()
        found.begin_again(same_topic=True, forget=forget)
        read(found, [TopicRecord(OWN_KEY, value(30), NOW_MS)])
        assert counts(found.view) == 30, "until the topic has been read to its end"
        found.reached_end(NOW)
        assert counts(found.view) == left


def test_a_stranger_s_keys_are_ignored_unsigned_as_ever() -> None:
    assert read(reading(), [TopicRecord(b"certificate/7", b"x", NOW_MS)]) == [FoldResult.IGNORED]


def test_the_highest_counter_of_a_key_is_known_also_while_the_topic_is_read_again() -> None:
    found = reading()
    assert found.verifier is not None
    counters = found.verifier.counters
    assert counters.highest(OWN_KEY) == 0
    read(found, [*COPIES, operator().record(OWN_KEY, None, NOW_MS + 9)])
    assert counters.highest(OWN_KEY) == NOW_MS + 9
    found.begin_again(same_topic=True)
    assert counters.highest(OWN_KEY) == NOW_MS + 9
    assert counters.highest(b"8") == 0


def test_an_operator_alone_announces_a_maintenance() -> None:
    found = orders_reading()
    records = [
        signer.record(b"maintenance/7", raw(order()), topic=TopicKind.ORDERS)
        for signer in (GENUINE, operator())
    ]
    assert read(found, records) == [FoldResult.REFUSED, FoldResult.OPERATOR]
    assert found.view.brokers_under(BrokerOrder.MAINTENANCE, NOW + timedelta(seconds=1)) == {7}


def test_without_an_admission_headers_are_not_looked_at() -> None:
    found = TopicReplay(TOLERANCE)
    (event,) = found.read([COPIES[0]._replace(partition=9)], NOW, backlog=False)
    assert isinstance(event, UsageEvent)
    assert event.record.signer is None
