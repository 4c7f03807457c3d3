"""What a record's volumes say in the cluster's decision, made once for each record.

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


class Vote(NamedTuple):
    """A volume over its soft limit. Votes sort by what holds producers back most.

    ``approximate`` is the headroom as a float: rounding keeps the order, so most comparisons need no
    exact arithmetic, and where two floats are equal the exact ``headroom`` decides.
    """

    approximate: float
    headroom: Fraction
    severity: Severity
    volume: str

    @staticmethod
    def of(headroom: Fraction, measured: Fraction | None, volume: str) -> Vote:
        """Build a vote from the headroom that counts, below 1, and the one by the figures alone."""
        at_hard = Severity.HARD if measured == 0 else Severity.LATCHED
        severity = Severity.SOFT if headroom else at_hard
        return Vote(float(headroom), headroom, severity, volume)


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

    def breaches_alone(self) -> Ballot:
        """Return the votes at headroom 0."""
        if self.breaches == len(self.votes):
            return self
        return Ballot(self.votes[: self.breaches], self.breaches)
