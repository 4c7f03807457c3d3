"""The events in numbers: pure bookkeeping over the lookout's observations."""

from __future__ import annotations

from dataclasses import dataclass, field

from kquota.policy.decision import State
from testbed.demo.sight import Sight


@dataclass
class Peak:
    """The fullest moment of one volume."""

    capacity_bytes: int
    hard_bytes: int
    consumed_bytes: int

    @property
    def past_hard_bytes(self) -> int:
        """How far it went over its hard limit; 0 when it did not."""
        return max(0, self.consumed_bytes - self.hard_bytes)

    @property
    def free_bytes(self) -> int:
        """The space left at that moment."""
        return self.capacity_bytes - self.consumed_bytes


@dataclass
class Tally:
    """Peaks and moments. Moments: CLOCK_MONOTONIC in seconds, of the first sight that showed it; or None."""

    peaks: dict[tuple[int, str], Peak] = field(default_factory=dict)
    """By broker id and volume."""
    states: list[State] = field(default_factory=list)
    """The states that all brokers enforced, one after the other."""
    breached_at: float | None = None
    paused_at: float | None = None
    """Every broker enforces PAUSE."""
    freed_at: float | None = None
    """After a PAUSE, the first moment with every volume below its soft limit."""
    opened_at: float | None = None
    """After that, every broker lets producers through."""
    died_at: dict[int, float] = field(default_factory=dict)
    """Brokers whose process ended."""
    offline_log_dirs: set[tuple[int, str]] = field(default_factory=set)
    """By broker id."""

    def begin(self) -> None:
        """Forget the states before producers start: while agents start, the fallback action holds."""
        del self.states[:-1]

    def notice(self, sight: Sight) -> None:
        """Take one sight into account; sights come in the order of time."""
        for broker_id, volume in sight.volumes:
            key = (broker_id, volume.name)
            peak = self.peaks.get(key)
            if peak is None or volume.consumed_bytes > peak.consumed_bytes:
                self.peaks[key] = Peak(volume.capacity_bytes, volume.hard_bytes, volume.consumed_bytes)
        for broker in sight.brokers:
            if not broker.running:
                self.died_at.setdefault(broker.broker_id, sight.at)
            if broker.applied is not None:
                self.offline_log_dirs.update(
                    (broker.broker_id, path) for path in broker.applied.offline_log_dirs
                )
        for state in State:
            if sight.all_enforce(state) and (not self.states or self.states[-1] is not state):
                self.states.append(state)
        self._notice_moments(sight)

    def _notice_moments(self, sight: Sight) -> None:
        if self.breached_at is None and sight.breached:
            self.breached_at = sight.at
        if self.paused_at is None and sight.all_enforce(State.PAUSE) and self.breached_at is not None:
            self.paused_at = sight.at
        if self.paused_at is None:
            return
        if self.freed_at is None and all(volume.headroom >= 1 for _, volume in sight.volumes):
            self.freed_at = sight.at
        if self.freed_at is not None and self.opened_at is None and sight.all_enforce(State.OPEN):
            self.opened_at = sight.at

    @property
    def reaction_seconds(self) -> float | None:
        """From the byte that breached a hard limit to every broker holding its producers."""
        return between(self.breached_at, self.paused_at)

    @property
    def release_seconds(self) -> float | None:
        """From the space being free to every broker letting producers through."""
        return between(self.freed_at, self.opened_at)


def between(start: float | None, end: float | None) -> float | None:
    """Seconds from one moment to another, 0 at least; None when either is missing."""
    return None if start is None or end is None else max(0.0, end - start)
