"""Status documents of clusters that have seen a lot, for the tests of how they look."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from kquota.formats.sentences import broken_glass_sentence, observing_brokers
from kquota.formats.status import status_document
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import FallbackAction, Scope
from tests.unit.policy.situations import NOW, STALENESS, fold, free, order, usage

LONG_NAME = "/dev/mapper/" + "v" * 60


def status_of(
    *records: Any,
    active: frozenset[int],
    fallback: FallbackAction = FallbackAction.PAUSE,
    scope: Scope = Scope.CLUSTER,
    known: frozenset[int] | None = None,
    **local: Any,
) -> dict[str, Any]:
    """The document as `kquota status` has it, of a broker 1 whose host reports only ``local``."""
    view = fold(*records)
    situation = Situation(active, known_brokers=known)
    decision = decide(view, situation, PolicySettings(fallback, STALENESS, scope), NOW)
    found = status_document(view, situation, decision, NOW, release_margin=Fraction(1, 10), cluster_id="c")
    host = {
        "broker_id": 1,
        "decision": None,
        "decision_problem": "there is no decision file",
        "lease_seconds_left": None,
        "applied": None,
        "applied_problem": "there is no applied-state file",
        "applied_cause": "missing",
        "clients": None,
    }
    notes, problems = ["broker 1 (this host): fine"], ["a broker can't be reached"]
    return found | {"local": host | local, "notes": notes, "problems": problems}


def troubled() -> dict[str, Any]:
    """Broker 1 is half way, 2 full and inactive, 3 in quarantine, 4 has never reported; 5 is gone."""
    return status_of(
        ("1", usage(free(15, FillBytesPerSecond=10_000_000), free(0, LONG_NAME, Status="offline"))),
        ("2", usage(free(5, Latched="HARD"), age_seconds=100_000)),
        ("3", usage(free(50), Applied={"State": "THROTTLE", "Factor": 0.25})),
        ("5", None),
        ("quarantine/3", order()),
        active=frozenset({1, 3, 4}),
        clients=[
            {
                "name": "[red]orders / app",
                "produce_bytes_per_second": 8_100_000.0,
                "limit_bytes_per_second": 1e6,
                "throttle_ms": 420.0,
            }
        ],
        growing_topics=[{"topic": "orders", "bytes_per_second": 7_000_000.0}],
    )


def silent() -> dict[str, Any]:
    """Brokers 2 and 3 are silent; only the volume of 2 may have filled."""
    return status_of(
        ("1", usage(free(50))),
        ("2", usage(free(30, FillCeiling=10**8), age_seconds=90)),
        ("3", usage(free(30, FillCeiling=0), age_seconds=90)),
        active=frozenset({1, 2, 3}),
        fallback=FallbackAction.BOUNDED,
    )


def scoped() -> dict[str, Any]:
    """The volume of broker 2 is full; brokers 2 and 3 can't refuse by topic."""
    applied = {"State": "PAUSE", "Factor": 0.0}
    topics = [f"topic-{number}" for number in range(37)]
    return status_of(
        ("1", usage(free(50), Applied={**applied, "Scope": "topics"})),
        ("2", usage(free(9, Topics=topics, TopicsComplete=True), Applied={**applied, "Scope": "cluster"})),
        ("3", usage(free(50), Applied=applied)),
        active=frozenset({1, 2, 3}),
        scope=Scope.VOLUME,
    )


def ordered() -> dict[str, Any]:
    """Held open over a full volume; an order about each of seven brokers; one broker that never was."""
    return status_of(
        *((str(number), usage(free(5 if number == 1 else 50))) for number in range(1, 8)),
        ("999999", usage(free(1))),
        *((f"{'quarantine' if number % 2 else 'maintenance'}/{number}", order()) for number in range(2, 8)),
        ("hold", order(Action="open")),
        active=frozenset(range(1, 8)),
        known=frozenset(range(1, 8)),
    )


def crowded(brokers: int = 30) -> dict[str, Any]:
    """Brokers with three volumes each; the fullest is on the last but one."""
    records = [
        (
            str(number),
            usage(
                free(40, "/dev/sda1", FillBytesPerSecond=1000 * number),
                free(25, "/dev/sdb1"),
                free(15 if number == brokers - 1 else 30, "/dev/sdc1"),
                Applied={"State": "THROTTLE", "Factor": 0.5},
            ),
        )
        for number in range(1, brokers + 1)
    ]
    return status_of(*records, active=frozenset(range(1, brokers + 1)))


def broken_glass() -> dict[str, Any]:
    """A pause that brokers 1 and 3 hold, and broker 2 only observes."""
    modes = {1: "enforce", 2: "observe", 3: "enforce"}
    document = status_of(
        *(
            (str(number), usage(free(5), Applied={"State": "PAUSE", "Factor": 0.0, "Mode": mode}))
            for number, mode in modes.items()
        ),
        active=frozenset(modes),
    )
    observing = observing_brokers(document["brokers"], document["local"])
    return document | {"broken_glass": broken_glass_sentence(observing)}
