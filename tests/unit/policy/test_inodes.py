"""Inodes as a limit of their own: headroom, latch, votes, reasons, and brokers that do not count them."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks.band import own_log_dirs
from kquota.formats.sentences import decision_sentence
from kquota.formats.status import status_document
from kquota.formats.usage_format import parse_usage, usage_from_document, usage_to_document
from kquota.policy.cordon import Cordon, log_dirs_to_cordon
from kquota.policy.decide import Situation
from kquota.policy.decision import Cause, Reason, State, UndeterminedCause
from kquota.policy.inodes import InodeLimits, Inodes
from kquota.policy.latch import latch_volumes
from kquota.policy.limit_breaches import Resource
from kquota.policy.limits import InvalidLimit
from kquota.policy.volume import Volume
from tests.unit.policy.clusters import bounded
from tests.unit.policy.situations import NOW, decided, fold, free, own_look, raw, usage
from tests.unit.wording import say

MARGIN = Fraction(1, 10)
LIMITS = InodeLimits(Fraction(5), Fraction(2))
percentages = st.fractions(0, 100, max_denominator=1000)
sizes = st.integers(1, 2**63 - 1) | st.integers(1, 200)


def left(free_inodes: object, total: object = 1000, **limits: object) -> dict[str, object]:
    """Return the field of a record: soft at 50 free inodes, hard at 20."""
    return {"Total": total, "Free": free_inodes, "SoftFreePercentage": 5, "HardFreePercentage": 2, **limits}


def volume_of(free_inodes: int, *, free_gb: int = 50, latched: bool = False) -> Volume:
    (volume,) = parse_usage(raw(usage(free(free_gb, VolumeId="x", Inodes=left(free_inodes)))) or b"").volumes
    return volume._replace(latched=latched)


@st.composite
def inodes(draw: st.DrawFn) -> Inodes:
    hard, soft = sorted(draw(st.lists(percentages, min_size=2, max_size=2, unique=True)))
    total = draw(sizes)
    return Inodes(total, draw(st.integers(0, total)), InodeLimits(soft, hard))


@pytest.mark.accepts("F35")
@bounded(300)
@given(inodes())
def test_headroom_is_the_share_left_of_the_way_between_the_limits(one: Inodes) -> None:
    soft, hard = (Fraction(percent) * one.total / 100 for percent in one.limits)
    assert one.headroom() == max(Fraction(0), min(Fraction(1), (one.free - hard) / (soft - hard)))


@bounded(200)
@given(inodes(), st.fractions(0, 1))
def test_the_free_inodes_of_a_headroom_are_the_fewest_that_have_it(one: Inodes, headroom: Fraction) -> None:
    fewest = one.free_at(headroom)
    assert 0 <= fewest <= one.total
    assert one._replace(free=fewest).headroom() >= headroom
    assert fewest == 0 or headroom == 0 or one._replace(free=fewest - 1).headroom() < headroom


@bounded(200)
@given(inodes(), st.integers(0, 50), st.booleans(), st.fractions(0, 1))
def test_more_free_inodes_never_hold_more(one: Inodes, more: int, was: bool, margin: Fraction) -> None:
    freer = one._replace(free=min(one.free + more, one.total))
    assert freer.headroom() >= one.headroom()
    assert freer.latched(was_latched=was, release_margin=margin) <= one.latched(
        was_latched=was, release_margin=margin
    )


@pytest.mark.accepts("F35")
@pytest.mark.parametrize(
    ("free_inodes", "state", "factor"),
    [
        (50, State.OPEN, 1.0),
        (49, State.THROTTLE, 0.966667),
        (21, State.THROTTLE, 0.033333),
        (20, State.PAUSE, 0),
    ],
)
def test_the_shorter_of_bytes_and_inodes_decides(free_inodes: int, state: State, factor: float) -> None:
    decision = decided(("1", usage(free(50, Inodes=left(free_inodes)))))
    assert (decision.state, decision.factor) == (state, pytest.approx(factor, abs=1e-6))
    assert [reason.resource for reason in decision.reasons] == [Resource.INODES] * (state is not State.OPEN)
    bytes_too = decided(("1", usage(free(15, Inodes=left(free_inodes)))))
    assert bytes_too.headroom == min(decision.headroom, Fraction(1, 2))


@pytest.mark.accepts("F35")
def test_the_reason_names_volume_and_inodes_in_each_state() -> None:
    where = {"volume": "/dev/sda1", "broker": 2}
    calm = "1", usage(free(50))

    def said(**fields: object) -> str:
        return decision_sentence(decided(calm, ("2", usage(free(50, **fields)))))

    assert said(Inodes=left(35)) == f"THROTTLE to 0.5: {say('between-in-inodes', **where, percent=50)}"
    assert said(Inodes=left(20)) == f"PAUSE: {say('over-hard-in-inodes', **where)}"
    assert said(Inodes=left(21), Latched="HARD") == (f"PAUSE: {say('latched-in-inodes', **where)}")
    # bytes are the ones that are shorter here
    assert said(Inodes=left(49), Latched="HARD", Consumed=89 * 10**9).count("inodes") == 0


def test_its_own_fresh_look_counts_and_names_inodes() -> None:
    known = usage(free(50, Inodes=left(35)))
    decision = decided(("1", known), self_id=1, own=own_look(free(50, Inodes=left(20))))
    assert decision.reasons[0] == Reason(Cause.OWN, Fraction(0), 1, "/dev/sda1", Resource.INODES)
    better = decided(("1", known), self_id=1, own=own_look(free(50, Inodes=left(900))))
    assert better.state is State.THROTTLE


@pytest.mark.accepts("F35")
@pytest.mark.parametrize(
    ("free_inodes", "was", "latched"),
    [(21, False, False), (20, False, True), (23, True, True), (24, True, False)],
)
def test_a_breach_of_inodes_is_latched(free_inodes: int, was: bool, latched: bool) -> None:
    (fresh,) = latch_volumes([volume_of(0, latched=was)], [volume_of(free_inodes)], MARGIN)
    assert fresh.latched is latched


def test_a_latch_holds_on_while_either_is_short() -> None:
    (fresh,) = latch_volumes([volume_of(0, latched=True)], [volume_of(900, free_gb=11)], MARGIN)
    assert fresh.latched  # 11 GB free are no more than the margin
    (fresh,) = latch_volumes([volume_of(0, latched=True)], [volume_of(900, free_gb=12)], MARGIN)
    assert not fresh.latched


def test_a_latch_outlives_the_upgrade_of_its_agent_and_ends_with_other_limits() -> None:
    former = volume_of(22, latched=True)._replace(inodes=None)
    (fresh,) = latch_volumes([former], [volume_of(22)], MARGIN)
    assert fresh.latched
    strict = Inodes(1000, 0, InodeLimits(Fraction(6), Fraction(1)))
    other = volume_of(0, latched=True)._replace(inodes=strict)
    (fresh,) = latch_volumes([other], [volume_of(22)], MARGIN)
    assert not fresh.latched


@pytest.mark.accepts("F35", "F26")
def test_an_agent_that_counts_no_inodes_still_learns_of_a_breach_by_the_latch() -> None:
    full = usage(free(50, Inodes=left(3), Latched="HARD"))
    older_reader = {
        **full,
        "Volumes": [{**free(50), "Latched": "HARD"}],
    }  # what the version before reads of it
    assert decided(("1", full)).state is decided(("1", older_reader)).state is State.PAUSE


@pytest.mark.accepts("F35", "F26")
def test_a_broker_that_counts_no_inodes_is_judged_by_bytes_alone() -> None:
    former, present = ("1", usage(free(50))), ("2", usage(free(50, Inodes=left(900))))
    assert decided(former, present).state is State.OPEN
    decision = decided(former, ("2", usage(free(50, Inodes=left(20)))))
    assert (decision.state, decision.reasons[0].broker_id, decision.undetermined) == (State.PAUSE, 2, ())


@pytest.mark.accepts("F5")
@pytest.mark.parametrize(
    "wrong",
    [
        7,
        "many",
        [],
        {},
        {"Free": 7},
        left(-1),
        left(1001),
        left(0, total=0),
        left(1.5),
        left(True),
        left("7"),
        left(7, SoftFreePercentage=101),
        left(7, SoftFreePercentage=2),
        left(7, HardFreePercentage=[]),
        left(7, HardFreePercentage=None),
    ],
    ids=str,
)
def test_inodes_that_cannot_be_judged_are_not_taken_for_fine(wrong: object) -> None:
    decision = decided(("1", usage(free(15, Inodes=wrong))))
    assert [entry.cause for entry in decision.undetermined] == [UndeterminedCause.INVALID_LIMIT]
    # the bytes of the volume still vote
    assert decided(("1", usage(free(15, Inodes=wrong))), fallback="open").headroom == Fraction(1, 2)


def test_a_whole_number_may_be_written_with_an_exponent_as_the_schema_has_it() -> None:
    document = json.dumps(usage(free(50, Inodes=left(7)))).replace('"Total": 1000', '"Total": 1e3')
    assert parse_usage(document.encode()) == parse_usage(json.dumps(usage(free(50, Inodes=left(7)))).encode())
    assert "1e3" in document


@pytest.mark.accepts("F35")
@pytest.mark.parametrize(("free_inodes", "is_covered"), [(50, True), (49, False)])
def test_while_its_owner_is_away_a_volume_short_of_inodes_has_no_bound(
    free_inodes: int, is_covered: bool
) -> None:
    """Neither for other agents, if the fallback is bounded, nor for the plug-in, if its decision is lost."""
    silent = usage(free(50, Inodes=left(free_inodes), FillCeiling=1), age_seconds=70)
    # A bound covers the silence of others, so that one report is fresh.
    decision = decided(("1", silent), ("2", usage(free(50))), fallback="bounded")
    assert (decision.state is State.OPEN, bool(decision.covered)) == (is_covered, is_covered)
    assert (own_log_dirs([volume_of(free_inodes)._replace(log_dirs=("/a",))]) is not None) is is_covered


def test_what_is_written_reads_the_same_and_null_is_absent() -> None:
    record = parse_usage(raw(usage(free(50, Inodes=left(7, SoftFreePercentage=12.5)))) or b"")
    assert usage_from_document(usage_to_document(record)) == record
    assert record.volumes[0].inodes == Inodes(1000, 7, InodeLimits(Fraction(25, 2), Fraction(2)))
    assert parse_usage(raw(usage(free(50, Inodes=None))) or b"").volumes[0].inodes is None


@pytest.mark.parametrize(("soft", "hard"), [(2, 2), (1, 2), (101, 2), (5, -1), ("5", 2), (True, 0)])
def test_limits_of_inodes_out_of_range_or_order_are_refused(soft: object, hard: object) -> None:
    with pytest.raises(InvalidLimit, match="of inodes"):
        InodeLimits.of(soft, hard)


def test_the_status_has_the_limits_in_inodes_and_how_many_files_to_remove() -> None:
    records = [("1", usage(free(50, Inodes=left(20), Latched="HARD")))]
    situation, decision = Situation(frozenset({1})), decided(*records)
    document = status_document(fold(*records), situation, decision, NOW, release_margin=MARGIN)
    assert document["brokers"][0]["volumes"][0]["inodes"] == {  # type: ignore[index]
        "total": 1000,
        "free": 20,
        "soft_free": 50,
        "hard_free": 20,
        "headroom": 0.0,
    }
    assert document["what_ends_it"] == (
        say("ends-above-margin-in-files", volume="/dev/sda1", broker=1, count=3)
    )


def test_a_volume_short_of_inodes_is_cordoned_until_the_margin() -> None:
    ours = frozenset({"/a"})
    for free_inodes, before, after in ((50, (), ()), (49, (), ours), (52, ours, ours), (53, ours, ())):
        volume = volume_of(free_inodes)._replace(log_dirs=("/a",))
        assert log_dirs_to_cordon([volume], Cordon.SOFT, frozenset(before), MARGIN) == frozenset(after)
