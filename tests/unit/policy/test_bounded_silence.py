"""The fallback action bounded: a silent broker counts with the most that its volumes may have filled."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.decision_reading import MalformedDecision, read_decision_document
from kquota.formats.records import read_event
from kquota.formats.sentences import covered_sentence, decision_sentence, what_ends_it
from kquota.formats.status import status_document
from kquota.formats.usage_format import usage_from_document, usage_to_document
from kquota.policy.decide import PolicySettings
from kquota.policy.decision import (
    Covered,
    Decision,
    State,
    Undetermined,
    UndeterminedCause,
    decision_document,
)
from kquota.policy.timestamps import format_utc
from kquota.policy.usage import UsageRecord
from tests.unit.policy import situations
from tests.unit.policy.clusters import bounded
from tests.unit.policy.situations import (
    GB,
    NOW,
    OPEN,
    PAUSE,
    Record,
    causes,
    free,
    order,
    own_look,
    raw,
    reasons,
    throttle,
    usage,
    verdict,
)
from tests.unit.wording import say

# 1 GB in 10 s: a volume with 30 GB free is over its soft limit after 100 s, over its hard one after 200 s.
FAST = 10**8
CALM: Record = ("1", usage(free(50)))


def decided(*records: Record, **more: object) -> Decision:
    return situations.decided(*records, fallback="bounded", **more)  # type: ignore[arg-type]


def silent(gigabytes: object, age_seconds: float, **fields: object) -> Record:
    return "2", usage(free(gigabytes, **{"FillCeiling": FAST, **fields}), age_seconds=age_seconds)


def at(age_seconds: float) -> datetime:
    return NOW - timedelta(seconds=age_seconds)


def stale(broker_id: int) -> Undetermined:
    return Undetermined(broker_id, UndeterminedCause.STALE)


@pytest.mark.parametrize(
    ("age_seconds", "expected"),
    [
        (60.0, OPEN),  # fresh: its own figures
        (60.001, OPEN),
        (100.0, OPEN),
        (110.0, throttle("9/10")),
        (150.0, throttle("1/2")),
        (199.0, throttle("1/100")),
        (200.0, PAUSE),
        (86_400.0, PAUSE),
    ],
)
def test_a_silent_broker_is_taken_at_the_most_that_it_may_hold(
    age_seconds: float, expected: tuple[str, Fraction]
) -> None:
    decision = decided(CALM, silent(30, age_seconds))
    assert verdict(decision) == expected
    assert causes(decision) == []
    assert not decision.fallback
    covered = (Covered(stale(2), at(age_seconds - 200)),) if age_seconds > 60 else ()
    assert decision.covered == covered


def test_where_no_throttle_zone_is_left_the_bound_of_the_hard_limit_comes_first() -> None:
    """Limits of different types: the soft one is at 90 GB, behind the hard one at 80 GB."""
    limits = {
        "HardLimit": {"type": "ConsumedSpace", "level": 80 * GB},
        "SoftLimit": {"type": "MinFreeBytes", "level": 10 * GB},
    }
    assert verdict(decided(CALM, silent(30, 99, **limits))) == OPEN
    assert verdict(decided(CALM, silent(30, 100, **limits))) == PAUSE
    assert verdict(decided(CALM, silent(30, 150, **limits))) == PAUSE


def test_what_was_measured_goes_on_counting_and_keeps_its_cause() -> None:
    assert reasons(decided(CALM, silent(9, 61))) == [(2, "/dev/sda1", "hard")]
    assert reasons(decided(CALM, silent(50, 61, Latched="HARD"))) == [(2, "/dev/sda1", "latched")]
    assert reasons(decided(CALM, silent(16, 61))) == [(2, "/dev/sda1", "bounded")]
    assert reasons(decided(CALM, silent(15, 61, FillCeiling=0))) == [(2, "/dev/sda1", "soft")]
    assert verdict(decided(CALM, silent(15, 10**6, FillCeiling=0))) == throttle("1/2")


@pytest.mark.accepts("G6", "F1")
def test_a_judge_that_hears_no_broker_covers_none() -> None:
    """It is cut off: its records are not the last ones, and it hears neither breaches nor holds."""
    for silence in (
        [silent(50, 61)],
        [silent(50, 61), ("1", usage(free(50, FillCeiling=0), age_seconds=61))],
    ):
        decision = decided(*silence)
        assert verdict(decision) == PAUSE
        assert (decision.fallback, decision.covered) == (True, ())
        assert {cause for _, cause in causes(decision)} == {"stale"}
    own = own_look(free(50))
    assert verdict(decided(silent(50, 61), self_id=2, own=own)) == PAUSE, "its own look is no news of others"
    assert verdict(decided(silent(50, 61), ("1", usage(free(50), age_seconds=60)))) == OPEN
    for unheard in (None, b"{}", usage(free(50), age_seconds=-31)):
        assert verdict(decided(silent(50, 61), ("9", unheard), active=(2,))) == PAUSE


@pytest.mark.accepts("G6")
def test_a_silent_broker_that_starts_again_stays_bounded_in_the_join_grace() -> None:
    def joining(*records: Record) -> Decision:
        return decided(CALM, *records, active=(1, 2), joining=(2,))

    assert verdict(joining(silent(30, 150))) == verdict(decided(CALM, silent(30, 150))) == throttle("1/2")
    assert joining(silent(30, 150)).covered == (Covered(stale(2), at(-50)),)
    assert verdict(joining(silent(30, 300))) == PAUSE
    assert verdict(joining(silent(30, 300, Status="offline", Latched="HARD"))) == PAUSE, "its last verdict"
    for excused in (silent(50, 300, FillCeiling=None), silent(50, 300, Status="failed")):
        assert (verdict(joining(excused)), causes(joining(excused))) == (OPEN, [])
    assert verdict(joining(silent(30, 300), ("maintenance/2", order()))) == OPEN
    assert verdict(decided(silent(30, 300), active=(2,), joining=(2,))) == OPEN, "no broker reports yet"


@pytest.mark.accepts("G7")
@pytest.mark.parametrize(
    ("record", "cause"),
    [
        (("2", usage(free(50), age_seconds=61)), "stale"),
        (("2", usage(free(50, FillCeiling=1), free(50, "/dev/sdb1"), age_seconds=61)), "stale"),
        (("2", usage(free(50, FillCeiling=-1), age_seconds=61)), "stale"),
        (("2", usage(free(50, FillCeiling="1"), age_seconds=61)), "stale"),
        (silent(50, 61, Status="failed"), "stale"),
        (silent(50, 61, HardLimit={"type": "Unheard", "level": 1}), "stale"),
        (silent(50, 1, Status="failed"), "failed"),
        (silent(50, -31), "future"),
        (("2", b"{}"), "malformed"),
        (("2", None), "tombstone"),
    ],
)
def test_a_silence_without_a_bound_pauses(record: Record, cause: str) -> None:
    decision = decided(CALM, record, active=(1, 2))
    assert verdict(decision) == PAUSE
    assert causes(decision) == [(2, cause)]
    assert decision.fallback
    assert decision.covered == ()


@pytest.mark.accepts("G7")
def test_a_broker_that_never_reported_and_a_cluster_that_is_not_known_pause() -> None:
    assert verdict(decided(CALM, active=(1, 2))) == PAUSE
    assert verdict(decided(CALM, causes=(UndeterminedCause.NOT_READ,))) == PAUSE


def test_volumes_without_a_vote_need_no_bound() -> None:
    volumes = free(50, FillCeiling=FAST), free(1, "m", Role="metadata"), free(1, "o", Status="offline")
    assert verdict(decided(CALM, ("2", usage(*volumes, age_seconds=61)))) == OPEN


def test_a_volume_is_never_fuller_than_full() -> None:
    never = {
        "HardLimit": {"type": "ConsumedSpace", "level": 200 * GB},
        "SoftLimit": {"type": "ConsumedSpace", "level": 90 * GB},
    }
    decision = decided(CALM, silent(30, 10**6, **never))
    assert verdict(decision) == throttle("10/11")
    assert decision.covered == (Covered(stale(2), None),)


def test_a_clock_that_is_ahead_makes_no_record_younger_and_one_behind_is_named() -> None:
    def heard(snapshot_age_seconds: float, stored_age_seconds: float) -> Decision:
        view = situations.fold(CALM)
        _, value = silent(30, snapshot_age_seconds)
        stored_ms = round(at(stored_age_seconds).timestamp() * 1000)
        view.fold(read_event("2", raw(value), stored_ms), NOW)
        situation = situations.Situation(frozenset({1, 2}))
        settings = PolicySettings(situations.FallbackAction.BOUNDED, situations.STALENESS)
        return situations.decide(view, situation, settings, NOW)

    assert verdict(heard(120, 150)) == throttle("1/2")
    assert verdict(heard(150, 10)) == throttle("1/2")
    (covered,) = heard(150, 10).covered
    assert (covered.silence.cause, covered.silence.clock_behind_seconds) == (UndeterminedCause.CLOCK, 140)


def test_of_two_agents_for_one_broker_the_worse_counts() -> None:
    fresh = usage(free(15, FillCeiling=FAST), InstanceId="A", Sequence=1)
    old = usage(free(30, FillCeiling=FAST), InstanceId="B", Sequence=1, age_seconds=70)
    assert verdict(decided(CALM, ("2", fresh), ("2", old))) == throttle("1/2")
    failed = usage(free(15, Status="failed"), InstanceId="A", Sequence=1)
    assert causes(decided(CALM, ("2", failed), ("2", old))) == [(2, "failed")]


def test_the_own_look_tightens_and_a_hold_outranks() -> None:
    assert verdict(decided(CALM, silent(50, 61), self_id=2, own=own_look(free(15)))) == throttle("1/2")
    held = decided(CALM, silent(50, 300), ("hold", order(Action="open")))
    assert verdict(held) == OPEN
    assert [entry.broker_id for entry in held.covered] == [2]


def test_it_says_who_is_silent_and_until_when_it_is_covered() -> None:
    quiet = decided(CALM, silent(30, 141))
    assert decision_sentence(decided(CALM, silent(30, 99))) == (
        f"OPEN: {say('calm')}; {say('silent-until', broker=2, until='2026-11-20T10:17:11.123Z')}"
    )
    assert decision_sentence(quiet) == (
        f"THROTTLE to 0.59: {say('silent-between', volume='/dev/sda1', broker=2, percent=59)};"
        f" {say('silent-until', broker=2, until='2026-11-20T10:16:29.123Z')}"
    )
    assert decision_sentence(decided(CALM, silent(30, 300))).startswith(
        f"PAUSE: {say('silent-over-hard', volume='/dev/sda1', broker=2)}; broker 2 is"
    )
    assert what_ends_it(quiet, [], Fraction(1, 10)) == say("ends-stale", broker=2)
    several = decided(CALM, silent(30, 99), ("3", usage(free(20, FillCeiling=0), age_seconds=70)))
    assert decision_sentence(several).endswith(
        f"{say('silent-until', broker=2, until='2026-11-20T10:17:11.123Z')}, and 1 more"
    )
    assert decision_sentence(decided(CALM, ("3", usage(free(20, FillCeiling=0), age_seconds=70)))).endswith(
        say("silent-and-still", broker=3)
    )


def test_of_several_silent_brokers_the_one_that_is_covered_least_is_named() -> None:
    never, early, late = (Covered(stale(i), until) for i, until in ((3, None), (2, at(-10)), (1, at(-20))))
    calm = replace(decided(CALM), undetermined=(stale(5),))
    for covered, named in (
        ((late, early), early),
        ((never, late), late),
        ((never, Covered(stale(4), None)), never),
    ):
        for both in (covered, covered[::-1]):
            text = decision_sentence(replace(calm, covered=both))
            assert text.endswith(
                f"; besides, {say('unknown-stale', broker=5)}; {covered_sentence(named)}, and 1 more"
            )


def test_a_clock_that_is_behind_is_named_and_a_breach_goes_first() -> None:
    behind = Covered(Undetermined(2, UndeterminedCause.CLOCK, 75), None)
    assert covered_sentence(behind) == say("clock-behind-and-still", broker=2, seconds=75)
    unknown = replace(behind, silence=Undetermined(2, UndeterminedCause.CLOCK))
    assert covered_sentence(unknown) == say("clock-behind-and-still", broker=2, seconds="some")
    missing: Record = ("3", b"garbage")
    decision = decided(CALM, silent(30, 99), missing, active=(1, 2, 3))
    assert decision_sentence(decision) == f"PAUSE: fallback, because {say('unknown-malformed', broker=3)}"
    besides = decided(("1", usage(free(9))), silent(30, 99), ("hold", order(Action="pause")))
    assert "; broker 2 is silent" in decision_sentence(besides)


def test_who_is_covered_is_written_read_and_shown() -> None:
    view = situations.fold(CALM, silent(30, 99), ("3", usage(free(50, FillCeiling=0), age_seconds=70)))
    situation = situations.Situation(frozenset({1, 2, 3}))
    settings = PolicySettings(situations.FallbackAction.BOUNDED, situations.STALENESS)
    decision = situations.decide(view, situation, settings, NOW)
    document = decision_document(decision)
    assert document["covered"] == [
        {"broker_id": 2, "cause": "stale", "until": "2026-11-20T10:17:11.123Z"},
        {"broker_id": 3, "cause": "stale", "until": None},
    ]
    assert read_decision_document(document).covered == (Covered(stale(2), at(-101)), Covered(stale(3), None))
    without = {key: value for key, value in document.items() if key != "covered"}
    assert read_decision_document(without).covered == ()
    with pytest.raises(MalformedDecision, match="until: "):
        read_decision_document({**document, "covered": [{"broker_id": 2, "cause": "stale", "until": "soon"}]})
    status: Any = status_document(view, situation, decision, NOW, release_margin=Fraction(1, 10))
    assert [broker["covered"] for broker in status["brokers"]] == [None, *document["covered"]]
    many = replace(decision, covered=decision.covered * 40)
    assert len(decision_document(many)["covered"]) == 64  # type: ignore[arg-type]


def test_the_bound_is_written_and_read() -> None:
    record = usage_from_document(usage(free(30, FillCeiling=FAST)))
    assert record.volumes[0].fill_ceiling_bytes_per_second == FAST
    assert usage_from_document(usage_to_document(record)) == record
    assert usage_from_document(usage(free(30, FillCeiling=0.5))).volumes[0].fill_ceiling_bytes_per_second == 1


consumptions = st.integers(0, 1000)
rates = st.integers(0, 5)
growths = st.lists(st.tuples(st.floats(0.001, 60), st.floats(0, 1)), max_size=12)


@pytest.mark.accepts("G6")
@given(start=consumptions, rate=rates, growth=growths, soft=st.integers(1, 999))
@bounded(300)
def test_while_growth_keeps_to_the_bound_no_volume_passes_its_hard_limit_in_open(
    start: int, rate: int, growth: list[tuple[float, float]], soft: int
) -> None:
    """The law that bounded stands for: the decision is never better than the volume is."""
    hard = {"type": "MinFreeBytes", "level": soft - 1}
    volume = {"VolumeName": "a", "Capacity": 1000, "Consumed": start, "FillCeiling": rate}
    record = {"SnapshotAt": usage()["SnapshotAt"], "SoftLimit": {**hard, "level": soft}, "HardLimit": hard}
    view = situations.fold(("2", {**record, "Volumes": [volume]}))
    known = view.record_of(2, NOW)
    assert isinstance(known, UsageRecord)
    now, consumed = known.snapshot_at, Fraction(start)
    for seconds, share in growth:
        now += timedelta(seconds=seconds)
        step = Fraction(round(seconds * 10**6), 10**6)
        consumed = min(Fraction(1000), consumed + rate * step * Fraction(share))
        if now - known.snapshot_at <= situations.STALENESS:
            continue
        settings = PolicySettings(situations.FallbackAction.BOUNDED, situations.STALENESS)
        calm = {**usage(free(50)), "SnapshotAt": format_utc(now)}
        view.fold(read_event("1", raw(calm)), now)
        decision = situations.decide(view, situations.Situation(frozenset({1, 2})), settings, now)
        assert not decision.undetermined
        limits = known.volumes[0].limits
        assert limits is not None
        assert decision.headroom <= limits.headroom(1000, int(consumed))
        if decision.state is State.OPEN:
            assert 1000 - consumed > soft - 1
