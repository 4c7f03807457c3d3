"""The votes of a record's volumes in the cluster's decision, made once for each record.

A record never changes, so neither do its votes. A cluster of thousands of volumes is decided upon several
times a second by looking at each record's worst vote; only new records cost more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import NamedTuple


class Severity(IntEnum):
    """How a volume stands, the worst first."""

    HARD = 0
    LATCHED = 1  # the figures alone are no breach any more
    SOFT = 2


class Exact:
    """A share as it was computed, not reduced: most are only ever compared as floats."""

    __slots__ = ("_denominator", "_numerator")

    def __init__(self, numerator: int, denominator: int) -> None:
        """Take a numerator and a positive denominator."""
        self._numerator, self._denominator = numerator, denominator

    @property
    def fraction(self) -> Fraction:
        """The same, reduced."""
        return Fraction(self._numerator, self._denominator)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Exact):
            return NotImplemented
        return self._numerator * other._denominator == other._numerator * self._denominator

    def __lt__(self, other: Exact) -> bool:
        return self._numerator * other._denominator < other._numerator * self._denominator

    __hash__ = None  # type: ignore[assignment]  # nothing looks one up

    def __repr__(self) -> str:
        return f"Exact({self._numerator}, {self._denominator})"


_NOTHING = Exact(0, 1)


class Vote(NamedTuple):
    """A volume over its soft limit. Votes sort by what holds producers back most.

    ``approximate`` is the headroom as a float: rounding keeps the order, so most comparisons need no
    exact arithmetic, and where two floats are equal the ``exact`` headroom decides.
    """

    approximate: float
    exact: Exact
    severity: Severity
    volume: str

    @property
    def headroom(self) -> Fraction:
        """The headroom that counts, below 1."""
        return self.exact.fraction

    @staticmethod
    def at_hard(measured: bool, volume: str) -> Vote:
        """Build the vote of a volume at headroom 0, by the figures themselves or by a latch alone."""
        return Vote(0.0, _NOTHING, Severity.HARD if measured else Severity.LATCHED, volume)

    @staticmethod
    def over_soft(left: int, of: int, volume: str) -> Vote:
        """Build the vote of a volume with ``left / of`` of headroom, more than 0 and less than 1."""
        # Python divides whole numbers exactly and rounds once, so the order is kept
        return Vote(left / of, Exact(left, of), Severity.SOFT, volume)


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes of one record, the worst first; the first ``breaches`` of them stand at headroom 0."""

    votes: tuple[Vote, ...] = ()
    breaches: int = 0

    @staticmethod
    def of(votes: Iterable[Vote]) -> Ballot:
        """Sort and count votes."""
        ordered = tuple(sorted(votes))
        return Ballot(ordered, sum(vote.severity is not Severity.SOFT for vote in ordered))

    def with_worse_of(self, other: Ballot) -> Ballot:
        """Return the votes of both; of a volume that both name, the worse one."""
        votes: dict[str, Vote] = {}
        for vote in sorted(self.votes + other.votes):
            votes.setdefault(vote.volume, vote)
        return Ballot.of(votes.values())

    def breaches_alone(self) -> Ballot:
        """Return the votes at headroom 0."""
        if self.breaches == len(self.votes):
            return self
        return Ballot(self.votes[: self.breaches], self.breaches)
