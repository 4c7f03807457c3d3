"""Which agent writes an order to the history: every agent reads it, the lowest that lives writes it.

Source: docs/adr/0127-orders-are-written-in-turn.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from kquota.daemon.orders import OrderNews
from kquota.daemon.report import CycleReport

# An agent that was heard within this time counts as alive, and has a turn before those with higher ids.
ALIVE_SECONDS = 60.0
# Longer than the time between two reports of an agent, in a cluster of any size.
TURN_SECONDS = 20.0
# By then the Kafka client has written a record that the agent passed to it.
WRITTEN_SECONDS = 3.0
MAX_WAITING = 1000


@dataclass(frozen=True, slots=True)
class _Waiting:
    order: OrderNews
    read_at_seconds: float
    before_us: dict[int, tuple[str | None, float]]  # by broker: its agent's instance, and when its turn is


@dataclass(slots=True)
class OrderTurns:
    """The orders that this agent may have to write. Times are seconds of the monotonic clock."""

    broker_id: int
    _heard: dict[int, tuple[str | None, float]] = field(default_factory=dict)
    _waiting: deque[_Waiting] = field(default_factory=lambda: deque(maxlen=MAX_WAITING))

    def take(self, report: CycleReport) -> None:
        """Take in the orders that a cycle read, and who reported."""
        now = report.moment.monotonic_seconds
        for order in report.fold.orders:
            self._waiting.append(_Waiting(order, now, self._turns_before_us(now)))
        for broker_id, (instance_id, at) in report.fold.heard.items():
            if broker_id < self.broker_id:
                age_seconds = max((report.moment.wall - at).total_seconds(), 0.0)
                self._heard[broker_id] = instance_id, now - age_seconds

    def due(self, now_seconds: float) -> Iterator[OrderNews]:
        """Yield the orders whose turn has come."""
        for waiting in [self._waiting.popleft() for _ in range(len(self._waiting))]:
            if self._is_written(waiting):
                continue
            if now_seconds - waiting.read_at_seconds >= len(waiting.before_us) * TURN_SECONDS:
                yield waiting.order
            else:
                self._waiting.append(waiting)

    def _turns_before_us(self, now: float) -> dict[int, tuple[str | None, float]]:
        alive = [i for i, (_, at) in sorted(self._heard.items()) if now - at <= ALIVE_SECONDS]
        return {i: (self._heard[i][0], now + rank * TURN_SECONDS) for rank, i in enumerate(alive)}

    def _is_written(self, waiting: _Waiting) -> bool:
        """Whether an agent before us lived on past its turn; one that restarted does not know the order."""
        for broker_id, (instance_id, turn_seconds) in waiting.before_us.items():
            instance_now, alive_seconds = self._heard[broker_id]
            if instance_now == instance_id and alive_seconds >= turn_seconds + WRITTEN_SECONDS:
                return True
        return False
