"""The golden decision files: the core's output, and the refusals of the schema (and the plug-in)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from kquota.policy.decision import (
    Cause,
    Covered,
    Decision,
    Lease,
    Mode,
    Reason,
    State,
    Undetermined,
    UndeterminedCause,
    decision_document,
)
from kquota.policy.events import Hold, HoldAction, OrderTerms
from kquota.policy.limit_breaches import Resource
from kquota.policy.topic_scope import TopicScope
from tests.unit.policy.golden import Sample, complaints, each, refused_by_schema, sample

NOW = datetime(2026, 11, 20, 10, 15, 30, 123000, tzinfo=UTC)
LEASE = Lease(NOW + timedelta(seconds=30), "3c1c3a4e-9f0a-4f6e-8d5b-0f1f0c0d6a11", 123_456_789)
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
NOTE = OrderTerms(NOW + timedelta(minutes=30), "moving the log dirs", "alice")


def decided(
    headroom: Fraction | int,
    *reasons: Reason,
    undetermined: tuple[Undetermined, ...] = (),
    fallback: bool = False,
    hold: Hold | None = None,
) -> Decision:
    return Decision(Fraction(headroom), reasons, undetermined, fallback, hold, NOW)


def soft(headroom: Fraction, broker_id: int = 3, volume: str = "/dev/sdb1") -> Reason:
    return Reason(Cause.SOFT, headroom, broker_id, volume)


ZERO = Fraction(0)
STALE_7 = Undetermined(7, UndeterminedCause.STALE)
GOLDEN: dict[str, Decision] = {
    "open": decided(1),
    # fallback action open: broker 7 is not known, but the known state is worse and decides
    "throttle": decided(Fraction(42, 100), soft(Fraction(42, 100)), undetermined=(STALE_7,)),
    "throttle-with-the-smallest-factor": decided(Fraction(1, 10**9), soft(Fraction(1, 10**9))),
    "throttle-with-the-largest-factor": decided(1 - Fraction(1, 10**9), soft(1 - Fraction(1, 10**9))),
    "throttle-with-a-third": decided(
        Fraction(1, 3), soft(Fraction(1, 3)), soft(Fraction(2, 3), 4, "/dev/sdc1")
    ),
    "throttle-own-look-ahead-of-the-record": decided(
        Fraction(1, 4),
        Reason(Cause.OWN, Fraction(1, 4), 1, "/dev/sda1"),
        soft(Fraction(1, 2), 1, "/dev/sda1"),
    ),
    "pause-over-the-hard-limit": decided(0, Reason(Cause.HARD, ZERO, 3, "/dev/sdb1")),
    "pause-short-of-inodes": decided(0, Reason(Cause.HARD, ZERO, 3, "/dev/sdb1", Resource.INODES)),
    "pause-latched": decided(0, Reason(Cause.LATCHED, ZERO, 3, "/dev/sdb1")),
    "pause-fallback-broker-missing": decided(
        0,
        Reason(Cause.FALLBACK, ZERO, 7),
        undetermined=(Undetermined(7, UndeterminedCause.MISSING),),
        fallback=True,
    ),
    "pause-fallback-cluster-not-known": decided(
        0,
        *(Reason(Cause.FALLBACK, ZERO) for _ in range(3)),
        undetermined=tuple(
            Undetermined(None, cause)
            for cause in (
                UndeterminedCause.NO_BROKER_LIST,
                UndeterminedCause.NOT_READ,
                UndeterminedCause.TOPIC_REFUSED,
            )
        ),
        fallback=True,
    ),
    "pause-every-cause-of-an-undetermined-broker": decided(
        0,
        *(Reason(Cause.FALLBACK, ZERO, broker_id) for broker_id in range(1, 10)),
        undetermined=tuple(
            Undetermined(broker_id, cause, 75 if cause is UndeterminedCause.CLOCK else None)
            for broker_id, cause in enumerate(
                (
                    UndeterminedCause.MISSING,
                    UndeterminedCause.STALE,
                    UndeterminedCause.TOMBSTONE,
                    UndeterminedCause.MALFORMED,
                    UndeterminedCause.FUTURE,
                    UndeterminedCause.FAILED,
                    UndeterminedCause.INVALID_LIMIT,
                    UndeterminedCause.CLOCK,
                    UndeterminedCause.REVOKED,
                ),
                start=1,
            )
        ),
        fallback=True,
    ),
    "open-fallback-open": decided(1, undetermined=(STALE_7,), fallback=True),
    "pause-held": decided(
        0, Reason(Cause.HOLD, ZERO), undetermined=(STALE_7,), hold=Hold(HoldAction.PAUSE, NOTE)
    ),
    "open-held": decided(1, Reason(Cause.HOLD, Fraction(1)), hold=Hold(HoldAction.OPEN, NOTE)),
    "pause-own-breach-outranks-a-hold-open": decided(
        0,
        Reason(Cause.HARD, ZERO, 1, "/dev/sda1"),
        Reason(Cause.HOLD, Fraction(1)),
        hold=Hold(HoldAction.OPEN, NOTE),
    ),
    "open-beside-silent-brokers": replace(
        decided(1),
        covered=(
            Covered(STALE_7, NOW + timedelta(seconds=75)),
            Covered(Undetermined(8, UndeterminedCause.CLOCK, 75), None),
        ),
    ),
    "pause-for-two-topics-and-throttle-for-one": replace(
        decided(0, Reason(Cause.HARD, ZERO, 3, "/dev/sdb1"), soft(Fraction(1, 3), 4)),
        scope=TopicScope({"orders": ZERO, "bills.eu_1": ZERO, "visits": Fraction(1, 3)}),
    ),
    "pause-for-no-topic": replace(decided(0, Reason(Cause.HARD, ZERO, 3, "/dev/sdb1")), scope=TopicScope({})),
    "throttle-for-one-topic-and-less-for-all-others": replace(
        decided(Fraction(1, 4), soft(Fraction(1, 4)), soft(Fraction(9, 10), 4)),
        scope=TopicScope({"orders": Fraction(1, 4)}, Fraction(9, 10)),
    ),
    "volume-name-beyond-ascii": decided(Fraction(1, 2), soft(Fraction(1, 2), 3, "/dev/mapper/größe „A“")),
}
OBSERVED = {"open", "pause-latched"}
OWN_LOG_DIRS = {
    "open-beside-silent-brokers": [
        {"log_dir": "/data/1", "soft_available_bytes": 15 * 10**9, "hard_available_bytes": 5 * 10**9},
        {"log_dir": "/data/2", "soft_available_bytes": 1, "hard_available_bytes": -1},
    ]
}


def document_of(name: str) -> dict[str, object]:
    return decision_document(
        GOLDEN[name],
        cluster_id=CLUSTER_ID,
        broker_id=1,
        sequence=42,
        mode=Mode.OBSERVE if name in OBSERVED else Mode.ENFORCE,
        lease=LEASE,
        own_log_dirs=OWN_LOG_DIRS.get(name),
    )


@pytest.mark.accepts("A1")
@pytest.mark.parametrize("name", GOLDEN)
def test_the_core_writes_exactly_the_golden_file(name: str) -> None:
    assert sample("decision", name) == document_of(name)


@each("decision", "valid")
def test_the_schema_accepts_a_valid_file(golden: Sample) -> None:
    assert complaints("decision", golden.document) == []


@each("decision", "invalid")
def test_the_schema_refuses_an_invalid_file(golden: Sample) -> None:
    assert refused_by_schema("decision", golden.text)


@pytest.mark.accepts("A1")
@pytest.mark.parametrize("state", State)
def test_each_state_has_a_golden_file(state: State) -> None:
    assert any(decision.state is state for decision in GOLDEN.values())


@pytest.mark.parametrize("name", GOLDEN)
def test_without_a_lease_it_is_an_offline_decision_and_no_decision_file(name: str) -> None:
    document = decision_document(GOLDEN[name])
    assert complaints("decision", document, "offline") == []
    assert complaints("decision", document) != []


@pytest.mark.accepts("F6")
def test_a_decision_about_thousands_of_volumes_stays_small_and_names_the_worst_first() -> None:
    over = [soft(Fraction(i + 1, 3000), broker_id, "/dev/sda1") for i, broker_id in enumerate(range(2000))]
    unknown = tuple(Undetermined(broker_id, UndeterminedCause.MISSING) for broker_id in range(2000))
    document = decision_document(decided(Fraction(1, 3000), *over, undetermined=unknown))
    assert complaints("decision", document, "offline") == []
    assert len(json.dumps(document)) < 64 * 1024
    listed = document["reasons"]
    assert isinstance(listed, list)
    assert (len(listed), listed[0]["broker_id"], document["factor"]) == (64, 0, 0.000333)
