"""Finding the worst of all brokers' votes without sorting votes that will not be listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import nsmallest

from kquota.core.decision import Cause, Reason
from kquota.core.votes import Ballot, Exact, Severity, Vote

_ONE = Fraction(1)
_CAUSE_OF = {Severity.HARD: Cause.HARD, Severity.LATCHED: Cause.LATCHED, Severity.SOFT: Cause.SOFT}
_CAUSE_ORDER = {
    cause: rank
    for rank, cause in enumerate(
        (Cause.HOLD, Cause.HARD, Cause.LATCHED, Cause.OWN, Cause.FALLBACK, Cause.SOFT)
    )
}


@dataclass(slots=True)
class Poll:
    """The ballots of brokers, and ``others``: reasons that are no broker's vote."""

    others: list[Reason] = field(default_factory=list)
    _ballots: dict[int, Ballot] = field(default_factory=dict)
    _worst_votes: list[Vote] = field(default_factory=list)  # equal as floats

    def add(self, broker_id: int, ballot: Ballot) -> None:
        """Take in the votes of a broker's record, once for each broker."""
        if not ballot.votes:
            return
        self._ballots[broker_id] = ballot
        vote, worst = ballot.votes[0], self._worst_votes
        if not worst or vote.approximate < worst[0].approximate:
            self._worst_votes = [vote]
        elif vote.approximate == worst[0].approximate:
            worst.append(vote)

    def ballot_of(self, broker_id: int) -> Ballot:
        """Return the votes that were taken in for a broker."""
        return self._ballots.get(broker_id, Ballot())

    def smallest(self) -> Fraction:
        """Return the smallest headroom of all; 1 where nothing holds producers back."""
        others = min((reason.headroom for reason in self.others), default=_ONE)
        return min(min(self._worst_votes).headroom, others) if self._worst_votes else others

    def worst(self, count: int) -> tuple[Reason, ...]:
        """Return at most this many reasons, the one that decides first."""
        # Each of the worst votes belongs to a broker whose own worst is among the brokers' worst.
        worst = self._worst_brokers(count)
        brokers = nsmallest(count, ((_key(i, ballot.votes[0]), i) for i, ballot in worst))
        votes = nsmallest(count, ((_key(i, vote), i, vote) for i, vote in self._votes_of(brokers, count)))
        reasons = [Reason(_CAUSE_OF[v.severity], v.headroom, i, v.volume) for _, i, v in votes]
        return tuple(nsmallest(count, reasons + self.others, key=_reason_key))

    def volumes(self) -> int:
        """Return how many volumes hold producers back; one may have several reasons."""
        voting = {(i, v.volume) for i in self._reported() for v in self.ballot_of(i).votes}
        more = volumes_of(self.others) - voting
        return sum(len(ballot.votes) for ballot in self._ballots.values()) + len(more)

    def _worst_brokers(self, count: int) -> list[tuple[int, Ballot]]:
        """Return this many brokers and a few more: all whose worst vote is no better, compared as floats."""
        if len(self._ballots) <= count:
            return list(self._ballots.items())
        floats = sorted([ballot.votes[0].approximate for ballot in self._ballots.values()])
        most = floats[count - 1]
        return [entry for entry in self._ballots.items() if entry[1].votes[0].approximate <= most]

    def _votes_of(self, brokers: Iterable[tuple[object, int]], count: int) -> Iterator[tuple[int, Vote]]:
        for _, broker_id in brokers:
            for vote in self._ballots[broker_id].votes[:count]:
                yield broker_id, vote

    def _reported(self) -> set[int]:
        return {reason.broker_id for reason in self.others if reason.broker_id is not None}


def volumes_of(reasons: Iterable[Reason]) -> set[tuple[int | None, str]]:
    """Return the volumes that reasons are about; one may have several reasons."""
    return {(reason.broker_id, reason.volume) for reason in reasons if reason.volume is not None}


def _key(broker_id: int, vote: Vote) -> tuple[float, Exact, Severity, int, str]:
    return vote.approximate, vote.exact, vote.severity, broker_id, vote.volume


def _reason_key(reason: Reason) -> tuple[Fraction, int, int, str]:
    broker_id = -1 if reason.broker_id is None else reason.broker_id
    return reason.headroom, _CAUSE_ORDER[reason.cause], broker_id, reason.volume or ""
