"""The orders in force, in one list."""

from __future__ import annotations

import pytest

from kquota.formats.records import TopicKind, TopicRecord, read_record
from kquota.policy.events import OrderTerms, ReliefEvent
from kquota.policy.orders import MAX_RELIEFS, Orders
from kquota.policy.standing_orders import orders_in_force
from kquota.policy.timestamps import format_utc
from kquota.policy.view import ClusterView, FoldResult
from tests.unit.policy.signers import NOW_MS
from tests.unit.policy.situations import NOW, TOLERANCE, fold, order, raw


def relief(plan_id: str, value: dict[str, object] | None, topic: TopicKind = TopicKind.ORDERS) -> TopicRecord:
    return TopicRecord(f"relief/{plan_id}".encode(), raw(value), NOW_MS, topic=topic)


@pytest.mark.accepts("G11")
def test_the_hold_and_the_orders_about_brokers_are_listed_until_they_end() -> None:
    view = fold(
        ("quarantine/3", order()),
        ("maintenance/12", order()),
        ("maintenance/4", order(0)),
        ("quarantine/2", order()),
        ("hold", order(Action="open")),
    )
    found = [(one.order, one.broker_id, one.action, one.note.actor) for one in orders_in_force(view, NOW)]
    assert found == [
        ("hold", None, "open", "alice"),
        ("maintenance", 12, "", "alice"),
        ("quarantine", 2, "", "alice"),
        ("quarantine", 3, "", "alice"),
    ]
    assert orders_in_force(fold(("hold", order(-1, Action="pause"))), NOW) == ()


@pytest.mark.accepts("G11")
def test_a_relief_plan_is_an_order_until_it_ends_or_is_withdrawn() -> None:
    view = ClusterView(TOLERANCE)
    for plan_id, value in (("b", order()), ("a", order()), ("over", order(0)), ("b", None)):
        assert view.orders.fold(read_record(relief(plan_id, value)), NOW)  # type: ignore[arg-type]
    (found,) = orders_in_force(view, NOW)
    assert found.to_document() == {
        "order": "relief",
        "broker_id": None,
        "action": "a",
        "until": format_utc(found.note.until),
        "reason": "a test",
        "actor": "alice",
    }


@pytest.mark.parametrize("key", ["", "a/b", "x" * 65, "a b"])
def test_a_plan_has_an_id_and_is_on_the_orders_topic_alone(key: str) -> None:
    view = ClusterView(TOLERANCE)
    assert view.fold(read_record(relief(key, order())), NOW) is FoldResult.IGNORED
    assert view.fold(read_record(relief("a", order(), TopicKind.USAGE)), NOW) is FoldResult.WRONG_TOPIC


def test_relief_plans_are_bounded_and_ended_ones_make_room() -> None:
    orders, later = Orders(), NOW.replace(year=NOW.year + 1)
    ended, standing = OrderTerms(NOW, "r", "a"), OrderTerms(later, "r", "a")
    for number in range(MAX_RELIEFS):
        assert orders.fold(ReliefEvent(f"{number:03}", standing if number else ended), NOW)
    assert orders.fold(ReliefEvent("y", standing), NOW), "in the place of the ended one"
    assert not orders.fold(ReliefEvent("z", standing), NOW)
    assert orders.fold(ReliefEvent("001", standing), NOW)
    assert len(orders.reliefs_in_force(NOW)) == MAX_RELIEFS
