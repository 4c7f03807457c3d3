"""Brokers that only observe although enforcing is decided, and the words for it."""

from __future__ import annotations

from typing import Any

import pytest

from kquota.formats.sentences import broken_glass_sentence, local_broken_glass, observing_brokers
from tests.unit.wording import say

pytestmark = pytest.mark.accepts("G22")


def brokers(**modes: str | None) -> list[dict[str, Any]]:
    return [{"broker_id": int(name[1:]), "active": True, "mode": mode} for name, mode in modes.items()]


def host(
    decided: str | None = None, in_force: str | None = None, *, lease_seconds: float = 20
) -> dict[str, Any]:
    return {
        "broker_id": 1,
        "decision": None if decided is None else {"mode": decided},
        "lease_seconds_left": None if decided is None else lease_seconds,
        "applied": None if in_force is None else {"mode": in_force},
    }


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        ([], None),
        ([3], say("broken-glass", broker=3)),
        ([2, 3], say("broken-glasses", brokers="2, 3")),
        (range(1, 6), say("broken-glasses", brokers="1, 2, 3, 4, 5")),
        (range(1, 8), say("broken-glasses", brokers="1, 2, 3, 4, 5 and 2 more")),
    ],
)
def test_the_brokers_are_named_but_not_a_thousand_of_them(ids: list[int], sentence: str | None) -> None:
    assert broken_glass_sentence(ids) == sentence


@pytest.mark.parametrize(
    ("others", "local", "observing"),
    [
        (brokers(b1="enforce", b2="observe"), host(), [2]),
        (brokers(b1=None, b2="observe"), host("enforce"), [2]),
        (brokers(b1="observe", b2="observe"), host("enforce", "observe"), [1, 2]),
        # this host's files are newer than its record
        (brokers(b1="observe", b2="enforce"), host("enforce", "enforce"), []),
        (brokers(b1="enforce", b2="enforce"), host("enforce", "observe"), [1]),
        # the whole fleet observes, as configured
        (brokers(b1="observe", b2="observe"), host("observe", "observe"), []),
        (brokers(b1="observe", b2=None), host(), []),
        # the content of a lease that has ended counts no more
        (brokers(b2="observe"), host("enforce", lease_seconds=0), []),
        (brokers(b1="enforce", b2=None), host("enforce"), []),
    ],
)
def test_who_observes_where_enforcing_is_decided(
    others: list[dict[str, Any]], local: dict[str, Any], observing: list[int]
) -> None:
    assert observing_brokers(others, local) == observing


def test_a_broker_that_is_away_lets_nobody_through() -> None:
    away = brokers(b1="enforce", b2="observe")
    away[1]["active"] = False
    assert observing_brokers(away, host("enforce")) == []


@pytest.mark.parametrize(
    ("local", "broken"),
    [
        (host("enforce", "observe"), True),
        (host("enforce", "enforce"), False),
        (host("observe", "observe"), False),
        (host("enforce"), False),
        (host(None, "observe"), False),
        (host("enforce", "observe", lease_seconds=0), False),
    ],
)
def test_of_the_broker_on_this_host_its_own_files_tell(local: dict[str, Any], broken: bool) -> None:
    assert local_broken_glass(local) == (say("broken-glass", broker=1) if broken else None)
