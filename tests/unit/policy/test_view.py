"""The fold: of all of a broker's reports, the one record that counts."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from kquota.formats.records import MAX_BROKER_ID, read_event
from kquota.formats.sentences import excess_sentence, foreign_sentence
from kquota.policy.events import (
    BrokerOrder,
    BrokerOrderEvent,
    MalformedEvent,
    OrderTerms,
    TombstoneEvent,
    UsageEvent,
)
from kquota.policy.membership import Membership
from kquota.policy.orders import MAX_BROKER_ORDERS
from kquota.policy.usage import UsageRecord
from kquota.policy.view import (
    MAX_PENDING_BYTES,
    MAX_PENDING_RECORDS,
    MAX_UNLISTED_BROKERS,
    ClusterView,
    FoldResult,
    NoRecord,
)
from tests.unit.policy.situations import NOW, TOLERANCE, Value, fold, free, order, raw, usage
from tests.unit.wording import say


def gigabytes_free(found: UsageRecord | NoRecord) -> int | NoRecord:
    if isinstance(found, NoRecord):
        return found
    return (found.volumes[0].capacity_bytes - found.volumes[0].consumed_bytes) // 10**9


def counting(*values: Value, now: datetime = NOW) -> int | NoRecord:
    """Return which record of broker 1 counts at ``now``, by its free gigabytes."""
    return gigabytes_free(fold(*(("1", value) for value in values)).record_of(1, now))


FUTURE = usage(free(70), age_seconds=-31)
MALFORMED = b"{}"


@pytest.mark.accepts("A16", "A31")
@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([], NoRecord.MISSING),
        ([usage(free(50))], 50),
        ([usage(free(50)), usage(free(60))], 60),
        # by offset, not by SnapshotAt
        ([usage(free(50), age_seconds=1), usage(free(60), age_seconds=500)], 60),
        ([usage(free(50)), MALFORMED], 50),
        ([usage(free(50)), FUTURE], 50),
        ([usage(free(50)), FUTURE, MALFORMED], 50),
        ([FUTURE, usage(free(50))], 50),
        ([MALFORMED], NoRecord.MALFORMED),
        ([FUTURE], NoRecord.FUTURE),
        ([None], NoRecord.TOMBSTONE),
        ([usage(free(50)), None], NoRecord.TOMBSTONE),
        ([usage(free(50)), None, MALFORMED], NoRecord.MALFORMED),
        ([usage(free(50)), None, FUTURE], NoRecord.FUTURE),
        ([None, usage(free(50))], 50),
        ([usage(free(50)), b"null"], 50),
    ],
)
def test_the_last_record_that_is_well_formed_and_not_from_the_future_counts(
    values: list[Value], counts: int | NoRecord
) -> None:
    assert counting(*values) == counts


@pytest.mark.accepts("A31", "F7")
@pytest.mark.parametrize(
    ("ahead", "trusted"),
    [
        (TOLERANCE, True),
        (TOLERANCE + timedelta(milliseconds=1), False),
        (timedelta(hours=1), False),
        (timedelta(0), True),
    ],
)
def test_a_snapshot_exactly_at_the_tolerance_is_not_from_the_future(ahead: timedelta, trusted: bool) -> None:
    value = usage(free(70), age_seconds=-ahead.total_seconds())
    assert counting(value) == (70 if trusted else NoRecord.FUTURE)
    result = ClusterView(TOLERANCE).fold(read_event("1", raw(value)), NOW)
    assert result is (FoldResult.USAGE if trusted else FoldResult.FUTURE)


@pytest.mark.accepts("A31", "F7")
def test_a_record_from_the_future_counts_once_its_time_has_come() -> None:
    values = usage(free(50)), FUTURE
    assert counting(*values) == 50
    assert counting(*values, now=NOW + timedelta(seconds=1)) == 70


@pytest.mark.accepts("A31", "F7")
def test_of_several_from_the_future_each_counts_from_its_own_time_on() -> None:
    values = [usage(free(50)), *(usage(free(60 + i), age_seconds=-100 * i) for i in (1, 2, 3))]
    found = [counting(*values, now=NOW + timedelta(seconds=100 * i)) for i in range(4)]
    assert found == [50, 61, 62, 63]


@pytest.mark.accepts("F6", "F7")
def test_a_flood_from_the_future_is_bounded_and_displaces_nothing_that_counts() -> None:
    flood = [usage(free(60), age_seconds=-1000 - i) for i in range(10 * MAX_PENDING_RECORDS)]
    view = fold(*(("1", value) for value in (usage(free(50)), *flood)))
    assert gigabytes_free(view.record_of(1, NOW)) == 50
    assert len(view.brokers[1].records) <= MAX_PENDING_RECORDS + 1


@pytest.mark.accepts("F6", "F7")
def test_large_records_from_the_future_are_bounded_in_bytes_and_displace_nothing_that_counts() -> None:
    filler = "x" * (MAX_PENDING_BYTES * 2 // 5)
    flood = [usage(free(60), age_seconds=-1000 - i) | {"Filler": filler} for i in range(MAX_PENDING_RECORDS)]
    view = fold(*(("1", value) for value in (usage(free(50)), *flood)))
    assert gigabytes_free(view.record_of(1, NOW)) == 50
    counting_now, *pending = view.brokers[1].records
    assert counting_now.size_bytes < 1000
    assert len(pending) == 2, "as many as fit, and the newest is among them"
    assert sum(record.size_bytes for record in pending) <= MAX_PENDING_BYTES


@pytest.mark.accepts("F6")
def test_keys_that_somebody_makes_up_are_bounded_and_displace_no_broker_of_the_cluster() -> None:
    view = ClusterView(TOLERANCE, listed=frozenset({1, MAX_BROKER_ID}))
    event = read_event("1", raw(usage(free(50))))
    assert isinstance(event, UsageEvent)
    invented = range(10, 10 + MAX_UNLISTED_BROKERS + 50)
    for broker_id in (MAX_BROKER_ID, *invented):
        view.fold(UsageEvent(broker_id, event.record), NOW)
    assert view.fold(MalformedEvent(invented[-1], str(invented[-1]), "garbled"), NOW) is FoldResult.EXCESS
    assert view.fold(TombstoneEvent(invented[-1]), NOW) is FoldResult.EXCESS
    assert view.fold(event, NOW) is FoldResult.USAGE
    kept = set(view.brokers) - view.listed
    assert kept == set(invented[:MAX_UNLISTED_BROKERS]), "the lowest ids, in whatever order they came"
    assert set(view.brokers) >= view.listed


@pytest.mark.accepts("F6", "A10")
def test_which_of_too_many_brokers_are_kept_does_not_depend_on_their_order() -> None:
    event = read_event("1", raw(usage(free(50))))
    assert isinstance(event, UsageEvent)
    views = ClusterView(TOLERANCE), ClusterView(TOLERANCE)
    ids = [7 * i % 9973 for i in range(MAX_UNLISTED_BROKERS + 300)]
    for view, order_of_ids in zip(views, (ids, sorted(ids, reverse=True)), strict=True):
        view.fold_all((UsageEvent(broker_id, event.record) for broker_id in order_of_ids), NOW)
    assert set(views[0].brokers) == set(views[1].brokers) == set(sorted(set(ids))[:MAX_UNLISTED_BROKERS])


@pytest.mark.accepts("F6")
def test_orders_are_bounded_and_those_that_have_ended_make_room() -> None:
    note = OrderTerms(NOW + timedelta(seconds=60), "", "")
    view = ClusterView(TOLERANCE)
    quarantine = BrokerOrder.QUARANTINE
    for broker_id in range(1, MAX_BROKER_ORDERS + 1):
        view.fold(BrokerOrderEvent(quarantine, broker_id, note), NOW)
    assert view.fold(BrokerOrderEvent(quarantine, 10**6, note), NOW) is FoldResult.EXCESS
    assert view.fold(BrokerOrderEvent(quarantine, 0, note), NOW) is FoldResult.OPERATOR
    assert len(view.orders.notes) == MAX_BROKER_ORDERS
    later = NOW + timedelta(seconds=61)
    fresh = OrderTerms(later + timedelta(seconds=60), "", "")
    assert view.fold(BrokerOrderEvent(quarantine, 10**6, fresh), later) is FoldResult.OPERATOR
    assert view.brokers_under(quarantine, later) == {10**6}


@pytest.mark.accepts("F6")
def test_records_that_can_never_count_again_are_forgotten() -> None:
    view = fold(*(("1", usage(free(50), age_seconds=100 - i)) for i in range(100)))
    assert len(view.brokers[1].records) == 1


@pytest.mark.accepts("A31", "F5")
def test_each_record_is_counted_as_what_it_was() -> None:
    view = ClusterView(TOLERANCE)
    records: list[tuple[str, Value, FoldResult]] = [
        ("1", usage(free(50)), FoldResult.USAGE),
        ("1", FUTURE, FoldResult.FUTURE),
        ("1", MALFORMED, FoldResult.MALFORMED),
        ("1", None, FoldResult.TOMBSTONE),
        ("01", None, FoldResult.IGNORED),
        ("hold", order(Action="pause"), FoldResult.OPERATOR),
        ("hold", b"x", FoldResult.MALFORMED),
        ("quarantine/1", order(), FoldResult.OPERATOR),
        ("maintenance/1", None, FoldResult.OPERATOR),
    ]
    for key, value, result in records:
        assert view.fold(read_event(key, raw(value)), NOW) is result


def test_a_malformed_order_leaves_the_one_before_in_force() -> None:
    view = fold(("hold", order(Action="pause")), ("hold", b"x"), ("quarantine/1", order()))
    view.fold(MalformedEvent(None, "quarantine/1", "garbled"), NOW)
    assert view.hold_in_force(NOW) is not None
    assert view.order_in_force(BrokerOrder.QUARANTINE, 1, NOW) is not None
    assert view.brokers == {}  # an order is no news of the broker


def test_an_order_has_ended_exactly_at_its_until() -> None:
    view = fold(("hold", order(5, Action="open")), ("maintenance/2", order(5)))
    for seconds, in_force in ((4.999, True), (5, False), (6, False)):
        now = NOW + timedelta(seconds=seconds)
        assert (view.hold_in_force(now) is not None) is in_force
        assert (view.order_in_force(BrokerOrder.MAINTENANCE, 2, now) is not None) is in_force


def test_an_order_about_one_broker_is_of_its_kind_and_its_broker() -> None:
    view = fold(("quarantine/2", order()))
    assert view.order_in_force(BrokerOrder.MAINTENANCE, 2, NOW) is None
    assert view.order_in_force(BrokerOrder.QUARANTINE, 1, NOW) is None


@pytest.mark.accepts("A31")
def test_a_record_copied_from_another_cluster_is_malformed() -> None:
    ours, others = usage(free(50), ClusterId="ours"), usage(free(60), ClusterId="others")
    view = fold(("1", ours), ("1", others), ("2", others), ("3", usage(free(70))), cluster_id="ours")
    assert [gigabytes_free(view.record_of(broker, NOW)) for broker in (1, 2, 3)] == [
        50,
        NoRecord.MALFORMED,
        70,
    ]
    assert view.fold(read_event("1", raw(others)), NOW) is FoldResult.MALFORMED
    # offline, the cluster's id is unknown
    assert gigabytes_free(fold(("1", ours), ("1", others)).record_of(1, NOW)) == 60


@pytest.mark.accepts("A31")
def test_records_of_another_cluster_count_no_more_once_it_is_known_which_this_is() -> None:
    ours, others = usage(free(50), ClusterId="ours"), usage(free(60), ClusterId="others")
    nameless = usage(free(70))
    view = fold(
        ("1", ours), ("2", others), ("3", nameless), ("4", {**others, "SnapshotAt": FUTURE["SnapshotAt"]})
    )
    assert gigabytes_free(view.record_of(2, NOW)) == 60
    view.know_cluster("ours")
    found = [gigabytes_free(view.record_of(broker, NOW)) for broker in (1, 2, 3, 4)]
    assert found == [50, NoRecord.MALFORMED, 70, NoRecord.MALFORMED]


@pytest.mark.accepts("A31")
@pytest.mark.parametrize("is_known_before", [False, True])
def test_a_report_of_another_cluster_is_no_report_that_never_came(is_known_before: bool) -> None:
    """In the join grace nothing opens what it had paused, before its broker has reported."""
    full = usage(free(5), ClusterId="another")
    view = fold(("2", full), cluster_id="ours" if is_known_before else None)
    view.know_cluster("ours")
    membership = Membership(timedelta(seconds=60), TOLERANCE)
    for active in ({1}, {1, 2}):
        membership.update(frozenset(active), NOW, {})
    assert membership.joining(NOW, {}, view.removals(NOW)) == frozenset()
    view.fold(read_event("2", raw(usage(free(50), ClusterId="ours"))), NOW)
    assert membership.joining(NOW, {}, view.removals(NOW)) == {2}
    view.fold(TombstoneEvent(2, appended_at=NOW - timedelta(days=1)), NOW)
    assert membership.joining(NOW, {}, view.removals(NOW)) == {2}


def test_a_view_read_anew_takes_over_no_records_of_another_cluster() -> None:
    former = fold(("1", usage(free(50), ClusterId="ours")), ("2", usage(free(60), ClusterId="others")))
    anew = fold(cluster_id="ours")
    anew.take_over(former, NOW)
    assert [gigabytes_free(anew.record_of(b, NOW)) for b in (1, 2)] == [50, NoRecord.MALFORMED]


@pytest.mark.accepts("A26")
def test_records_of_a_topic_that_was_created_anew_wipe_no_other_broker() -> None:
    view = fold(("1", usage(free(5), age_seconds=5000)), ("2", usage(free(50))))
    view.fold(read_event("2", raw(usage(free(40)))), NOW)  # offset 0 of the new topic
    assert [gigabytes_free(view.record_of(broker, NOW)) for broker in (1, 2)] == [5, 40]


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([], 50),
        ([MALFORMED], 50),  # compaction has left nothing but unusable records
        ([FUTURE], 50),  # or records that can't be used yet
        ([FUTURE, MALFORMED], 50),
        ([None, FUTURE], NoRecord.FUTURE),
        ([usage(free(60))], 60),
        ([None], NoRecord.TOMBSTONE),
    ],
)
def test_a_view_read_anew_keeps_what_it_has_no_word_of(values: list[Value], counts: int | NoRecord) -> None:
    former, anew = fold(("1", usage(free(50)))), fold(*(("1", value) for value in values))
    anew.take_over(former, NOW)
    assert gigabytes_free(anew.record_of(1, NOW)) == counts


@pytest.mark.accepts("A31")
def test_what_a_view_read_anew_keeps_gives_way_to_a_record_whose_time_has_come() -> None:
    former, anew = fold(("1", usage(free(50))), ("1", FUTURE)), fold(("1", FUTURE))
    anew.take_over(former, NOW)
    then = NOW + timedelta(seconds=31)
    assert [gigabytes_free(anew.record_of(1, at)) for at in (NOW, then)] == [
        gigabytes_free(former.record_of(1, at)) for at in (NOW, then)
    ]


def at_capacity() -> ClusterView:
    """A view that has no room for another broker that the cluster does not list, unless its id is lower."""
    event = read_event("1", raw(usage(free(60))))
    assert isinstance(event, UsageEvent)
    view = ClusterView(TOLERANCE)
    view.fold_all((UsageEvent(10 + i, event.record) for i in range(MAX_UNLISTED_BROKERS)), NOW)
    return view


def test_a_view_read_anew_that_is_full_takes_over_lower_ids_alone() -> None:
    former = fold(("1", usage(free(50))), (str(10**6), usage(free(50))))
    anew = at_capacity()
    anew.take_over(former, NOW)
    assert [gigabytes_free(anew.record_of(broker, NOW)) for broker in (1, 10**6)] == [50, NoRecord.MISSING]
    assert len(anew.brokers) == MAX_UNLISTED_BROKERS


@pytest.mark.parametrize(
    ("values", "counts_later"),
    [
        ([MALFORMED], 70),  # no record of it: all of the former view's knowledge, future records included
        ([usage(free(80), age_seconds=-31), MALFORMED], 80),  # its own record is the future one
    ],
)
def test_what_is_to_come_is_taken_over_only_where_there_is_no_word_of_it(
    values: list[Value], counts_later: int
) -> None:
    former, anew = fold(("1", usage(free(50))), ("1", FUTURE)), fold(*(("1", value) for value in values))
    anew.take_over(former, NOW)
    then = NOW + timedelta(seconds=31)
    assert [gigabytes_free(anew.record_of(1, at)) for at in (NOW, then)] == [50, counts_later]


def test_a_former_view_that_waits_itself_has_nothing_to_give() -> None:
    anew = fold(("1", FUTURE))
    anew.take_over(fold(("1", FUTURE)), NOW)
    assert anew.record_of(1, NOW) is NoRecord.FUTURE


def test_a_record_of_ones_own_that_counts_needs_no_former_one() -> None:
    former, anew = fold(("1", usage(free(50), age_seconds=20))), fold(("1", usage(free(60), age_seconds=1)))
    anew.take_over(former, NOW)
    before_its_snapshot = NOW - TOLERANCE - timedelta(seconds=10)
    assert anew.record_of(1, before_its_snapshot) is NoRecord.FUTURE


@pytest.mark.parametrize(
    ("key", "name"), [(b"7", "7"), (b"\xff7\n", "\ufffd7\ufffd"), ("hold\x1b", "hold\ufffd"), (None, "")]
)
def test_a_record_that_is_not_used_is_named_by_its_key(key: bytes | str | None, name: str) -> None:
    assert excess_sentence(key) == (say("record-too-many", key=name, most=MAX_UNLISTED_BROKERS))
    assert foreign_sentence(key, "the\nirs") == (
        say("record-of-another-cluster", key=name, cluster="the\ufffdirs")
    )


def test_a_record_of_a_cluster_without_a_name_is_named_without_one() -> None:
    assert foreign_sentence("7", None) == say("record-of-another-cluster", key=7, cluster="")


def rivals(view: ClusterView) -> set[str | None]:
    return {record.instance_id for record in view.others_of(1, NOW)}


def test_a_view_that_is_read_again_keeps_the_other_instances_of_a_broker() -> None:
    former = fold(*(("1", usage(free(50), InstanceId=name)) for name in ("a", "b", "c")))
    assert rivals(former) == {"a", "b"}
    again = fold(("1", usage(free(40), InstanceId="c")), ("1", usage(free(60), InstanceId="c")))
    again.take_over(former, NOW)
    assert rivals(again) == {"a", "b"}
    (heard_again,) = (one for one in again.others_of(1, NOW) if one.instance_id == "a")
    assert gigabytes_free(heard_again) == 50


def test_another_instance_that_the_new_view_has_heard_counts_with_its_new_record() -> None:
    former = fold(*(("1", usage(free(50), InstanceId=name)) for name in ("a", "b")))
    again = fold(("1", usage(free(5), InstanceId="a")), ("1", usage(free(60), InstanceId="b")))
    again.take_over(former, NOW)
    assert [gigabytes_free(record) for record in again.others_of(1, NOW)] == [5]


def test_a_record_without_an_instance_is_no_rival_of_the_new_view() -> None:
    former = fold(("1", usage(free(50))), ("1", usage(free(50), age_seconds=-31)))
    again = fold(("1", usage(free(60), InstanceId="b")))
    again.take_over(former, NOW)
    assert rivals(again) == set()


def test_instances_of_another_cluster_count_no_more_once_the_cluster_is_known() -> None:
    view = fold(
        ("1", usage(free(5), InstanceId="a", ClusterId="another")),
        ("1", usage(free(6), InstanceId="b", ClusterId="ours")),
        ("1", usage(free(50), InstanceId="c", ClusterId="ours")),
    )
    assert rivals(view) == {"a", "b"}
    view.know_cluster("ours")
    assert rivals(view) == {"b"}
