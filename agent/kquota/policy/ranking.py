"""Finding the worst of all brokers' votes without sorting votes that will not be listed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nsmallest

from kquota.policy.decision import Cause, Reason
from kquota.policy.limit_breaches import Basis, LimitBreach, Resource, Votes
from kquota.policy.topic_scope import NoScope, TopicScope, narrowed

_CAUSE_ORDER = {cause: rank for rank, cause in enumerate(Cause)}


@dataclass(slots=True)
class Ranking:
    """The votes of brokers, and ``others``: reasons that are no broker's vote.

    ``own`` are the votes of a broker's fresh look at its own disks. Where they are worse than those of its
    record they are among the reasons; their topics always count.
    """

    others: list[Reason] = field(default_factory=list)
    own: Votes = ()
    _votes: dict[int, Votes] = field(default_factory=dict)

    def add(self, broker_id: int, votes: Votes) -> None:
        """Take in the votes of a broker's record, once for each broker."""
        if votes:
            self._votes[broker_id] = votes

    def votes_of(self, broker_id: int | None) -> Votes:
        """Return the votes that were taken in for a broker."""
        return () if broker_id is None else self._votes.get(broker_id, ())

    def smallest(self) -> Fraction:
        """Return the smallest headroom of all; 1 where nothing holds producers back."""
        voted = [vote.headroom for _, (vote, *_) in self._worst_brokers(1)]
        return min(voted + [reason.headroom for reason in self.others], default=Fraction(1))

    def worst(self, count: int) -> tuple[Reason, ...]:
        """Return at most this many reasons, the one that decides first."""
        # Each of the worst votes belongs to a broker whose own worst is among the brokers' worst.
        brokers = nsmallest(count, ((_key(i, votes[0]), votes) for i, votes in self._worst_brokers(count)))
        keys = nsmallest(count, (_key(key[3], vote) for key, votes in brokers for vote in votes[:count]))
        reasons = [_reason(*key[1:]) for key in keys]
        return tuple(nsmallest(count, reasons + self.others, key=_reason_key))

    def scope(self, self_id: int | None) -> tuple[TopicScope | None, NoScope | None]:
        """Return the headroom of each topic; or None, and why, unless a reason without a volume decides."""
        stakes = [(i, vote) for i, votes in self._votes.items() for vote in votes]
        if self_id is not None:
            stakes += [(self_id, vote) for vote in self.own]
        everywhere = [
            reason.headroom for reason in self.others if reason.cause in (Cause.FALLBACK, Cause.HOLD)
        ]
        found = narrowed(((vote.headroom, vote.topics) for _, vote in stakes), everywhere)
        smallest = self.smallest()
        if found is not None or smallest in everywhere or smallest == 1:
            return found, None
        unnamed = [
            (i, vote.volume) for i, vote in stakes if vote.topics is None and vote.headroom == smallest
        ]
        return None, NoScope(min(unnamed, default=None))

    def volumes(self) -> int:
        """Return how many volumes hold producers back; one may have several reasons."""
        named = volumes_of(self.others)
        voting = {(i, vote.volume) for i in {i for i, _ in named} for vote in self.votes_of(i)}
        return sum(map(len, self._votes.values())) + len(named - voting)

    def _worst_brokers(self, count: int) -> list[tuple[int, Votes]]:
        """Return this many brokers and a few more: all whose worst vote is no better, compared as floats."""
        if len(self._votes) <= count:
            return list(self._votes.items())
        floats = [votes[0].approximate for votes in self._votes.values()]
        most = min(floats) if count == 1 else sorted(floats)[count - 1]
        return [entry for entry in self._votes.items() if entry[1][0].approximate <= most]


def volumes_of(reasons: Iterable[Reason]) -> set[tuple[int | None, str]]:
    """Return the volumes that reasons are about; one may have several reasons."""
    return {(reason.broker_id, reason.volume) for reason in reasons if reason.volume is not None}


def _key(broker_id: int, vote: LimitBreach) -> tuple[float, Fraction, Basis, int, str, Resource]:
    return vote.approximate, vote.headroom, vote.basis, broker_id, vote.volume, vote.resource


def _reason(headroom: Fraction, basis: Basis, broker_id: int, volume: str, resource: Resource) -> Reason:
    measured = Cause.SOFT if headroom else Cause.HARD
    cause = {Basis.FIGURES: measured, Basis.LATCH: Cause.LATCHED, Basis.BOUND: Cause.BOUNDED}[basis]
    return Reason(cause, headroom, broker_id, volume, resource)


def _reason_key(reason: Reason) -> tuple[Fraction, int, int, str]:
    broker_id = -1 if reason.broker_id is None else reason.broker_id
    return reason.headroom, _CAUSE_ORDER[reason.cause], broker_id, reason.volume or ""
