"""The inputs of a cycle, other than the events of our topics: the moment, and news of the cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kquota.host.boot_clock import BootClock, BootMoment


@dataclass(frozen=True, slots=True)
class ClusterNews:
    """The present knowledge of the Kafka side, in addition to the events of our topics.

    ``topic_refused`` is the reason why the usage topic can't be used. ``asked_own_broker`` is whether this
    broker itself has lately answered a request of ours. ``reports_lost`` counts reports of ours that were
    not delivered. ``orders_readable`` is False where the orders topic is missing, or denied.
    """

    cluster_id: str | None = None
    active_brokers: frozenset[int] | None = None
    topic_refused: str | None = None
    asked_own_broker: bool = False
    reports_lost: int = 0
    orders_readable: bool = True

    @property
    def own_cluster_id(self) -> str | None:
        """Return the id only if the cluster itself has reported it: a remembered one may be another's."""
        return None if self.active_brokers is None else self.cluster_id


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

    def wall_at(self, earlier: Moment) -> datetime:
        """Return an earlier moment by the present wall clock, which may have been set since."""
        return self.wall - timedelta(seconds=self.monotonic_seconds - earlier.monotonic_seconds)


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
