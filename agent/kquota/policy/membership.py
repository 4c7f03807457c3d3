"""Which brokers are active, and which of them only just became so (the join grace).

When a broker became active is what agents saw and wrote into their records, so that all agents judge alike,
whenever they started. Source: docs/adr/0005-clocks-and-join-grace.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

# Joins that a record names at most, so that it stays small.
MAX_JOINED = 256
# Agents see a join at slightly different times. Within this time one agent's record of it serves all.
SAME_JOIN = timedelta(seconds=10)


@dataclass(slots=True)
class Membership:
    """The active brokers as the cluster lists them, and those that this agent itself saw become active.

    Brokers in the first list are not joining by our own sight: we do not know how long they have been there.
    ``recorded`` is, by broker, when others saw it become active (``ClusterView.joined``). Such a time counts
    up to `SAME_JOIN` after the first of the unbroken lists in which we saw that broker: a later one is wrong,
    by mistake or on purpose. ``tolerance`` is how far clocks may differ.
    """

    grace: timedelta
    tolerance: timedelta
    active: frozenset[int] | None = None
    sightings: dict[int, datetime] = field(default_factory=dict)
    _seen_since: dict[int, datetime] = field(default_factory=dict)

    def update(
        self, active: frozenset[int], now: datetime, recorded: Mapping[int, Sequence[datetime]]
    ) -> bool:
        """Take in a list of active brokers; return whether we saw something that no record has.

        An empty list is no answer of a cluster, and is ignored.
        """
        if not active:
            return False
        newcomers = frozenset() if self.active is None else active - self.active
        self.active = active
        self._seen_since = {broker: self._seen_since.get(broker, now) for broker in active}
        unknown = [i for i in newcomers if all(abs(now - at) >= SAME_JOIN for at in recorded.get(i, ()))]
        self.sightings.update(dict.fromkeys(unknown, now))
        self._forget(now)
        return bool(unknown)

    def recall(self, sightings: Mapping[int, datetime], now: datetime) -> None:
        """Take in what an earlier instance of this agent saw."""
        self.sightings = {**sightings, **self.sightings}
        self._forget(now)

    def _forget(self, now: datetime) -> None:
        maybe_active = self.sightings if self.active is None else self.active
        kept = [(at, i) for i, at in self.sightings.items() if self._excuses(at, now) and i in maybe_active]
        self.sightings = {i: at for at, i in sorted(kept)[-MAX_JOINED:]}

    def joining(
        self,
        now: datetime,
        recorded: Mapping[int, Sequence[datetime]],
        removed_at: Callable[[int], datetime | None],
    ) -> frozenset[int]:
        """Return the active brokers within the join grace.

        One whose report was removed since it joined (``removed_at``) is not among them: that it has not
        reported yet is no excuse for it, and a removal must not open what its report has paused.
        """
        joining = set[int]()
        for broker in self.active or ():
            seen = self._seen_since[broker]
            joins = [at for at in recorded.get(broker, ()) if at <= seen + SAME_JOIN]
            joins += [self.sightings[broker]] if broker in self.sightings else []
            joins = [at for at in joins if self._excuses(at, now)]
            removed = removed_at(broker)
            # another clock than that of the join gave its time
            if joins and (removed is None or removed < min(joins) - SAME_JOIN - self.tolerance):
                joining.add(broker)
        return frozenset(joining)

    def _excuses(self, joined_at: datetime, now: datetime) -> bool:
        """Whether a join is within the grace, on either side: the clock may have been set back since."""
        return abs(now - joined_at) < self.grace
