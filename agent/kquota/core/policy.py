"""The policy: cluster view → decision.

Source: the Strimzi proposal "Cluster Wide Volume Usage Quota Management"; what it leaves open is
decided in docs/architecture.md. Pure: equal inputs give equal decisions.

    factor = the smallest headroom over the voting volumes of all brokers
    1 → OPEN, between → THROTTLE, 0 → PAUSE

Precedence: own hard breach > hold > everything else. The worst of known headroom and fallback wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from kquota.core.decision import (
    Cause,
    Decision,
    FallbackAction,
    Reason,
    Undetermined,
    UndeterminedCause,
)
from kquota.core.records import BrokerOrder, Hold, HoldAction
from kquota.core.usage import UsageRecord, Volume, VolumeStatus
from kquota.core.view import ClusterView, NoRecord

_ZERO, _ONE = Fraction(0), Fraction(1)
_CAUSE_ORDER = {
    cause: rank
    for rank, cause in enumerate(
        (Cause.HOLD, Cause.HARD, Cause.LATCHED, Cause.OWN, Cause.FALLBACK, Cause.SOFT)
    )
}


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """What an operator chooses about deciding."""

    fallback_action: FallbackAction = FallbackAction.PAUSE
    staleness: timedelta = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Situation:
    """Who is there, beside what the records say.

    ``active_brokers`` is None while no list of them was ever got. ``joining_brokers`` became active
    within the join grace; they count as active but need no fresh record yet. ``self_id`` is the broker
    that decides, ``own`` its fresh look at its own disks (which may only tighten). ``cluster_causes``
    say why nothing that was read can be trusted to be complete.
    """

    active_brokers: frozenset[int] | None
    joining_brokers: frozenset[int] = frozenset()
    self_id: int | None = None
    own: UsageRecord | None = None
    cluster_causes: tuple[UndeterminedCause, ...] = ()

    def __post_init__(self) -> None:
        if self.own is not None and self.self_id is None:
            raise ValueError("a broker's own look needs its self_id")


def decide(view: ClusterView, situation: Situation, settings: PolicySettings, now: datetime) -> Decision:
    """Decide what producers may do at ``now``."""
    reasons: list[Reason] = []
    undetermined = [Undetermined(None, cause) for cause in _cluster_causes(situation)]
    for broker_id in _known_brokers(view, situation):
        if broker_id != situation.self_id and view.order_in_force(BrokerOrder.QUARANTINE, broker_id, now):
            continue
        votes, cause = _judge_broker(view, broker_id, situation, settings, now)
        reasons.extend(votes)
        if cause is not None:
            undetermined.append(Undetermined(broker_id, cause))
    if situation.own is not None:
        own_votes, own_failed = _judge_own(situation, reasons)
        reasons.extend(own_votes)
        if own_failed and all(entry.broker_id != situation.self_id for entry in undetermined):
            undetermined.append(Undetermined(situation.self_id, UndeterminedCause.FAILED))

    hold = view.hold_in_force(now)
    undetermined.sort(key=lambda entry: (entry.broker_id is not None, entry.broker_id or 0, entry.cause))
    if hold is not None:
        return _held(hold, reasons, undetermined, situation.self_id, now)
    known_headroom = _smallest(reasons)
    fallback_headroom = _ZERO if settings.fallback_action is FallbackAction.PAUSE else _ONE
    if undetermined and fallback_headroom < 1:
        reasons.extend(Reason(Cause.FALLBACK, fallback_headroom, entry.broker_id) for entry in undetermined)
    return Decision(
        headroom=_smallest(reasons),
        reasons=_sorted(reasons),
        undetermined=tuple(undetermined),
        fallback=bool(undetermined) and fallback_headroom <= known_headroom,
        hold=None,
        decided_at=now,
    )


def _cluster_causes(situation: Situation) -> Iterator[UndeterminedCause]:
    yield from dict.fromkeys(situation.cluster_causes)
    no_list = UndeterminedCause.NO_BROKER_LIST
    if situation.active_brokers is None and no_list not in situation.cluster_causes:
        yield no_list


def _known_brokers(view: ClusterView, situation: Situation) -> list[int]:
    active = situation.active_brokers or frozenset()
    return sorted(active | view.brokers.keys())


def _judge_broker(
    view: ClusterView, broker_id: int, situation: Situation, settings: PolicySettings, now: datetime
) -> tuple[list[Reason], UndeterminedCause | None]:
    """Return what a broker's record says, and why its state is not known where it must be."""
    must_be_known = (
        situation.active_brokers is not None
        and broker_id in situation.active_brokers
        and broker_id not in situation.joining_brokers
    )
    record = view.record_of(broker_id, now)
    if isinstance(record, NoRecord):
        return [], UndeterminedCause(record.value) if must_be_known else None
    if not must_be_known:  # its last verdict counts, however old
        return list(_votes(broker_id, record.volumes)), None
    fresh = now - record.snapshot_at <= settings.staleness or view.order_in_force(
        BrokerOrder.MAINTENANCE, broker_id, now
    )
    votes = list(_votes(broker_id, record.volumes))
    if not fresh:
        # Stale state is ignored, but silence never releases: what stood at 0 goes on counting as 0.
        return [vote for vote in votes if vote.headroom == 0], UndeterminedCause.STALE
    if record.failed_volumes:
        return votes, UndeterminedCause.FAILED
    return votes, None if record.invalid_limit is None else UndeterminedCause.INVALID_LIMIT


