"""The policy: every broker's volumes, one decision."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from kquota.core.decision import FallbackAction, State, UndeterminedCause
from kquota.core.policy import PolicySettings, Situation, decide
from tests.unit.core.situations import (
    GB,
    NOW,
    Record,
    Value,
    causes,
    decided,
    fold,
    free,
    limit,
    own_look,
    reasons,
    usage,
    verdict,
)

OPEN, PAUSE = ("OPEN", Fraction(1)), ("PAUSE", Fraction(0))
BOTH_FALLBACKS = pytest.mark.parametrize("fallback", ["pause", "open"])


def throttle(headroom: str) -> tuple[str, Fraction]:
    return "THROTTLE", Fraction(headroom)


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


@pytest.mark.accepts("A6")
def test_each_volume_is_judged_by_itself_and_not_the_broker_as_a_whole() -> None:
    record = usage(free(1), free(99, "/dev/sdb1"))
    decision = decided(("1", record))
    assert verdict(decision) == PAUSE
    assert reasons(decision) == [(1, "/dev/sda1", "hard")]


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


@pytest.mark.accepts("A24")
def test_brokers_with_limits_of_their_own_work_together() -> None:
    percent: dict[str, Any] = {
        "SoftLimit": limit("MinFreePercentage", 50),
        "HardLimit": limit("MinFreeBytes", 10 * GB),
    }
    decision = decided(("1", usage(free(45))), ("2", usage(free(40), **percent)))
    assert verdict(decision) == throttle("0.75")
    assert reasons(decision) == [(2, "/dev/sda1", "soft")]


@pytest.mark.accepts("A25")
def test_a_volume_is_judged_by_its_own_limits() -> None:
    override: dict[str, Any] = {"HardLimit": limit("MinFreeBytes", 15 * GB)}
    assert verdict(decided(("1", usage(free(15))))) == throttle("0.5")
    assert verdict(decided(("1", usage(free(15, **override))))) == PAUSE


@pytest.mark.accepts("A29")
@pytest.mark.parametrize(("gigabytes", "expected"), [("10.1", OPEN), ("10", PAUSE)])
def test_mixed_types_without_a_zone_go_from_open_to_pause(
    gigabytes: str, expected: tuple[str, Fraction]
) -> None:
    record = usage(free(gigabytes), SoftLimit=limit("MinFreePercentage", 5))
    decision = decided(("1", record))
    assert (verdict(decision), causes(decision)) == (expected, [])


@pytest.mark.accepts("A30")
def test_a_latched_volume_counts_as_over_hard_for_every_reader() -> None:
    decision = decided(("1", usage(free(15, Latched="HARD"))), ("2", usage(free(99))), self_id=2)
    assert verdict(decision) == PAUSE
    assert reasons(decision) == [(1, "/dev/sda1", "latched")]


@pytest.mark.accepts("A28")
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"Status": "offline"}, OPEN),
        ({"Status": "offline", "Latched": "HARD"}, OPEN),  # offline outranks the latch
        ({"Role": "metadata"}, OPEN),
        ({"Role": "metadata", "Latched": "HARD"}, OPEN),
        ({"Role": "metadata", "Status": "failed"}, OPEN),
        ({"Status": "ok"}, PAUSE),
    ],
)
def test_a_volume_that_is_offline_or_holds_only_metadata_has_no_vote(
    fields: dict[str, Any], expected: tuple[str, Fraction]
) -> None:
    decision = decided(("1", usage(free(5, **fields), free(50, "/dev/sdb1"))))
    assert (verdict(decision), causes(decision)) == (expected, [])


@pytest.mark.accepts("A28")
def test_without_a_voting_volume_there_is_nothing_to_hold_back_for() -> None:
    assert verdict(decided(("1", usage(free(5, Status="offline"))))) == OPEN


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


UNDETERMINED: list[tuple[list[Value], str]] = [
    ([], "missing"),
    ([usage(free(50), age_seconds=60.001)], "stale"),
    ([usage(free(50)), None], "tombstone"),
    ([b"null"], "malformed"),
    ([b"{}"], "malformed"),
    ([usage(free(50), age_seconds=-30.001)], "future"),
    ([usage(free(50, Status="failed"))], "failed"),
    ([usage(free(50), HardLimit=limit("Unheard", 1))], "invalid-limit"),
    ([usage(free(50), HardLimit=limit("MinFreeBytes", -1))], "invalid-limit"),
    ([usage(free(50), SoftLimit=limit("MinFreePercentage", 100.1))], "invalid-limit"),
    ([usage(free(50), SoftLimit=limit("MinFreeBytes", 10 * GB))], "invalid-limit"),
    ([usage(free(50, HardLimit=limit("MinFreeBytes", 20 * GB)))], "invalid-limit"),
]


@pytest.mark.accepts("A2", "A18", "A20", "A31", "F5", "F7", "F11")
@pytest.mark.parametrize(("values", "cause"), UNDETERMINED)
@BOTH_FALLBACKS
def test_an_active_broker_whose_state_is_not_known_calls_for_the_fallback_action(
    values: list[Value], cause: str, fallback: str
) -> None:
    records: list[Record] = [("1", value) for value in values]
    decision = decided(*records, ("2", usage(free(50))), active=[1, 2], fallback=fallback)
    assert causes(decision) == [(1, cause)]
    assert decision.fallback
    if fallback == "pause":
        assert verdict(decision) == PAUSE
        assert reasons(decision) == [(1, None, "fallback")]
    else:
        assert verdict(decision) == OPEN
        assert reasons(decision) == []


@pytest.mark.accepts("A31")
@pytest.mark.parametrize(("values", "cause"), UNDETERMINED)
def test_an_inactive_broker_is_never_undetermined(values: list[Value], cause: str) -> None:
    records: list[Record] = [("1", value) for value in values]
    decision = decided(*records, ("2", usage(free(50))), active=[2])
    assert (verdict(decision), causes(decision), decision.fallback) == (OPEN, [], False)


@pytest.mark.accepts("A31")
@pytest.mark.parametrize(("values", "cause"), UNDETERMINED)
def test_a_broker_within_the_join_grace_is_not_undetermined(values: list[Value], cause: str) -> None:
    records: list[Record] = [("1", value) for value in values]
    decision = decided(*records, ("2", usage(free(50))), active=[1, 2], joining=[1])
    assert (verdict(decision), causes(decision)) == (OPEN, [])


@pytest.mark.accepts("A31")
@pytest.mark.parametrize(("gigabytes", "expected"), [(15, throttle("0.5")), (5, PAUSE)])
def test_a_joining_broker_keeps_its_last_verdict_however_old(
    gigabytes: int, expected: tuple[str, Fraction]
) -> None:
    record = usage(free(gigabytes), age_seconds=86_400)
    assert verdict(decided(("1", record), active=[1], joining=[1])) == expected
    assert verdict(decided(("1", record), ("1", None), active=[1], joining=[1])) == OPEN


@pytest.mark.accepts("A20", "A21", "A31")
@pytest.mark.parametrize(("age_seconds", "fresh"), [(59.999, True), (60, True), (60.001, False)])
def test_a_record_exactly_as_old_as_the_threshold_is_fresh(age_seconds: float, fresh: bool) -> None:
    decision = decided(("1", usage(free(15), age_seconds=age_seconds)))
    assert verdict(decision) == (throttle("0.5") if fresh else PAUSE)
    assert causes(decision) == ([] if fresh else [(1, "stale")])


@pytest.mark.accepts("A20", "A21")
def test_an_old_snapshot_in_a_new_record_is_stale() -> None:
    fresh, old = usage(free(50), age_seconds=1), usage(free(50), age_seconds=61)
    assert causes(decided(("1", fresh), ("1", old))) == [(1, "stale")]


@pytest.mark.accepts("A18", "A20")
@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        (free(50), OPEN),
        (free(13), OPEN),  # stale state is ignored …
        (free(10), PAUSE),  # … but silence never releases
        (free(13, Latched="HARD"), PAUSE),
        (free(5, Status="offline"), OPEN),
        (free(5, Role="metadata"), OPEN),
    ],
)
def test_with_fallback_open_of_a_stale_record_only_a_breach_goes_on_counting(
    volume: dict[str, object], expected: tuple[str, Fraction]
) -> None:
    decision = decided(("1", usage(volume, age_seconds=61)), fallback="open")
    assert (verdict(decision), causes(decision)) == (expected, [(1, "stale")])


@pytest.mark.accepts("A18")
def test_with_fallback_open_what_is_known_to_be_breached_counts_all_the_same() -> None:
    records: list[Record] = [("1", usage(free(14))), ("2", usage(free(50), age_seconds=61))]
    decision = decided(*records, active=[1, 2, 3], fallback="open")
    assert verdict(decision) == throttle("0.4")
    assert causes(decision) == [(2, "stale"), (3, "missing")]
    assert not decision.fallback  # what is known is worse, and decides


@pytest.mark.accepts("A2", "A31")
@BOTH_FALLBACKS
def test_volumes_that_can_be_judged_vote_beside_an_invalid_limit(fallback: str) -> None:
    bad = free(50, "/dev/sdb1", HardLimit=limit("Unheard", 1))
    throttled = decided(("1", usage(free(14), bad)), fallback=fallback)
    assert causes(throttled) == [(1, "invalid-limit")]
    assert verdict(throttled) == (PAUSE if fallback == "pause" else throttle("0.4"))
    assert verdict(decided(("1", usage(free(10), bad)), fallback=fallback)) == PAUSE
    # inactive: never undetermined, yet it votes
    assert verdict(decided(("1", usage(free(14), bad)), active=[2], joining=[2])) == throttle("0.4")


@pytest.mark.accepts("A30", "A31")
def test_a_latch_counts_even_where_the_limits_can_not_be_judged() -> None:
    record = usage(free(50, Latched="HARD", HardLimit=limit("Unheard", 1)))
    assert verdict(decided(("1", record), fallback="open")) == PAUSE


@pytest.mark.accepts("A26", "A31")
@pytest.mark.parametrize(("gigabytes", "expected"), [(50, OPEN), (13, throttle("0.3")), (10, PAUSE)])
def test_a_broker_that_is_away_keeps_its_last_verdict_however_old(
    gigabytes: int, expected: tuple[str, Fraction]
) -> None:
    records: list[Record] = [("1", usage(free(gigabytes), age_seconds=10**8)), ("2", usage(free(50)))]
    assert verdict(decided(*records, active=[2])) == expected


@pytest.mark.accepts("A26", "A31")
def test_a_tombstone_removes_a_broker_that_is_away() -> None:
    records: list[Record] = [("1", usage(free(5))), ("2", usage(free(50)))]
    assert verdict(decided(*records, active=[2])) == PAUSE
    assert verdict(decided(*records, ("1", None), active=[2])) == OPEN


@pytest.mark.accepts("A31", "F11")
@BOTH_FALLBACKS
def test_a_tombstone_for_a_live_broker_is_undetermined_until_it_reports_again(fallback: str) -> None:
    records: list[Record] = [("1", usage(free(50))), ("1", None)]
    assert causes(decided(*records, fallback=fallback)) == [(1, "tombstone")]
    assert verdict(decided(*records, ("1", usage(free(50))), fallback=fallback)) == OPEN


@pytest.mark.accepts("A26")
def test_after_a_restart_of_the_whole_cluster_the_topic_alone_says_it_all() -> None:
    records: list[Record] = [
        (str(i), usage(free(free_gb), age_seconds=600)) for i, free_gb in ((1, 50), (2, 9), (3, 50))
    ]
    assert verdict(decided(*records, active=[1, 2, 3], joining=[1, 2, 3])) == PAUSE
    assert verdict(decided(*records, active=[1, 2, 3], fallback="open")) == PAUSE


@pytest.mark.accepts("A20")
def test_a_malformed_record_does_not_make_the_last_good_one_fresher() -> None:
    records: list[Record] = [("1", usage(free(50), age_seconds=60)), ("1", b"{}")]
    assert causes(decided(*records)) == []
    assert causes(decided(*records, now=NOW + timedelta(milliseconds=1))) == [(1, "stale")]


@pytest.mark.accepts("A18")
@pytest.mark.parametrize(
    "cause", [UndeterminedCause.TOPIC_REFUSED, UndeterminedCause.NOT_READ, UndeterminedCause.NO_BROKER_LIST]
)
@BOTH_FALLBACKS
def test_where_the_cluster_can_not_be_known_the_fallback_action_counts(
    cause: UndeterminedCause, fallback: str
) -> None:
    records: list[Record] = [("1", usage(free(14)))]
    decision = decided(*records, causes=(cause, cause), fallback=fallback)
    assert causes(decision) == [(None, cause.value)]
    assert verdict(decision) == (PAUSE if fallback == "pause" else throttle("0.4"))


@pytest.mark.accepts("A18")
def test_without_a_list_of_active_brokers_nothing_is_determined_and_every_last_verdict_counts() -> None:

    from kquota.core.policy import PolicySettings

    view = fold(("1", usage(free(14), age_seconds=600)))
    for action, state in ((FallbackAction.PAUSE, State.PAUSE), (FallbackAction.OPEN, State.THROTTLE)):
        decision = decide(view, Situation(active_brokers=None), PolicySettings(action), NOW)
        assert (decision.state, causes(decision)) == (state, [(None, "no-broker-list")])


@pytest.mark.accepts("A18")
def test_the_fallback_action_is_pause_unless_told_otherwise() -> None:
    assert PolicySettings().fallback_action.value == "pause"
    assert PolicySettings().staleness == timedelta(seconds=60)


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


@pytest.mark.accepts("A10", "A28")
def test_a_volume_of_ones_own_that_has_just_failed_makes_this_broker_undetermined_to_itself() -> None:
    own = own_look(free(50, Status="failed"))
    assert causes(decided(("1", usage(free(50))), self_id=1, own=own)) == [(1, "failed")]
    stale = decided(("1", usage(free(50), age_seconds=61)), self_id=1, own=own)
    assert causes(stale) == [(1, "stale")]


def test_an_own_look_needs_to_know_whose_it_is() -> None:
    with pytest.raises(ValueError, match="self_id"):
        Situation(frozenset({1}), own=own_look(free(50)))
