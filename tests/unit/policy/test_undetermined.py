"""Unknown states: brokers that must report, the record of a silent broker, and the fallback action."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import FallbackAction, State, UndeterminedCause
from tests.unit.policy.situations import (
    BOTH_FALLBACKS,
    GB,
    NOW,
    OPEN,
    PAUSE,
    Record,
    Value,
    causes,
    decided,
    fold,
    free,
    limit,
    reasons,
    throttle,
    usage,
    verdict,
)

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


SILENT = {"missing", "stale", "tombstone", "malformed", "future"}


@pytest.mark.accepts("A31")
@pytest.mark.parametrize(("values", "cause"), UNDETERMINED)
def test_the_join_grace_excuses_a_broker_that_is_silent_and_no_report_that_it_made(
    values: list[Value], cause: str
) -> None:
    """A host that reboots without one of its disks reports at once that it has failed."""
    records: list[Record] = [("1", value) for value in values]
    decision = decided(*records, ("2", usage(free(50))), active=[1, 2], joining=[1])
    expected = (OPEN, []) if cause in SILENT else (PAUSE, [(1, cause)])
    assert (verdict(decision), causes(decision)) == expected


@pytest.mark.accepts("A31", "F16")
def test_the_join_grace_excuses_no_report_of_another_instance_either() -> None:
    failed = usage(free(50, Status="failed"), InstanceId="a")
    for sound, expected in [
        (usage(free(50), InstanceId="b"), [(1, "failed")]),
        (usage(free(50), InstanceId="a"), []),
    ]:
        assert causes(decided(("1", failed), ("1", sound), joining=[1])) == expected


@pytest.mark.accepts("A31")
def test_a_report_that_failed_before_its_broker_went_away_is_excused() -> None:
    failed = usage(free(50, Status="failed"), age_seconds=61)
    assert causes(decided(("1", failed), joining=[1])) == []


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
    assert not decision.fallback  # the known state is worse, and decides


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

    from kquota.policy.decide import PolicySettings

    view = fold(("1", usage(free(14), age_seconds=600)))
    for action, state in ((FallbackAction.PAUSE, State.PAUSE), (FallbackAction.OPEN, State.THROTTLE)):
        decision = decide(view, Situation(active_brokers=None), PolicySettings(action), NOW)
        assert (decision.state, causes(decision)) == (state, [(None, "no-broker-list")])


@pytest.mark.accepts("A18")
def test_the_fallback_action_is_pause_unless_told_otherwise() -> None:
    assert PolicySettings().fallback_action.value == "pause"
    assert PolicySettings().staleness == timedelta(seconds=60)
