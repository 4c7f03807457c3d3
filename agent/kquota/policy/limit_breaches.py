"""The votes of a record's volumes in the cluster's decision, made once for each record.

A record never changes, so neither do its votes. A cluster of thousands of volumes is decided upon several
times a second by looking at each record's worst vote; only new records cost more.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum
from fractions import Fraction
from typing import NamedTuple

from kquota.policy.topic_scope import Topics, all_of


class Basis(IntEnum):
    """The basis of a vote; of equal headrooms the lower one comes first."""

    FIGURES = 0
    LATCH = 1  # the figures alone are no hard breach any more
    BOUND = 2  # the figures of a silent broker, and the most that it may have filled since


class Resource(StrEnum):
    """The resource that a volume is shortest of; bytes where both are equally short."""

    BYTES = "bytes"
    INODES = "inodes"


class LimitBreach(NamedTuple):
    """A volume over its soft limit. Votes sort by what holds producers back most.

    ``approximate`` is the headroom as a float: rounding keeps the order, so most comparisons need no
    exact arithmetic, and where two floats are equal the exact ``headroom`` (from 0, below 1) decides.
    ``resource`` is the one that the volume is shortest of. ``topics`` are those with a partition on the
    volume, None where they are not known.
    """

    approximate: float
    headroom: Fraction
    basis: Basis
    volume: str
    resource: Resource = Resource.BYTES
    topics: Topics | None = None

    @staticmethod
    def at_hard(
        volume: str,
        topics: Topics | None = None,
        *,
        by_latch: bool,
        resource: Resource = Resource.BYTES,
    ) -> LimitBreach:
        """Build the vote of a volume at headroom 0."""
        return LimitBreach(
            0.0, Fraction(0), Basis.LATCH if by_latch else Basis.FIGURES, volume, resource, topics
        )

    @staticmethod
    def over_soft(
        left: int,
        of: int,
        volume: str,
        topics: Topics | None = None,
        *,
        resource: Resource = Resource.BYTES,
    ) -> LimitBreach:
        """Build the vote of a volume with ``left / of`` of headroom, more than 0 and less than 1."""
        # Python divides whole numbers exactly and rounds once, so the order is kept
        return LimitBreach(left / of, Fraction(left, of), Basis.FIGURES, volume, resource, topics)


Votes = tuple[LimitBreach, ...]  # of one broker, the worst first


def sorted_votes(votes: Iterable[LimitBreach | None]) -> Votes:
    """Return the votes that there are, the worst first."""
    return tuple(sorted(vote for vote in votes if vote is not None))


def worse_votes(some: Votes, others: Votes) -> Votes:
    """Return the votes of both; of a volume that both name, the worse one, with the topics of both."""
    votes: dict[str, LimitBreach] = {}
    for vote in sorted(some + others, key=lambda vote: vote[:-1]):
        worse = votes.setdefault(vote.volume, vote)
        votes[vote.volume] = worse._replace(topics=all_of(worse.topics, vote.topics))
    return tuple(votes.values())


def breaches(votes: Votes) -> Votes:
    """Return the votes at headroom 0."""
    return tuple(vote for vote in votes if vote.headroom == 0)


def without_topics(votes: Votes) -> Votes:
    """Return the votes of a record that is too old to name topics: others may be on its volumes by now."""
    return tuple(vote._replace(topics=None) for vote in votes)


def holding(topic: str, votes: Votes) -> Votes:
    """Return the votes of volumes that hold a partition of the topic, or may hold one."""
    return tuple(vote for vote in votes if vote.topics is None or topic in vote.topics)
