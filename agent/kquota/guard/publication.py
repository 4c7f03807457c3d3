"""When to publish: regularly, at once on a change of state or topics, and soon when the factor moved.

Another agent may publish for our broker: of a cloned host, with a wrong node id, or the instance before us.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from kquota.guard.inputs import Moment
from kquota.policy.decision import State
from kquota.policy.inodes import InodeLimits
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import Volume

# A rival stops counting after it has been silent for this many of our report intervals.
RIVAL_INTERVALS = 4
# A factor that moved by less is not worth a message between two regular ones.
FACTOR_STEP = Fraction(1, 100)
FACTOR_GAP_SECONDS = 1.0
# Every agent reads all names again: where topics are created one after the other, some share a message.
TOPICS_GAP_SECONDS = 1.0

# All brokers together report so often where nothing happens: every agent reads every report.
REPORTS_A_SECOND = 50.0
# However large the cluster is, this many reports have to be lost before a broker's state is stale.
REPORTS_UNTIL_STALE = 4

_Signature = tuple[object, ...]


def regular_interval_seconds(brokers: int, interval_seconds: float, staleness_seconds: float) -> float:
    """Return how often a broker reports while nothing happens, in a cluster of this many."""
    shared = min(brokers / REPORTS_A_SECOND, staleness_seconds / REPORTS_UNTIL_STALE)
    return max(interval_seconds, shared)


@dataclass(slots=True)
class PublicationSchedule:
    """Remembers the last publication; times are seconds of a monotonic clock."""

    interval_seconds: float
    _at_seconds: float | None = None
    _signature: _Signature | None = None
    _headroom: Fraction = Fraction(1)
    _topics: tuple[object, ...] = ()
    _topics_at_seconds: float | None = None
    _reports_lost: int = 0
    _retry_seconds: float | None = None

    def due(self, record: UsageRecord, applied_state: str | None, now_seconds: float) -> bool:
        """Return whether this record should be published now."""
        interval_seconds = self.interval_seconds if self._retry_seconds is None else self._retry_seconds
        if self._at_seconds is None or now_seconds - self._at_seconds >= interval_seconds:
            return True
        if _signature(record, applied_state) != self._signature:
            return True
        since_seconds = self._topics_at_seconds
        may_name = since_seconds is None or now_seconds - since_seconds >= TOPICS_GAP_SECONDS
        if _topics(record) != self._topics and may_name:
            return True
        moved = abs(_smallest_headroom(record) - self._headroom) >= FACTOR_STEP
        return moved and now_seconds - self._at_seconds >= FACTOR_GAP_SECONDS

    def is_news(self, record: UsageRecord, applied_state: str | None) -> bool:
        """Return whether this record says more than its turn has come, or that its figures moved."""
        is_same = _signature(record, applied_state) == self._signature and _topics(record) == self._topics
        return self.forced or not is_same

    def published(self, record: UsageRecord, applied_state: str | None, now_seconds: float) -> None:
        """Remember that this record was handed to the topic."""
        signature, topics = _signature(record, applied_state), _topics(record)
        if topics != self._topics and signature == self._signature:
            self._topics_at_seconds = now_seconds
        self._at_seconds, self._signature, self._topics = now_seconds, signature, topics
        self._headroom = _smallest_headroom(record)
        self._retry_seconds = None

    def note_lost(self, reports_lost: int, retry_seconds: float) -> None:
        """Take in how many reports were lost by now; after one more the next is due this long after the last.

        A change must not wait for the next regular report of a large cluster because its report was lost.
        """
        if reports_lost > self._reports_lost:
            self._retry_seconds = retry_seconds
        self._reports_lost = reports_lost

    @property
    def forced(self) -> bool:
        """Whether the next record is due whatever its content."""
        return self._at_seconds is None

    def force(self) -> None:
        """Make the next record due at once."""
        self._at_seconds = None


def _signature(record: UsageRecord, applied_state: str | None) -> _Signature:
    volumes = tuple(
        (v.name, v.volume_id, v.status, v.role, v.latched, v.limits, _inode_limits(v), _state(v.headroom()))
        for v in record.volumes
    )
    return (record.hard, record.soft, record.replaces, applied_state, volumes)


def _inode_limits(volume: Volume) -> InodeLimits | None:
    return None if volume.inodes is None else volume.inodes.limits


def _topics(record: UsageRecord) -> tuple[object, ...]:
    return tuple(volume.topics for volume in record.volumes)


def _state(headroom: Fraction | None) -> State | None:
    return None if headroom is None else State.of_headroom(headroom)


def _smallest_headroom(record: UsageRecord) -> Fraction:
    headrooms = (volume.headroom() for volume in record.volumes if volume.votes)
    return min((h for h in headrooms if h is not None), default=Fraction(1))


@dataclass(slots=True)
class DuplicateAgentDetector:
    """Remembers the other instance's reports, as long as it keeps reporting.

    ``replaced`` is the last other instance that has fallen silent, and the number of its last record: our
    records name it, and no reader waits for it any longer. One that is heard of again counts again.
    Reports from before this instance ``started`` are no rival's: they are of the one that it follows.
    """

    started: Moment
    replaced: tuple[str, int] | None = None
    _heard: tuple[UsageRecord, float] | None = None
    _is_rival: bool = False

    def precede(self, record: UsageRecord, now_seconds: float) -> None:
        """Take in the record of the instance before this one: no rival, unless it is heard of again."""
        self._heard, self._is_rival = (record, now_seconds), False

    def look(self, heard_now: UsageRecord | None, now: Moment, interval_seconds: float) -> UsageRecord | None:
        """Take in its record, if one has just come; return the one of a rival."""
        now_seconds = now.monotonic_seconds
        if heard_now is not None and heard_now.snapshot_at > now.wall_at(self.started):
            self._heard, self._is_rival = (heard_now, now_seconds), True
        if self._heard is not None and now_seconds - self._heard[1] > RIVAL_INTERVALS * interval_seconds:
            ended, self._heard = self._heard[0], None
            if ended.instance_id is not None and ended.sequence is not None:
                self.replaced = ended.instance_id, ended.sequence
        return self._heard[0] if self._heard is not None and self._is_rival else None
