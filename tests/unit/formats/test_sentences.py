"""The sentences of a decision."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kquota.formats.sentences import decision_sentence, percent, reason_sentence, undetermined_sentence
from kquota.policy.decision import Cause, Reason, Undetermined, UndeterminedCause
from tests.unit.policy.situations import Record, decided, free, limit, order, own_look, usage

CALM: Record = ("1", usage(free(50)))
STALE: Record = ("2", usage(free(50), age_seconds=61))


def said(*records: Record, **how: object) -> str:
    return decision_sentence(decided(*records, **how))  # type: ignore[arg-type]


def test_each_state_is_said_with_its_cause() -> None:
    over = "volume /dev/sda1 of broker 2"
    assert said(CALM) == "OPEN: no volume is over its soft limit"
    assert said(CALM, ("2", usage(free(15)))) == (
        f"THROTTLE to 0.5: {over} has 50 % of the way from soft to hard limit left"
    )
    assert said(CALM, ("2", usage(free(5)))) == f"PAUSE: {over} is over its hard limit"
    assert said(CALM, ("2", usage(free(50, Latched="HARD")))) == (
        f"PAUSE: {over} was over its hard limit and is not yet back above the release margin"
    )


def test_for_lack_of_data_it_is_said_which_broker_and_why() -> None:
    lacking = "the state of broker 2 is not known (its last report is too old)"
    assert said(CALM, STALE) == f"PAUSE: fallback, because {lacking}"
    assert said(CALM, STALE, active=[1, 2, 3]) == f"PAUSE: fallback, because {lacking} and 1 more"
    assert said(CALM, STALE, fallback="open") == f"OPEN: the fallback action is open although {lacking}"
    assert said(("1", usage(free(15))), STALE, fallback="open").endswith(f" left; besides, {lacking}")


def test_every_cause_of_not_knowing_has_words() -> None:
    cluster = {UndeterminedCause.TOPIC_REFUSED, UndeterminedCause.NOT_READ, UndeterminedCause.NO_BROKER_LIST}
    for cause in UndeterminedCause:
        sentence = undetermined_sentence(Undetermined(None if cause in cluster else 7, cause))
        assert (cause in cluster) != ("broker 7" in sentence)


def test_other_volumes_are_counted_once_each() -> None:
    records: list[Record] = [("1", usage(free(14))), ("2", usage(free(13), free(12, "/dev/b")))]
    assert said(*records).endswith(", and 2 more volumes over a limit")
    assert said(records[0], CALM, ("3", usage(free(14)))).count("more") == 0
    # the same volume by the record and by the fresh look is one
    look = said(("1", usage(free(14))), self_id=1, own=own_look(free(12)))
    assert look == (
        "THROTTLE to 0.2: volume /dev/sda1 of broker 1 has 20 % of the way from soft to hard limit left "
        "(this broker's own fresh look)"
    )


def test_a_hold_says_who_why_and_until_when() -> None:
    held = "by alice until 2026-11-20T10:16:30.123Z (a test)"
    assert said(CALM, ("hold", order(Action="pause"))) == f"PAUSE: held at pause {held}"
    assert said(STALE, ("hold", order(Action="open"))) == (
        f"OPEN: held at open {held}; besides, the state of broker 2 is not known (its last report is too old)"
    )
    nameless: Record = ("hold", order(Action="pause", Reason="", Actor=""))
    assert said(CALM, nameless) == "PAUSE: held at pause until 2026-11-20T10:16:30.123Z"


def test_a_breach_that_outranks_a_hold_says_so() -> None:
    assert said(("1", usage(free(5))), ("hold", order(Action="open")), self_id=1) == (
        "PAUSE: volume /dev/sda1 of broker 1 is over its hard limit, although held at open by alice until "
        "2026-11-20T10:16:30.123Z (a test)"
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
    fallback = "fallback, because the state of"
    assert reason_sentence(Reason(Cause.FALLBACK, Fraction(0))) == f"{fallback} the cluster is not known"
    assert reason_sentence(Reason(Cause.FALLBACK, Fraction(0), 1)) == f"{fallback} broker 1 is not known"
    assert reason_sentence(Reason(Cause.HOLD, Fraction(0))) == "held by an operator"


@pytest.mark.parametrize(
    ("others", "more"), [(1, "1 more volume"), (2, "2 more volumes"), (60, "60 more volumes")]
)
def test_how_many_more_volumes_are_over_a_limit_is_said(others: int, more: str) -> None:
    volumes = [free(12), *(free(15, name=f"/dev/sd{number:03}") for number in range(others))]
    assert said(("1", usage(*volumes))) == (
        "THROTTLE to 0.2: volume /dev/sda1 of broker 1 has 20 % of the way from soft to hard limit left,"
        f" and {more} over a limit"
    )


def test_of_a_hold_that_is_outranked_all_breaches_of_ones_own_are_counted() -> None:
    volumes = [free(5, name=f"/dev/sd{number:03}") for number in range(60)]
    text = said(("1", usage(*volumes)), ("hold", order(Action="open")), self_id=1)
    assert text.startswith(
        "PAUSE: volume /dev/sd000 of broker 1 is over its hard limit, and 59 more volumes over a limit"
    )


def test_an_invalid_limit_is_named() -> None:
    record: Record = ("2", usage(free(50), HardLimit=limit("Unheard", 1)))
    assert said(CALM, record).endswith("the state of broker 2 is not known (its limits are invalid)")


def test_how_far_a_clock_is_behind_need_not_be_known() -> None:
    known, unknown = (Undetermined(3, UndeterminedCause.CLOCK, seconds) for seconds in (75, None))
    assert undetermined_sentence(known) == "the state of broker 3 is not known (its clock is 75 s behind)"
    assert undetermined_sentence(unknown) == "the state of broker 3 is not known (its clock is some s behind)"
