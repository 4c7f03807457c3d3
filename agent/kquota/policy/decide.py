"""The policy: cluster view → decision.

Source: the Strimzi proposal "Cluster Wide Volume Usage Quota Management"; its open questions are
decided in docs/architecture.md. Pure: equal inputs give equal decisions.

    factor = the smallest headroom over the voting volumes of all brokers
    1 → OPEN, between → THROTTLE, 0 → PAUSE

With the scope of the volume this is the worst of all topics; see :mod:`kquota.policy.topic_scope`.
Precedence: own hard breach > hold > everything else. The worst of known headroom and fallback wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from kquota.policy.decision import (
    MAX_LISTED,
    Cause,
    Covered,
    Decision,
    FallbackAction,
    Reason,
    Scope,
    Undetermined,
    UndeterminedCause,
)
from kquota.policy.events import BrokerOrder, Hold, HoldAction
from kquota.policy.known_brokers import unvouched
from kquota.policy.limit_breaches import Votes, breaches, holding, without_topics, worse_votes
from kquota.policy.own_clock import own_clock_behind
from kquota.policy.ranking import Ranking, volumes_of
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView, NoRecord

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """The settings that an operator chooses for deciding."""

    fallback_action: FallbackAction = FallbackAction.PAUSE
    staleness: timedelta = timedelta(seconds=60)
    scope: Scope = Scope.CLUSTER


@dataclass(frozen=True, slots=True)
class Situation:
    """The active brokers, in addition to the records.

    ``active_brokers`` is None while no list of them was ever got. ``joining_brokers`` became active within
    the join grace (`Membership.joining`); they count as active but need no fresh record yet: a fresh one has
    to be complete. ``self_id`` is
    the broker that decides, ``own`` its fresh look at its own disks (which may only tighten).
    ``cluster_causes`` give the reasons why the records may be incomplete. ``known_brokers`` are those that
    the cluster has listed; None if that can't be said of all, and then every report counts
    (:mod:`kquota.policy.known_brokers`).
    """

    active_brokers: frozenset[int] | None
    joining_brokers: frozenset[int] = frozenset()
    self_id: int | None = None
    own: UsageRecord | None = None
    cluster_causes: tuple[UndeterminedCause, ...] = ()
    known_brokers: frozenset[int] | None = None

    def __post_init__(self) -> None:
        if self.own is not None and self.self_id is None:
            raise ValueError("a broker's own look needs its self_id")


def decide(
    view: ClusterView,
    situation: Situation,
    settings: PolicySettings,
    now: datetime,
    *,
    topic: str | None = None,
) -> Decision:
    """Decide what producers may do at ``now``; with ``topic``, what those to this one may do."""
    ranking = Ranking()
    strangers = unvouched(
        view, situation.active_brokers, situation.known_brokers, now, now - settings.staleness
    ) - {situation.self_id}
    undetermined = [Undetermined(None, cause) for cause in _cluster_causes(situation)]
    covered = []
    for broker_id, votes, unknown in _judgements(view, situation, settings, now, strangers):
        ranking.add(broker_id, votes if topic is None else holding(topic, votes))
        if isinstance(unknown, Covered):
            covered.append(unknown)
        elif unknown is not None:
            undetermined.append(unknown)
    if situation.own is not None:
        own = situation.own
        ranking.own = own.votes if topic is None else holding(topic, own.votes)
        _add_own(ranking, situation.self_id)
        if own.failed_volumes and all(entry.broker_id != situation.self_id for entry in undetermined):
            undetermined.append(Undetermined(situation.self_id, UndeterminedCause.FAILED))
        if all(entry.broker_id != situation.self_id for entry in undetermined):
            others = (situation.active_brokers or frozenset()) - {situation.self_id}
            behind = own_clock_behind(view, others, now)
            if behind is not None:
                seconds = round(behind.total_seconds())
                undetermined.append(Undetermined(situation.self_id, UndeterminedCause.CLOCK, seconds))

    hold, fallback, overridden = view.hold_in_force(now), False, tuple[Reason, ...]()
    undetermined.sort(key=lambda entry: (entry.broker_id is not None, entry.broker_id or 0, entry.cause))
    if hold is not None:
        if hold.action is HoldAction.OPEN:
            overridden = tuple(one for one in ranking.worst(MAX_LISTED) if one.headroom == 0)
        ranking = _held(hold, ranking, situation.self_id)
    elif undetermined:
        fallback_headroom = _ONE if settings.fallback_action is FallbackAction.OPEN else _ZERO
        fallback = fallback_headroom <= ranking.smallest()
        if fallback_headroom < 1:
            ranking.others += [Reason(Cause.FALLBACK, _ZERO, entry.broker_id) for entry in undetermined]
    reasons = ranking.worst(MAX_LISTED)
    by_topic = settings.scope is Scope.VOLUME and topic is None
    scope, no_scope = ranking.scope(situation.self_id) if by_topic else (None, None)
    return Decision(
        headroom=ranking.smallest(),
        reasons=reasons,
        undetermined=tuple(undetermined),
        fallback=fallback,
        hold=hold,
        decided_at=now,
        unlisted_volumes=ranking.volumes() - len(volumes_of(reasons)),
        covered=tuple(covered),
        scope=scope,
        no_scope=no_scope,
        unvouched=tuple(sorted(strangers)),
        overridden=overridden,
    )


def _cluster_causes(situation: Situation) -> Iterator[UndeterminedCause]:
    yield from dict.fromkeys(situation.cluster_causes)
    no_list = UndeterminedCause.NO_BROKER_LIST
    if situation.active_brokers is None and no_list not in situation.cluster_causes:
        yield no_list


def _judgements(
    view: ClusterView,
    situation: Situation,
    settings: PolicySettings,
    now: datetime,
    strangers: frozenset[int | None],
) -> Iterator[tuple[int, Votes, Undetermined | Covered | None]]:
    """Yield the votes of each known broker's record, and why its state is not known where it must be."""
    active = situation.active_brokers or frozenset()
    # A broker that is away gets no other topics; only a list of the active ones shows whether one is.
    away = frozenset() if situation.active_brokers is None else view.brokers.keys() - active
    joining = situation.joining_brokers
    quarantined = view.brokers_under(BrokerOrder.QUARANTINE, now) - {situation.self_id}
    maintained = view.brokers_under(BrokerOrder.MAINTENANCE, now)
    record_of, fresh_since = view.records_at(now), now - settings.staleness
    covers = settings.fallback_action is FallbackAction.BOUNDED and _hears(view, settings, now)
    for broker_id in sorted((active | view.brokers.keys()) - quarantined - strangers):
        record = record_of(broker_id)
        votes: Votes = ()
        unknown: Undetermined | Covered | None = None
        is_old = not isinstance(record, NoRecord) and record.dated_at(settings.staleness) < fresh_since
        if isinstance(record, NoRecord):
            missing = Undetermined(broker_id, UndeterminedCause(record.value))
            unknown = None if broker_id in joining else missing
        elif broker_id not in active:
            votes = record.votes_away  # its last verdict counts, however old
        elif is_old and broker_id in joining:
            covers_it = covers and broker_id not in maintained
            votes, unknown = _starting_again(broker_id, record, settings, now, covers=covers_it)
        elif is_old and broker_id not in maintained:
            votes, unknown = _silent(broker_id, record, settings, now, covers=covers)
        else:
            votes, unknown = record.votes, _unknown_in(broker_id, record)
        if is_old and broker_id not in away:
            votes = without_topics(votes)
        for other in view.others_of(broker_id, now):  # we cannot judge which of them is right
            if other.dated_at(settings.staleness) >= fresh_since:
                votes = worse_votes(votes, other.votes if broker_id in active else other.votes_away)
                if not isinstance(unknown, Undetermined):
                    unknown = _unknown_in(broker_id, other) or unknown
        yield broker_id, votes, unknown if broker_id in active else None


