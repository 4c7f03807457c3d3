"""Orders on their own topic: their bounds, their authors, and which of two topics' orders counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import (
    LONGEST_ACTOR,
    LONGEST_ORDER,
    LONGEST_REASON,
    TopicKind,
    TopicRecord,
    read_record,
)
from kquota.formats.sentences import wrong_topic_sentence
from kquota.formats.signature_headers import SigningMode
from kquota.formats.topic_replay import TopicReplay
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.events import (
    BrokerOrder,
    BrokerOrderEvent,
    Decommission,
    DecommissionEvent,
    HoldEvent,
    IgnoredEvent,
    MalformedEvent,
    TombstoneEvent,
    WrongTopicEvent,
)
from kquota.policy.orders import MAX_BROKER_ORDERS, Orders
from kquota.policy.timestamps import format_utc
from kquota.policy.view import ClusterView, FoldResult, NoRecord
from tests.unit.policy.signers import CLUSTER, NOW_MS, Authorities, agent, operator
from tests.unit.policy.situations import NOW, STALENESS, TOLERANCE, Value, free, order, raw, usage
from tests.unit.wording import wording

DAY_SECONDS = 86_400
ORDERS, USAGE = TopicKind.ORDERS, TopicKind.USAGE
KEYS = ["hold", "quarantine/3", "maintenance/3"]


def on(topic: TopicKind, key: str, value: Value, appended_ms: int | None = NOW_MS) -> TopicRecord:
    return TopicRecord(key.encode(), raw(value), appended_ms, topic=topic)


def value_for(key: str, **fields: object) -> dict[str, object]:
    return order(**({"Action": "open"} if key == "hold" else {}) | fields)  # type: ignore[arg-type]


@pytest.mark.accepts("G11")
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"Reason": " \t"}, "Reason: "),
        ({"Actor": "x" * (LONGEST_ACTOR + 1)}, "Actor: "),
        ({"seconds_left": 30 * DAY_SECONDS + 0.001}, "Until: "),
    ],
)
def test_an_order_beyond_its_bounds_is_malformed_and_the_one_before_stays(
    key: str, fields: Mapping[str, Any], problem: str
) -> None:
    event = read_record(on(ORDERS, key, value_for(key, **fields)))
    assert isinstance(event, MalformedEvent)
    assert event.problem.startswith(problem)
    view = ClusterView(TOLERANCE)
    view.fold(read_record(on(ORDERS, key, value_for(key))), NOW)
    before = view.orders.hold, dict(view.orders.notes)
    assert view.fold(event, NOW) is FoldResult.MALFORMED
    assert (view.orders.hold, view.orders.notes) == before


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "fields",
    [
        {"seconds_left": 30 * DAY_SECONDS},
        {"Reason": "x" * LONGEST_REASON, "Actor": "y" * LONGEST_ACTOR},
    ],
)
def test_an_order_at_its_bounds_counts(key: str, fields: Mapping[str, Any]) -> None:
    event = read_record(on(ORDERS, key, value_for(key, **fields)))
    assert isinstance(event, HoldEvent | BrokerOrderEvent)


def test_the_end_counts_from_the_append_not_from_the_reading() -> None:
    ago_ms = NOW_MS - 10 * DAY_SECONDS * 1000
    late = order(seconds_left=21 * DAY_SECONDS)
    assert isinstance(read_record(on(ORDERS, "quarantine/3", late, ago_ms)), MalformedEvent)
    assert not isinstance(read_record(on(ORDERS, "quarantine/3", late)), MalformedEvent)


@pytest.mark.parametrize("key", [*KEYS, "decommission/3"])
def test_without_the_brokers_time_an_order_is_malformed(key: str) -> None:
    event = read_record(on(ORDERS, key, value_for(key), None))
    assert event == MalformedEvent(None, key, wording("refusals")["without-a-time"])


def test_the_orders_topic_has_orders_alone_and_the_usage_topic_none() -> None:
    assert isinstance(read_record(on(ORDERS, "3", usage(free(5)))), IgnoredEvent)
    assert isinstance(read_record(on(ORDERS, "3", None)), IgnoredEvent)
    for key in (*KEYS, "decommission/3", "relief/a"):
        assert isinstance(read_record(on(USAGE, key, order())), WrongTopicEvent)
    for key in ("decommission/2147483648", "decommission/03", "decommission/"):
        assert isinstance(read_record(on(ORDERS, key, order())), IgnoredEvent)


def test_a_decommission_has_the_time_of_its_append_and_no_end() -> None:
    event = read_record(on(ORDERS, "decommission/3", {"Reason": "sold", "Actor": "alice"}))
    assert event == DecommissionEvent(3, Decommission(NOW, "sold", "alice"))
    assert read_record(on(ORDERS, "decommission/3", None)) == DecommissionEvent(3, None)
    assert isinstance(read_record(on(ORDERS, "decommission/3", {"Actor": "alice"})), MalformedEvent)


# --- Authors


@pytest.mark.accepts("G11")
@pytest.mark.parametrize(("typed", "shown"), [("jane", None), ("alice", "alice")])
def test_the_author_of_a_signed_order_is_its_signer(typed: str, shown: str | None) -> None:
    event = read_record(on(ORDERS, "quarantine/3", order(Actor=typed)), "operator/jane")
    assert isinstance(event, BrokerOrderEvent)
    assert event.note is not None
    assert (event.note.actor, event.note.typed, event.signer) == ("jane", shown, "operator/jane")
    assert event.note.author == ("jane, typed as alice" if shown else "jane")
    assert event.note.to_document().get("TypedActor") == shown
    gone = read_record(on(ORDERS, "decommission/3", order(Actor=typed)), "operator/jane")
    assert isinstance(gone, DecommissionEvent)
    assert gone.decommission is not None
    assert gone.decommission.author == event.note.author


def test_an_agent_signs_no_order_on_the_orders_topic_not_even_for_its_own_broker() -> None:
    admits = RecordVerifier(SigningMode.REQUIRED, "__kquota_orders", Authorities())
    admits.cluster_id = CLUSTER
    for signer, result in ((agent(3), FoldResult.REFUSED), (operator("jane"), FoldResult.OPERATOR)):
        key, value = b"maintenance/3", raw(order())
        claim = signer.claim(key, value, NOW_MS, topic="__kquota_orders")
        record = TopicRecord(key, value, NOW_MS, 0, claim.to_headers(), ORDERS)
        event = admits.read(record, NOW)
        assert event is not None
        assert ClusterView(TOLERANCE).fold(event, NOW) is result


def test_an_order_signed_for_the_usage_topic_is_none_on_the_orders_topic() -> None:
    admits = RecordVerifier(SigningMode.REQUIRED, "__kquota_orders", Authorities())
    admits.cluster_id = CLUSTER
    copied = operator().record(b"hold", raw(order(Action="pause")))._replace(topic=ORDERS)
    event = admits.read(copied, NOW)
    assert event is not None
    assert ClusterView(TOLERANCE).fold(event, NOW) is FoldResult.REFUSED


# --- Decommission


def reported(at_seconds: float, **fields: object) -> TopicRecord:
    ago = -at_seconds
    return on(USAGE, "3", usage(free(5), age_seconds=ago, **fields), NOW_MS + round(1000 * at_seconds))


@pytest.mark.accepts("F12")
@pytest.mark.parametrize("order_is_read_first", [True, False])
@pytest.mark.parametrize(("at_seconds", "counts"), [(-60, False), (0, False), (0.001, True), (5, True)])
def test_a_decommission_forgets_the_reports_up_to_its_time(
    order_is_read_first: bool, at_seconds: float, counts: bool
) -> None:
    view = ClusterView(TOLERANCE)
    gone = read_record(on(ORDERS, "decommission/3", {"Reason": "sold", "Actor": "alice"}))
    turns = [
        lambda: view.orders.fold(gone, NOW),
        lambda: view.fold(read_record(reported(at_seconds)), NOW),
    ]
    for turn in turns if order_is_read_first else reversed(turns):
        turn()
    known = not isinstance(view.record_of(3, NOW), NoRecord)
    assert known is counts
    if not counts:
        assert view.record_of(3, NOW) is NoRecord.TOMBSTONE
    decision = decide(view, Situation(frozenset()), PolicySettings(), NOW)
    assert (decision.state == "PAUSE") is counts, "a dead broker's verdict counts until it is decommissioned"


def test_a_decommission_also_forgets_the_other_instance_and_what_it_knew_of_joining() -> None:
    view = ClusterView(TOLERANCE)
    joined = {"Joined": {"7": format_utc(NOW - timedelta(seconds=9))}}
    view.fold(read_record(reported(-3, InstanceId="a", **joined)), NOW)
    view.fold(read_record(reported(-2, InstanceId="b", **joined)), NOW)
    assert len(view.others_of(3, NOW)) == 1
    view.orders.fold(DecommissionEvent(3, Decommission(NOW, "sold", "alice")), NOW)
    assert view.others_of(3, NOW) == []
    assert view.joined(NOW) == {}
    view.orders.fold(DecommissionEvent(3, None), NOW)
    assert len(view.others_of(3, NOW)) == 1, "a withdrawn decommission forgets nothing"


@pytest.mark.accepts("F11")
def test_when_a_report_was_removed_is_known_until_another_one_comes() -> None:
    view, decommissioned_at = ClusterView(TOLERANCE), NOW - timedelta(seconds=1)
    assert view.removals(NOW)(3) is None, "it has never reported"
    view.fold(read_record(reported(-9)), NOW)
    assert view.removals(NOW)(3) is None
    view.fold(TombstoneEvent(3, appended_at=NOW - timedelta(seconds=5)), NOW)
    assert view.removals(NOW)(3) == NOW - timedelta(seconds=5)
    view.fold(MalformedEvent(3, "3", "not JSON"), NOW)
    assert view.removals(NOW)(3) == NOW - timedelta(seconds=5), "rubbish is no report"
    view.fold(read_record(reported(-3)), NOW)
    assert view.removals(NOW)(3) is None
    view.orders.fold(DecommissionEvent(3, Decommission(decommissioned_at, "sold", "alice")), NOW)
    assert view.removals(NOW)(3) == decommissioned_at


def test_decommissions_are_bounded_and_the_lowest_ids_stay() -> None:
    orders = Orders()
    for broker_id in range(1, MAX_BROKER_ORDERS + 1):
        assert orders.fold(DecommissionEvent(broker_id, Decommission(NOW, "r", "a")), NOW)
    assert not orders.fold(DecommissionEvent(MAX_BROKER_ORDERS + 5, Decommission(NOW, "r", "a")), NOW)
    assert orders.fold(DecommissionEvent(0, Decommission(NOW, "r", "a")), NOW)
    assert set(orders.decommissions) == set(range(MAX_BROKER_ORDERS))


@pytest.mark.accepts("G11")
@pytest.mark.parametrize(("key", "value"), [(key, value_for(key)) for key in KEYS] + [("hold", None)])
def test_orders_on_the_usage_topic_are_counted_and_do_nothing(key: str, value: Value) -> None:
    reading = TopicReplay(TOLERANCE)
    for backlog in (True, False):
        (event,) = reading.read([on(USAGE, key, value)], NOW, backlog=backlog)
        assert event is not None
        assert reading.fold(event, NOW) is FoldResult.WRONG_TOPIC
        reading.begin_again(same_topic=True)
    view = reading.view
    assert view.hold_in_force(NOW) is None
    assert not any(view.brokers_under(kind, NOW) for kind in BrokerOrder)
    assert "does not count" in wrong_topic_sentence(key)


def test_a_view_read_again_still_has_the_orders_topic_s_orders() -> None:
    orders = TopicReplay(TOLERANCE)
    reading = TopicReplay(TOLERANCE)
    orders.fold(read_record(on(ORDERS, "hold", value_for("hold", Action="pause"))), NOW)
    assert reading.view_with(orders).hold_in_force(NOW) is not None
    reading.begin_again(same_topic=True)
    reading.reached_end(NOW)
    assert reading.view_with(orders).hold_in_force(NOW) is not None
    orders.begin_again(same_topic=True)
    assert reading.view_with(orders).hold_in_force(NOW) is not None, "until it is read again"
    orders.reached_end(NOW)
    assert reading.view_with(orders).hold_in_force(NOW) is None


def test_the_bounds_are_those_of_the_contract() -> None:
    assert (timedelta(days=30), timedelta(seconds=60)) == (LONGEST_ORDER, STALENESS)
