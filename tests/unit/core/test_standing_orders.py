"""The orders in force, in one list."""

from __future__ import annotations

import pytest

from kquota.core.standing_orders import orders_in_force
from tests.unit.core.situations import NOW, fold, order


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
