"""All reasons of a decision, one after the other and sorted as a whole: no cache, no bound, no short cut.

The policy's list has to be the beginning of this.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil

from kquota.policy.decide import PolicySettings, Situation
from kquota.policy.decision import Cause, FallbackAction, Reason, Undetermined
from kquota.policy.events import BrokerOrder
from kquota.policy.limit_breaches import Resource
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus

ORDER = [Cause.HOLD, Cause.HARD, Cause.LATCHED, Cause.OWN, Cause.FALLBACK, Cause.SOFT, Cause.BOUNDED]


def all_reasons(
    view: ClusterView,
    situation: Situation,
    settings: PolicySettings,
    now: datetime,
    undetermined: tuple[Undetermined, ...],
) -> list[Reason]:
    """Return every reason at ``now``, given the undetermined brokers (the other oracle checks that)."""
    reasons = []
    for broker_id in view.brokers:
        quarantined = view.order_in_force(BrokerOrder.QUARANTINE, broker_id, now)
        if quarantined and broker_id != situation.self_id:
            continue
        reasons += _of_broker(view, broker_id, situation, settings, now)
    if situation.own is not None:
        recorded = {r.volume: r.headroom for r in reasons if r.broker_id == situation.self_id}
        for volume in situation.own.volumes:
            headroom = _counted(volume)
            if headroom is not None and headroom < recorded.get(volume.name, Fraction(1)):
                reasons.append(Reason(Cause.OWN, headroom, situation.self_id, volume.name, _resource(volume)))
    hold = view.hold_in_force(now)
    if hold is not None:
        own_id = situation.self_id
        reasons = [r for r in reasons if own_id is not None and r.broker_id == own_id and r.headroom == 0]
        reasons.append(Reason(Cause.HOLD, Fraction(0) if hold.action.value == "pause" else Fraction(1)))
    elif settings.fallback_action is not FallbackAction.OPEN:
        reasons += [Reason(Cause.FALLBACK, Fraction(0), entry.broker_id) for entry in undetermined]
    return sorted(reasons, key=_key)


def _of_broker(
    view: ClusterView, broker_id: int, situation: Situation, settings: PolicySettings, now: datetime
) -> list[Reason]:
    record = view.record_of(broker_id, now)
    reasons: dict[str | None, Reason] = {}
    if isinstance(record, UsageRecord):
        expected = (
            broker_id in (situation.active_brokers or ()) and broker_id not in situation.joining_brokers
        )
        stale = now - record.snapshot_at > settings.staleness
        silent = expected and stale and not view.order_in_force(BrokerOrder.MAINTENANCE, broker_id, now)
        is_away = broker_id not in (situation.active_brokers or ()) or (stale and not expected)
        found = _of_record(record, broker_id, is_away)
        listed = broker_id in (situation.active_brokers or ())
        maintained = view.order_in_force(BrokerOrder.MAINTENANCE, broker_id, now)
        may_grow = listed and stale and not maintained
        bounds = _of_bounds(record, broker_id, now) if may_grow else None
        covers = settings.fallback_action is FallbackAction.BOUNDED and _hears(view, settings, now)
        if bounds is not None and covers:
            _add_worse(reasons, found + bounds)
        else:
            _add_worse(reasons, [reason for reason in found if not silent or reason.headroom == 0])
    for other in view.others_of(broker_id, now):
        if now - other.snapshot_at <= settings.staleness:
            is_away = broker_id not in (situation.active_brokers or ())
            _add_worse(reasons, _of_record(other, broker_id, is_away))
    return list(reasons.values())


def _hears(view: ClusterView, settings: PolicySettings, now: datetime) -> bool:
    records = [view.record_of(broker_id, now) for broker_id in view.brokers]
    return any(
        isinstance(one, UsageRecord) and now - one.snapshot_at <= settings.staleness for one in records
    )


def _add_worse(reasons: dict[str | None, Reason], more: list[Reason]) -> None:
    for reason in more:
        known = reasons.get(reason.volume)
        if known is None or _key(reason) < _key(known):
            reasons[reason.volume] = reason


def _of_record(record: UsageRecord, broker_id: int, is_away: bool = False) -> list[Reason]:
    reasons = []
    for volume in record.volumes:
        headroom = _counted(volume, is_away)
        if headroom is not None and headroom < 1:
            at_hard = Cause.HARD if _measured(volume) == 0 else Cause.LATCHED
            cause = Cause.SOFT if headroom > 0 else at_hard
            reasons.append(Reason(cause, headroom, broker_id, volume.name, _resource(volume)))
    return reasons


def _of_bounds(record: UsageRecord, broker_id: int, now: datetime) -> list[Reason] | None:
    """The reasons by the most that each volume may have filled; None where that is not known."""
    if record.failed_volumes or record.invalid_limit is not None:
        return None
    reasons, microseconds = [], (now - record.snapshot_at) / timedelta(microseconds=1)
    for volume in record.volumes:
        if volume.role is not VolumeRole.DATA or volume.status is VolumeStatus.OFFLINE:
            continue
        if volume.fill_ceiling_bytes_per_second is None or _of_inodes(volume) not in (None, 1):
            return None
        most = volume.consumed_bytes + volume.fill_ceiling_bytes_per_second * Fraction(microseconds) / 10**6
        grown = volume._replace(consumed_bytes=min(volume.capacity_bytes, ceil(most)))
        headroom = _counted(grown)
        if headroom is not None and headroom < 1 and headroom != _counted(volume):
            reasons.append(Reason(Cause.BOUNDED, headroom, broker_id, volume.name, _resource(grown)))
    return reasons


def _measured(volume: Volume) -> Fraction | None:
    known = [one for one in (_of_bytes(volume), _of_inodes(volume)) if one is not None]
    return min(known, default=None)


def _of_inodes(volume: Volume) -> Fraction | None:
    if volume.inodes is None:
        return None
    soft, hard = (Fraction(percent, 100) for percent in volume.inodes.limits)
    share = Fraction(volume.inodes.free, volume.inodes.total)
    return max(Fraction(0), min(Fraction(1), (share - hard) / (soft - hard)))


def _resource(volume: Volume) -> Resource:
    of_bytes, of_inodes = _of_bytes(volume), _of_inodes(volume)
    if of_inodes is None or of_inodes >= (1 if of_bytes is None else of_bytes):
        return Resource.BYTES
    return Resource.INODES


def _of_bytes(volume: Volume) -> Fraction | None:
    if volume.limits is None:
        return None
    soft = volume.limits.soft.consumed_at_bytes(volume.capacity_bytes)
    hard = volume.limits.hard.consumed_at_bytes(volume.capacity_bytes)
    if volume.consumed_bytes >= hard:
        return Fraction(0)
    if soft >= hard:
        return Fraction(1)
    return min(Fraction(1), (hard - volume.consumed_bytes) / (hard - soft))


def _counted(volume: Volume, is_away: bool = False) -> Fraction | None:
    if volume.role is not VolumeRole.DATA:
        return None
    if volume.status is VolumeStatus.OFFLINE and not (is_away and volume.latched):
        return None
    headroom = Fraction(0) if volume.latched else _measured(volume)
    if volume.status is VolumeStatus.FAILED:
        known = volume.latched or volume.capacity_bytes > 0
        return headroom if known and headroom == 0 else None
    return headroom


def _key(reason: Reason) -> tuple[Fraction, int, int, str, str]:
    broker_id = -1 if reason.broker_id is None else reason.broker_id
    return reason.headroom, ORDER.index(reason.cause), broker_id, reason.volume or "", reason.resource
