"""The three clocks of the agent, read together once a cycle."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from kquota.host.boot_clock import BootClock, BootMoment


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment on every clock the agent needs.

    ``wall`` judges records of other machines, ``monotonic_seconds`` schedules, ``boot`` stamps leases.
    """

    wall: datetime
    monotonic_seconds: float
    boot: BootMoment

    @staticmethod
    def now(boot_clock: BootClock) -> Moment:
        """Return the present moment."""
        return Moment(datetime.now(UTC), time.monotonic(), boot_clock.now())


@dataclass(slots=True)
class JumpDetector:
    """Notices that the wall clock was set: it went otherwise than the monotonic clock."""

    tolerance_seconds: float = 5.0
    _offset_seconds: float | None = None

    def jump_seconds(self, moment: Moment) -> float:
        """Return by how much the wall clock jumped since the last look; 0.0 within the tolerance."""
        offset = moment.wall.timestamp() - moment.monotonic_seconds
        before, self._offset_seconds = self._offset_seconds, offset
        if before is None or abs(offset - before) <= self.tolerance_seconds:
            return 0.0
        return offset - before
