"""Short ways to describe a cluster, for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from kquota.formats.records import read_event
from kquota.formats.usage_format import usage_from_document
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, FallbackAction, Scope, UndeterminedCause
from kquota.policy.events import Event
from kquota.policy.timestamps import format_utc
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView

NOW = datetime(2026, 11, 20, 10, 15, 30, 123000, tzinfo=UTC)
STALENESS = timedelta(seconds=60)
TOLERANCE = timedelta(seconds=30)
GB = 10**9

# Soft at 20 GB free, hard at 10 GB free: the figures of the acceptance statements, on 100 GB.
SOFT_20_GB = {"type": "MinFreeBytes", "level": 20 * GB}
HARD_10_GB = {"type": "MinFreeBytes", "level": 10 * GB}

# Verdicts, as ``verdict`` has them.
OPEN, PAUSE = ("OPEN", Fraction(1)), ("PAUSE", Fraction(0))
BOTH_FALLBACKS = pytest.mark.parametrize("fallback", ["pause", "open"])

Value = Mapping[str, object] | bytes | None
Record = tuple[str | bytes | None, Value]


def limit(type_name: str, level: object) -> dict[str, object]:
    return {"type": type_name, "level": level}


def free(gigabytes: object, name: str = "/dev/sda1", **fields: object) -> dict[str, object]:
    """Return a volume of 100 GB with so much free, by the limits above at headroom (free - 10) / 10."""
    consumed = (100 - Fraction(str(gigabytes))) * GB
    assert consumed.denominator == 1
    return {"VolumeName": name, "Capacity": 100 * GB, "Consumed": consumed.numerator, **fields}


def usage(*volumes: Mapping[str, object], age_seconds: float = 1, **fields: object) -> dict[str, object]:
    """Return a usage record whose snapshot is so old at NOW."""
    return {
        "SchemaVersion": 1,
        "SnapshotAt": format_utc(NOW - timedelta(seconds=age_seconds)),
        "HardLimit": HARD_10_GB,
        "SoftLimit": SOFT_20_GB,
        "Volumes": list(volumes),
        **fields,
    }


def order(seconds_left: float = 60, **fields: object) -> dict[str, object]:
    """Return the value of a hold, quarantine or maintenance that ends this long after NOW."""
    return {
        "Until": format_utc(NOW + timedelta(seconds=seconds_left)),
        "Reason": "a test",
        "Actor": "alice",
        **fields,
    }


def raw(value: Value) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def _unsigned(records: Iterable[Record], _now: datetime) -> Iterator[Event]:
    return (read_event(key, raw(value)) for key, value in records)


events: ContextVar[Callable[[Iterable[Record], datetime], Iterable[Event]]] = ContextVar(
    "events", default=_unsigned
)
"""How `fold` reads records; `signers.signed_events` reads them with the signatures of their writers."""


def fold(*records: Record, now: datetime = NOW, cluster_id: str | None = None) -> ClusterView:
    view = ClusterView(TOLERANCE, cluster_id=cluster_id)
    view.fold_all(events.get()(records, now), now)
    return view


def decided(
    *records: Record,
    active: Iterable[int] | None = None,
    joining: Iterable[int] = (),
    self_id: int | None = None,
    own: UsageRecord | None = None,
    fallback: str = "pause",
    scope: Scope = Scope.CLUSTER,
    causes: tuple[UndeterminedCause, ...] = (),
    now: datetime = NOW,
    topic: str | None = None,
) -> Decision:
    """Fold the records and decide at ``now``; by default, brokers with a record are active."""
    view = fold(*records, now=now)
    if active is None:
        active = view.brokers
    situation = Situation(frozenset(active), frozenset(joining), self_id, own, causes)
    policy = PolicySettings(FallbackAction(fallback), STALENESS, scope)
    return decide(view, situation, policy, now, topic=topic)


def own_look(*volumes: Mapping[str, object]) -> UsageRecord:
    return usage_from_document(usage(*volumes, age_seconds=0))


def throttle(headroom: str) -> tuple[str, Fraction]:
    return "THROTTLE", Fraction(headroom)


def verdict(decision: Decision) -> tuple[str, Fraction]:
    return decision.state.value, decision.headroom


def causes(decision: Decision) -> list[tuple[int | None, str]]:
    return [(entry.broker_id, entry.cause.value) for entry in decision.undetermined]


def reasons(decision: Decision) -> list[tuple[int | None, str | None, str]]:
    return [(reason.broker_id, reason.volume, reason.cause.value) for reason in decision.reasons]
