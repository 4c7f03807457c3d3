"""The producers of a cluster by its history, and those that a decision would have held. Pure.

A producer is a user with a client id, as the clients' records have it. While the brokers held producers they
show what got through, so that all who wrote before are still taken for producers then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from kquota.policy.decision import Decision, Scope
from kquota.policy.topic_scope import Topics, topics_field

Name = tuple[str, str]
"""User and client id."""


def named(entries: Iterable[Mapping[str, Any]]) -> dict[Name, Collection[str] | None]:
    """Return the topics of each producer from entries of user, client_id and topics."""
    return {(entry["user"], entry["client_id"]): entry["topics"] for entry in entries}


@lru_cache(maxsize=1_000)
def topics_of(names: Topics) -> Topics | None:
    """Return the topics on a volume by its record; None where an agent would not name them."""
    return topics_field(list(names), True)


class Tally(NamedTuple):
    """How many producers a decision holds.

    `unlisted` are the clients that the records of that time do not list; perhaps some of them produce.
    `by_cluster` is whether some are held as with the cluster's scope, although the policy's is the volume's,
    because the history does not name the topics that are on a volume, or those that a producer wrote to.
    """

    paused: int = 0
    slowed: int = 0
    unlisted: int = 0
    by_cluster: bool = False


class Producers:
    """Those who write, and the topics that each writes to: None where not all are known."""

    def __init__(self) -> None:
        self._topics: dict[Name, frozenset[str] | None] = {}
        self._unlisted = 0

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self._topics)

    @property
    def unlisted(self) -> int:
        """How many clients the records do not list."""
        return self._unlisted

    def observe(
        self, topics: Mapping[Name, Collection[str] | None], unlisted: int, *, were_held: bool
    ) -> None:
        """Take in who wrote in a tick; `were_held` is whether the brokers held producers in it."""
        before = self._topics if were_held else {}
        self._topics = before | {
            name: None if names is None else frozenset(names) for name, names in topics.items()
        }
        self._unlisted = unlisted

    @property
    def names(self) -> Collection[Name]:
        """Their names."""
        return self._topics.keys()

    def factors(self, decision: Decision) -> dict[Name, Fraction]:
        """Return the share of its rate that a decision leaves to each."""
        return {name: _factor(decision, topics) for name, topics in self._topics.items()}

    def held_by(self, decision: Decision, scope: Scope) -> Tally:
        """Return whom a decision of a policy with that scope holds."""
        if decision.headroom >= 1:
            return Tally()
        factors = [_factor(decision, topics) for topics in self._topics.values()]
        return Tally(
            paused=sum(factor == 0 for factor in factors),
            slowed=sum(0 < factor < 1 for factor in factors),
            unlisted=self._unlisted,
            by_cluster=scope is Scope.VOLUME and self._is_wider(decision),
        )

    def _is_wider(self, decision: Decision) -> bool:
        if decision.scope is None:  # unless a reason without a volume holds all topics: that is no lack
            return decision.no_scope is not None
        return decision.scope.others < 1 or None in self._topics.values()


def _factor(decision: Decision, topics: frozenset[str] | None) -> Fraction:
    if decision.scope is None or topics is None:
        return decision.headroom
    return min((decision.scope.of(topic) for topic in topics), default=decision.scope.others)