def _votes(broker_id: int, volumes: Iterable[Volume]) -> Iterator[Reason]:
    """Yield a reason for each voting volume that is over its soft limit."""
    for volume in volumes:
        headroom = _voted_headroom(volume)
        if headroom is None or headroom >= 1:
            continue
        if headroom > 0:
            cause = Cause.SOFT
        else:
            cause = Cause.HARD if volume.measured_headroom() == 0 else Cause.LATCHED
        yield Reason(cause, headroom, broker_id, volume.name)


def _voted_headroom(volume: Volume) -> Fraction | None:
    if not volume.votes:
        return None
    headroom = volume.headroom()
    if volume.status is VolumeStatus.FAILED:
        # Old figures of a volume nobody can read must not speak for it, except as a breach; a capacity
        # of 0 says that there never were any figures.
        known = volume.latched or volume.capacity_bytes > 0
        return headroom if known and headroom == 0 else None
    return headroom


def _judge_own(situation: Situation, reasons: list[Reason]) -> tuple[list[Reason], bool]:
    """Return where the fresh look is worse than this broker's record, and whether a volume failed."""
    assert situation.own is not None
    recorded = {r.volume: r.headroom for r in reasons if r.broker_id == situation.self_id}
    votes = []
    for volume in situation.own.volumes:
        headroom = _voted_headroom(volume)
        if headroom is not None and headroom < recorded.get(volume.name, _ONE):
            votes.append(Reason(Cause.OWN, headroom, situation.self_id, volume.name))
    return votes, bool(situation.own.failed_volumes)


def _held(
    hold: Hold, reasons: list[Reason], undetermined: list[Undetermined], self_id: int | None, now: datetime
) -> Decision:
    """Apply an operator's hold; only a hard breach of this broker's own disks outranks it."""
    # By the record or by the fresh look: a look that is better than the record must not loosen.
    breaches = [r for r in reasons if self_id is not None and r.broker_id == self_id and r.headroom == 0]
    headroom = _ZERO if hold.action is HoldAction.PAUSE else _ONE
    reasons = [Reason(Cause.HOLD, headroom), *breaches]
    return Decision(
        headroom=_smallest(reasons),
        reasons=_sorted(reasons),
        undetermined=tuple(undetermined),
        fallback=False,
        hold=hold,
        decided_at=now,
    )


def _smallest(reasons: Iterable[Reason]) -> Fraction:
    return min((reason.headroom for reason in reasons), default=_ONE)


def _sorted(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(
        sorted(
            reasons,
            key=lambda r: (
                r.headroom,
                _CAUSE_ORDER[r.cause],
                -1 if r.broker_id is None else r.broker_id,
                r.volume or "",
            ),
        )
    )