def _hears(view: ClusterView, settings: PolicySettings, now: datetime) -> bool:
    """Whether any report is fresh, the judge's own among them.

    Where none is, the judge is cut off, and what it knows last of a broker may not be what that said last.
    """
    record_of, fresh_since = view.records_at(now), now - settings.staleness
    return any(
        not isinstance(record, NoRecord) and record.dated_at(settings.staleness) >= fresh_since
        for record in map(record_of, view.brokers)
    )


def _silent(
    broker_id: int, record: UsageRecord, settings: PolicySettings, now: datetime, *, covers: bool
) -> tuple[Votes, Undetermined | Covered]:
    """Judge a stale record: by the bound on its growth, if a bound ``covers`` it and can be had."""
    unknown = _stale(broker_id, record, settings, now)
    if covers and _unknown_in(broker_id, record) is None:
        votes, (_, after) = record.votes_after(now - record.observed_at), record.reaches_after
        if votes is not None:
            return votes, Covered(unknown, None if after is None else record.observed_at + after)
    # Stale state is ignored, but silence never releases: a volume at 0 continues to count as 0.
    return breaches(record.votes), unknown


def _starting_again(
    broker_id: int, record: UsageRecord, settings: PolicySettings, now: datetime, *, covers: bool
) -> tuple[Votes, Covered | None]:
    """Judge a stale record in the join grace: the last verdict counts, and the bound that covers its silence.

    A broker that starts again without its agent must not release what the bound has paused.
    """
    votes, silence = _silent(broker_id, record, settings, now, covers=covers)
    if isinstance(silence, Covered):
        return worse_votes(record.votes_away, votes), silence
    return record.votes_away, None


