"""The topics that a decision holds: those with a partition on a volume that is over a limit.

    factor of a topic = the smallest headroom over the voting volumes that hold it, or name no topics

A volume that names no topics, a state that is not known and an operator's hold count for all topics.
Source: docs/adr/0009-volume-scope.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

MAX_TOPICS = 2000
"""The most topics that a volume names."""
MAX_TOPICS_BYTES = 512 * 1024
"""The most bytes of names in a record: it has to fit into a message of the usual 1 MB."""
# The decision file has at most 1 MiB: a name, its quotes, its factor and two separators each.
_MAX_DECISION_BYTES = 768 * 1024
_BYTES_BESIDE_A_NAME = 14
# Decisions are made several times a second: where that many are named, nearly all topics are at stake.
_MAX_NAMED = 100_000
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")

Topics = tuple[str, ...]
"""The names of topics, sorted, each once."""


@dataclass(frozen=True, slots=True)
class TopicScope:
    """The headroom of topics; each in ``topics`` has less than ``others``, which is that of all others."""

    topics: Mapping[str, Fraction]
    others: Fraction = Fraction(1)

    def of(self, topic: str) -> Fraction:
        """Return the headroom that counts for this topic."""
        return self.topics.get(topic, self.others)

    @property
    def paused(self) -> int:
        """The number of topics that nothing may be written to, of those that are named."""
        return sum(headroom == 0 for headroom in self.topics.values())


@dataclass(frozen=True, slots=True)
class NoScope:
    """Why all topics are held alike: a volume that names no topics, or None where too many are named."""

    volume: tuple[int, str] | None


def topics_field(names: object, complete: object) -> Topics | None:
    """Return the topics of a volume; None where its record does not name all of them, in a form of ours."""
    if complete is not True or not isinstance(names, list) or len(names) > MAX_TOPICS:
        return None
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        return None
    return tuple(sorted(set(names)))


def all_of(some: Topics | None, others: Topics | None) -> Topics | None:
    """Return the topics of both; None where those of one are not known."""
    if some is None or others is None:
        return None
    return some if some == others else tuple(sorted({*some, *others}))


def narrowed(
    stakes: Iterable[tuple[Fraction, Topics | None]], elsewhere: Iterable[Fraction]
) -> TopicScope | None:
    """Return what each topic has; None where all are to be held alike, or more are at stake than fit.

    Args:
        stakes: the headroom and the topics of each volume that is over a limit, None where it names none.
        elsewhere: headrooms that count for all topics.
    """
    named, others = [], min(elsewhere, default=Fraction(1))
    for headroom, topics in stakes:
        if topics is None:
            others = min(others, headroom)
        else:
            named.append((headroom, topics))
    named = sorted((entry for entry in named if entry[0] < others), key=lambda entry: entry[0])
    if not named or sum(len(topics) for _, topics in named) > _MAX_NAMED:
        return None
    of_topics: dict[str, Fraction] = {}
    for headroom, topics in named:
        for topic in topics:
            of_topics.setdefault(topic, headroom)
    if sum(map(len, of_topics)) + _BYTES_BESIDE_A_NAME * len(of_topics) > _MAX_DECISION_BYTES:
        return None
    return TopicScope(of_topics, others)
