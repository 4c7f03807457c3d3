"""The policy: every broker's volumes, one decision."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kquota.policy.decide import Situation
from tests.unit.policy.situations import (
    OPEN,
    PAUSE,
    Record,
    Value,
    causes,
    decided,
    free,
    own_look,
    reasons,
    throttle,
    usage,
    verdict,
)


@pytest.mark.accepts("A1", "A7")
@pytest.mark.parametrize(
    ("gigabytes", "expected"),
    [
        ("20", OPEN),
        ("15", throttle("0.5")),
        ("12", throttle("0.2")),
        ("10", PAUSE),
        ("9.9", PAUSE),
    ],
)
def test_between_soft_and_hard_producers_keep_what_is_left_of_the_way(
    gigabytes: str, expected: tuple[str, Fraction]
) -> None:
    assert verdict(decided(("1", usage(free(gigabytes))))) == expected


@pytest.mark.accepts("A8")
def test_the_fullest_volume_decides_and_all_over_soft_are_named_worst_first() -> None:
    decision = decided(("1", usage(free(18))), ("2", usage(free(13, "/dev/a"), free(16, "/dev/b"))))
    assert verdict(decision) == throttle("0.3")
    assert reasons(decision) == [(2, "/dev/a", "soft"), (2, "/dev/b", "soft"), (1, "/dev/sda1", "soft")]


@pytest.mark.accepts("A9", "A10")
@pytest.mark.parametrize("self_id", [None, 1, 2, 3])
def test_one_volume_over_hard_pauses_every_broker_those_with_empty_disks_too(self_id: int | None) -> None:
    records: list[Record] = [(str(i), usage(free(99))) for i in (1, 2)]
    decision = decided(*records, ("3", usage(free(99), free(10, "/dev/sdb1"))), self_id=self_id)
    assert verdict(decision) == PAUSE
    assert reasons(decision) == [(3, "/dev/sdb1", "hard")]


@pytest.mark.accepts("A30")
def test_a_latched_volume_counts_as_over_hard_for_every_reader() -> None:
    decision = decided(("1", usage(free(15, Latched="HARD"))), ("2", usage(free(99))), self_id=2)
    assert verdict(decision) == PAUSE
    assert reasons(decision) == [(1, "/dev/sda1", "latched")]


@pytest.mark.accepts("A26", "A28", "F13")
@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        (free(5, Status="offline", Latched="HARD"), PAUSE),
        (free(15, Status="offline", Latched="HARD"), PAUSE),
        (free(5, Status="offline"), OPEN),
        (free(5, Role="metadata", Status="offline", Latched="HARD"), OPEN),
    ],
)
def test_a_full_volume_that_was_taken_offline_counts_again_when_its_broker_is_away(
    volume: dict[str, object], expected: tuple[str, Fraction]
) -> None:
    records: list[Record] = [("1", usage(volume, age_seconds=600)), ("2", usage(free(50)))]
    assert verdict(decided(*records, active=[2])) == expected
    assert verdict(decided(*records, active=[1, 2], joining=[1])) == expected, "it has not reported since"
    back: Record = ("1", usage(volume))
    assert verdict(decided(*records, back, active=[1, 2], joining=[1])) == OPEN, "it runs on without it"


@pytest.mark.accepts("A26", "A28", "F13", "F16")
def test_of_two_agents_of_a_broker_that_is_away_both_count_with_what_they_had_latched() -> None:
    records: list[Record] = [
        ("1", usage(free(15, Status="offline", Latched="HARD"), InstanceId="first", Sequence=1)),
        ("1", usage(free(50), InstanceId="second", Sequence=1)),
        ("2", usage(free(50))),
    ]
    for order in (records, [records[1], records[0], records[2]]):
        assert verdict(decided(*order, active=[2])) == PAUSE
        assert verdict(decided(*order, active=[1, 2])) == OPEN, "it runs on without it"


@pytest.mark.accepts("A28", "A18")
@pytest.mark.parametrize(
    ("volume", "with_pause", "with_open"),
    [
        (free(50, Status="failed"), PAUSE, OPEN),
        (free(15, Status="failed"), PAUSE, OPEN),  # figures from before it failed
        (free(10, Status="failed"), PAUSE, PAUSE),  # … but a breach goes on counting
        (free(50, Status="failed", Latched="HARD"), PAUSE, PAUSE),
        ({"VolumeName": "/dev/sda1", "Capacity": 0, "Consumed": 0, "Status": "failed"}, PAUSE, OPEN),
        (free(50, Status="something newer"), PAUSE, OPEN),
    ],
)
def test_a_failed_volume_makes_its_broker_undetermined(
    volume: Value, with_pause: tuple[str, Fraction], with_open: tuple[str, Fraction]
) -> None:
    assert isinstance(volume, dict)
    for fallback, expected in (("pause", with_pause), ("open", with_open)):
        decision = decided(("1", usage(volume)), ("2", usage(free(50))), fallback=fallback)
        assert (verdict(decision), causes(decision)) == (expected, [(1, "failed")])


@pytest.mark.accepts("A18", "A28")
def test_the_sound_volumes_of_a_broker_with_a_failed_one_still_vote() -> None:
    record = usage(free(50, Status="failed"), free(14, "/dev/sdb1"))
    assert verdict(decided(("1", record), fallback="open")) == throttle("0.4")


@pytest.mark.accepts("A10")
@pytest.mark.parametrize(
    ("recorded", "seen", "expected", "cause"),
    [
        (free(50), free(14), throttle("0.4"), "own"),
        (free(14), free(12), throttle("0.2"), "own"),
        (free(50), free(5), PAUSE, "own"),
        (free(14), free(50), throttle("0.4"), "soft"),  # better news must go through the topic
        (free(14), free(14), throttle("0.4"), "soft"),
        (free(5), free(50), PAUSE, "hard"),
        (free(50), free(14, "/dev/new"), throttle("0.4"), "own"),
        (free(50), free(15, Latched="HARD"), PAUSE, "own"),
    ],
)
def test_a_brokers_fresh_look_at_its_own_disks_may_only_tighten(
    recorded: dict[str, object], seen: dict[str, object], expected: tuple[str, Fraction], cause: str
) -> None:
    decision = decided(("1", usage(recorded)), self_id=1, own=own_look(seen))
    assert verdict(decision) == expected
    assert decision.reasons[0].cause.value == cause


def test_an_own_look_needs_to_know_whose_it_is() -> None:
    with pytest.raises(ValueError, match="self_id"):
        Situation(frozenset({1}), own=own_look(free(50)))
