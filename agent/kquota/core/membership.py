"""Which brokers are active, and which of them only just became so (the join grace)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Membership:
    """The active brokers as the cluster lists them, with the time each became active.

    Times are seconds of a monotonic clock. Brokers in the first list are not joining: an agent that
    starts beside them must know their state.
    """

    grace_seconds: float
    active: frozenset[int] | None = None
    _joined_at: dict[int, float] = field(default_factory=dict)

    def update(self, active: frozenset[int], now_seconds: float) -> None:
        """Take in a list of active brokers; an empty one is no answer of a cluster, and is ignored."""
        if not active:
            return
        newcomers = frozenset() if self.active is None else active - self.active
        self._joined_at = {broker: at for broker, at in self._joined_at.items() if broker in active}
        self._joined_at.update(dict.fromkeys(newcomers, now_seconds))
        self.active = active

    def joining(self, now_seconds: float) -> frozenset[int]:
        """Return the brokers within the join grace."""
        return frozenset(
            broker for broker, at in self._joined_at.items() if now_seconds - at < self.grace_seconds
        )
