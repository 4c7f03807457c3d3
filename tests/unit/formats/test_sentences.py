"""The sentences of a decision."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from kquota.formats.sentences import (
    decision_sentence,
    percent,
    reason_sentence,
    refused_sentence,
    undetermined_sentence,
    what_ends_it,
)
from kquota.policy.decision import Cause, Reason, Undetermined, UndeterminedCause
from kquota.policy.events import Refusal, RefusedEvent
from tests.unit.policy.situations import Record, decided, free, limit, order, own_look, usage
from tests.unit.wording import say

CALM: Record = ("1", usage(free(50)))
STALE: Record = ("2", usage(free(50), age_seconds=61))
TERMS = {"actor": "alice", "until": "2026-11-20T10:16:30.123Z", "reason": "a test"}


def said(*records: Record, **how: object) -> str:
    return decision_sentence(decided(*records, **how))  # type: ignore[arg-type]


def test_each_state_is_said_with_its_cause() -> None:
    where = {"volume": "/dev/sda1", "broker": 2}
    assert said(CALM) == f"OPEN: {say('calm')}"
    assert said(CALM, ("2", usage(free(15)))) == f"THROTTLE to 0.5: {say('between', **where, percent=50)}"
    assert said(CALM, ("2", usage(free(5)))) == f"PAUSE: {say('over-hard', **where)}"
    assert said(CALM, ("2", usage(free(50, Latched="HARD")))) == f"PAUSE: {say('latched', **where)}"


def test_for_lack_of_data_it_is_said_which_broker_and_why() -> None:
    lacking = say("unknown-stale", broker=2)
    assert said(CALM, STALE) == f"PAUSE: fallback, because {lacking}"
    assert said(CALM, STALE, active=[1, 2, 3]) == f"PAUSE: fallback, because {lacking} and 1 more"
    assert said(CALM, STALE, fallback="open") == f"OPEN: {say('fallback-open')} {lacking}"
    assert said(("1", usage(free(15))), STALE, fallback="open").endswith(f" left; besides, {lacking}")


def test_every_cause_of_not_knowing_has_words() -> None:
    cluster = {UndeterminedCause.TOPIC_REFUSED, UndeterminedCause.NOT_READ, UndeterminedCause.NO_BROKER_LIST}
    for cause in UndeterminedCause:
        broker = {} if cause in cluster else {"broker": 7}
        seconds = {"seconds": 75} if cause is UndeterminedCause.CLOCK else {}
        entry = Undetermined(broker.get("broker"), cause, seconds.get("seconds"))
        assert undetermined_sentence(entry) == say(f"unknown-{cause}", **broker, **seconds)


@pytest.mark.parametrize("cause", Refusal)
def test_every_refusal_has_words(cause: Refusal) -> None:
    assert refused_sentence(RefusedEvent("hold", cause)) == say(f"refused-{cause}", key="hold")


def test_other_volumes_are_counted_once_each() -> None:
    records: list[Record] = [("1", usage(free(14))), ("2", usage(free(13), free(12, "/dev/b")))]
    assert said(*records).endswith(say("more-volumes", count=2))
    assert said(records[0], CALM, ("3", usage(free(14)))).count("more") == 0
    # the same volume by the record and by the fresh look is one
    look = said(("1", usage(free(14))), self_id=1, own=own_look(free(12)))
    assert look == (
        f"THROTTLE to 0.2: {say('between', volume='/dev/sda1', broker=1, percent=20)} {say('own-look')}"
    )


def test_a_hold_says_who_why_and_until_when() -> None:
    assert said(CALM, ("hold", order(Action="pause"))) == f"PAUSE: {say('held', action='pause', **TERMS)}"
    assert said(STALE, ("hold", order(Action="open"))) == (
        f"OPEN: {say('held', action='open', **TERMS)}; besides, {say('unknown-stale', broker=2)}"
    )
    nameless: Record = ("hold", order(Action="pause", Reason="", Actor=""))
    assert (
        said(CALM, nameless)
        == f"PAUSE: {say('held-without-an-author', action='pause', until=TERMS['until'])}"
    )


def test_a_breach_that_outranks_a_hold_says_so() -> None:
    assert said(("1", usage(free(5))), ("hold", order(Action="open")), self_id=1) == (
        f"PAUSE: {say('over-hard', volume='/dev/sda1', broker=1)},"
        f" although {say('held', action='open', **TERMS)}"
    )


@pytest.mark.parametrize(
    ("headroom", "text"),
    [
        (Fraction(1, 10**9), "0.1 %"),
        (Fraction(5, 1000), "0.5 %"),
        (Fraction(1, 100), "1 %"),
        (Fraction(1, 3), "33 %"),
        (Fraction(99, 100), "99 %"),
        (Fraction(995, 1000), "99.5 %"),
        (1 - Fraction(1, 10**9), "99.9 %"),
    ],
)
def test_what_is_between_is_never_shown_as_none_or_all(headroom: Fraction, text: str) -> None:
    assert percent(Reason(Cause.SOFT, headroom, 1, "a")) == text


def test_every_cause_has_words() -> None:
    between = (Cause.SOFT, Cause.OWN, Cause.BOUNDED)
    at = {cause: Fraction(1, 2) if cause in between else Fraction(0) for cause in Cause}
    sentences = {reason_sentence(Reason(cause, headroom, 1, "a")) for cause, headroom in at.items()}
    assert len(sentences) == len(Cause)
    assert reason_sentence(Reason(Cause.FALLBACK, Fraction(0))) == say("fallback-of-the-cluster")
    assert reason_sentence(Reason(Cause.FALLBACK, Fraction(0), 1)) == say("fallback-of-a-broker", broker=1)
    assert reason_sentence(Reason(Cause.HOLD, Fraction(0))) == say("held-by-an-operator")


@pytest.mark.parametrize("others", [1, 2, 60])
def test_how_many_more_volumes_are_over_a_limit_is_said(others: int) -> None:
    volumes = [free(12), *(free(15, name=f"/dev/sd{number:03}") for number in range(others))]
    more = say("one-more-volume") if others == 1 else say("more-volumes", count=others)
    assert said(("1", usage(*volumes))) == (
        f"THROTTLE to 0.2: {say('between', volume='/dev/sda1', broker=1, percent=20)}{more}"
    )


def test_of_a_hold_that_is_outranked_all_breaches_of_ones_own_are_counted() -> None:
    volumes = [free(5, name=f"/dev/sd{number:03}") for number in range(60)]
    text = said(("1", usage(*volumes)), ("hold", order(Action="open")), self_id=1)
    assert text.startswith(
        f"PAUSE: {say('over-hard', volume='/dev/sd000', broker=1)}{say('more-volumes', count=59)}"
    )


def test_an_invalid_limit_is_named() -> None:
    record: Record = ("2", usage(free(50), HardLimit=limit("Unheard", 1)))
    assert said(CALM, record).endswith(say("unknown-invalid-limit", broker=2))


def test_how_far_a_clock_is_behind_need_not_be_known() -> None:
    unknown = Undetermined(3, UndeterminedCause.CLOCK)
    assert undetermined_sentence(unknown) == say("unknown-clock", broker=3, seconds="some")


MENDED = {
    UndeterminedCause.CLOCK: "ends-clock",
    UndeterminedCause.FUTURE: "ends-clock",
    UndeterminedCause.FAILED: "ends-failed",
    UndeterminedCause.INVALID_LIMIT: "ends-invalid-limit",
    UndeterminedCause.REVOKED: "ends-revoked",
}


@pytest.mark.parametrize("cause", UndeterminedCause)
def test_a_fallback_ends_when_its_cause_is_mended(cause: UndeterminedCause) -> None:
    others = Undetermined(3, UndeterminedCause.CLOCK)
    fallback = replace(decided(CALM, STALE), undetermined=(Undetermined(2, cause), others))
    if cause is UndeterminedCause.TOPIC_REFUSED:
        expected = say("ends-topic-refused")
    else:
        expected = say(MENDED.get(cause, "ends-stale"), broker=2)
    assert what_ends_it(fallback, [], Fraction(1, 10)) == expected
