"""Operators' orders: hold, quarantine, maintenance. Own hard breach > hold > everything else."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.unit.policy.situations import (
    OPEN,
    PAUSE,
    Record,
    Value,
    causes,
    decided,
    free,
    order,
    own_look,
    reasons,
    throttle,
    usage,
    verdict,
)

HOLD_OPEN: Record = ("hold", order(Action="open"))
HOLD_PAUSE: Record = ("hold", order(Action="pause"))


@pytest.mark.accepts("A10")
@pytest.mark.parametrize(
    "record",
    [usage(free(50)), usage(free(14)), usage(free(5)), usage(free(50), age_seconds=61), b"{}", None],
    ids=["open", "soft", "hard", "stale", "malformed", "tombstone"],
)
@pytest.mark.parametrize("fallback", ["pause", "open"])
def test_a_hold_outranks_other_brokers_and_the_fallback(record: Value, fallback: str) -> None:
    records: list[Record] = [("1", record), ("2", usage(free(50)))]
    for hold, expected in ((HOLD_OPEN, OPEN), (HOLD_PAUSE, PAUSE)):
        decision = decided(*records, hold, self_id=2, fallback=fallback)
        assert verdict(decision) == expected
        assert reasons(decision) == [(None, None, "hold")]
        assert not decision.fallback
        assert decision.hold is not None
        assert (decision.hold.note.reason, decision.hold.note.actor) == ("a test", "alice")


@pytest.mark.accepts("A10")
@pytest.mark.parametrize(
    "volume", [free(10), free(5), free(50, Latched="HARD")], ids=["at hard", "over hard", "latched"]
)
def test_a_hard_breach_of_ones_own_disks_outranks_a_hold_open(volume: dict[str, object]) -> None:
    records: list[Record] = [("1", usage(volume)), ("2", usage(free(50))), HOLD_OPEN]
    assert verdict(decided(*records, self_id=1)) == PAUSE
    assert verdict(decided(*records, self_id=2)) == OPEN
    assert verdict(decided(*records, self_id=None)) == OPEN


@pytest.mark.accepts("A10")
def test_a_breach_seen_before_it_is_published_outranks_a_hold_open_too() -> None:
    decision = decided(("1", usage(free(50))), HOLD_OPEN, self_id=1, own=own_look(free(5)))
    assert verdict(decision) == PAUSE
    assert reasons(decision) == [(1, "/dev/sda1", "own"), (None, None, "hold")]


@pytest.mark.accepts("A10")
def test_a_better_look_than_the_record_does_not_loosen_under_a_hold() -> None:
    record: Record = ("1", usage(free(5)))
    assert verdict(decided(record, HOLD_OPEN, self_id=1, own=own_look(free(50)))) == PAUSE


@pytest.mark.parametrize("volume", [free(14), free(5, Status="offline"), free(5, Role="metadata")])
def test_less_than_a_hard_breach_of_ones_own_yields_to_a_hold_open(volume: dict[str, object]) -> None:
    assert verdict(decided(("1", usage(volume)), HOLD_OPEN, self_id=1)) == OPEN


@pytest.mark.parametrize(("seconds_left", "held"), [(0.001, True), (0, False), (-1, False)])
def test_a_hold_ends_by_itself_exactly_at_its_until(seconds_left: float, held: bool) -> None:
    decision = decided(("1", usage(free(50))), ("hold", order(seconds_left, Action="pause")))
    assert verdict(decision) == (PAUSE if held else OPEN)
    assert (decision.hold is not None) is held


def test_a_hold_ends_with_a_tombstone_and_the_last_one_counts() -> None:
    assert verdict(decided(("1", usage(free(50))), HOLD_PAUSE, ("hold", None))) == OPEN
    assert verdict(decided(("1", usage(free(50))), HOLD_PAUSE, HOLD_OPEN)) == OPEN
    assert verdict(decided(("1", usage(free(50))), HOLD_OPEN, HOLD_PAUSE)) == PAUSE


def test_under_a_hold_it_is_still_said_who_is_not_known() -> None:
    assert causes(decided(HOLD_OPEN, active=[1])) == [(1, "missing")]


@pytest.mark.parametrize(
    "record",
    [usage(free(5)), usage(free(14)), usage(free(5), age_seconds=61), b"{}", None],
    ids=["hard", "soft", "stale", "malformed", "tombstone"],
)
@pytest.mark.parametrize("active", [[1, 2], [2]])
def test_a_quarantined_broker_has_no_vote_and_calls_for_no_fallback(record: Value, active: list[int]) -> None:
    records: list[Record] = [("1", record), ("2", usage(free(50)))]
    decision = decided(*records, ("quarantine/1", order()), active=active, self_id=2)
    assert (verdict(decision), causes(decision)) == (OPEN, [])


def test_a_quarantined_broker_still_obeys_its_own_disks() -> None:
    quarantine: Record = ("quarantine/1", order())
    others: Record = ("2", usage(free(50)))
    assert verdict(decided(("1", usage(free(5))), others, quarantine, self_id=1)) == PAUSE
    assert causes(decided(("1", None), others, quarantine, active=[1, 2], self_id=1)) == [(1, "tombstone")]
    own = own_look(free(5))
    assert verdict(decided(("1", usage(free(50))), others, quarantine, self_id=1, own=own)) == PAUSE


@pytest.mark.parametrize(("seconds_left", "expected"), [(0.001, OPEN), (0, PAUSE)])
def test_a_quarantine_ends_exactly_at_its_until(seconds_left: float, expected: tuple[str, Fraction]) -> None:
    assert verdict(decided(("1", usage(free(5))), ("quarantine/1", order(seconds_left)))) == expected


def test_a_quarantine_of_one_broker_leaves_the_others_their_vote() -> None:
    records: list[Record] = [("1", usage(free(5))), ("2", usage(free(5))), ("quarantine/1", order())]
    assert reasons(decided(*records)) == [(2, "/dev/sda1", "hard")]


@pytest.mark.parametrize(("seconds_left", "fresh"), [(0.001, True), (0, False), (-1, False)])
@pytest.mark.parametrize(("gigabytes", "expected"), [(50, OPEN), (14, throttle("2/5")), (5, PAUSE)])
def test_under_maintenance_a_record_stays_fresh_until_it_ends(
    seconds_left: float, fresh: bool, gigabytes: int, expected: tuple[str, Fraction]
) -> None:
    records: list[Record] = [
        ("1", usage(free(gigabytes), age_seconds=3600)),
        ("maintenance/1", order(seconds_left)),
    ]
    decision = decided(*records)
    assert verdict(decision) == (expected if fresh else PAUSE)
    assert causes(decision) == ([] if fresh else [(1, "stale")])


@pytest.mark.parametrize(
    ("record", "cause"),
    [
        (None, "tombstone"),
        (b"{}", "malformed"),
        (usage(free(50, Status="failed"), age_seconds=3600), "failed"),
        (usage(free(50), age_seconds=-31), "future"),
    ],
)
def test_maintenance_excuses_silence_and_nothing_else(record: Value, cause: str) -> None:
    decision = decided(("1", record), ("maintenance/1", order()))
    assert causes(decision) == [(1, cause)]