def _stale(broker_id: int, record: UsageRecord, settings: PolicySettings, now: datetime) -> Undetermined:
    """Distinguish a clock that is behind from an agent that is silent.

    An agent reports several times within half of the staleness. A record that was stored since then, and is
    stale by its own time, bears the time of a clock that is behind.
    """
    stored_at = record.appended_at
    if stored_at is None or now - stored_at > settings.staleness / 2:
        return Undetermined(broker_id, UndeterminedCause.STALE)
    behind_seconds = round((stored_at - record.snapshot_at).total_seconds())
    return Undetermined(broker_id, UndeterminedCause.CLOCK, behind_seconds)


def _unknown_in(broker_id: int, record: UsageRecord) -> Undetermined | None:
    """Return why a fresh record lacks something that has to be known; None if it is complete."""
    if record.failed_volumes:
        return Undetermined(broker_id, UndeterminedCause.FAILED)
    if record.invalid_limit is not None:
        return Undetermined(broker_id, UndeterminedCause.INVALID_LIMIT)
    return None


def _add_own(ranking: Ranking, self_id: int | None) -> None:
    """Add where the fresh look is worse than this broker's record."""
    recorded = {vote.volume: vote.headroom for vote in ranking.votes_of(self_id)}
    ranking.others += [
        Reason(Cause.OWN, vote.headroom, self_id, vote.volume, vote.resource)
        for vote in ranking.own
        if vote.headroom < recorded.get(vote.volume, _ONE)
    ]


def _held(hold: Hold, ranking: Ranking, self_id: int | None) -> Ranking:
    """Return an operator's hold, and the hard breach of this broker's own disks, which alone outranks it."""
    # By the record or by the fresh look: a look that is better than the record must not loosen.
    held = Ranking([reason for reason in ranking.others if reason.headroom == 0], breaches(ranking.own))
    if self_id is not None:
        held.add(self_id, breaches(ranking.votes_of(self_id)))
    held.others.append(Reason(Cause.HOLD, _ZERO if hold.action is HoldAction.PAUSE else _ONE))
    return held
