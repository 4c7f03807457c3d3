"""One volume of a broker, as its owner reports it, and what it votes for."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from kquota.policy.fill import seconds_until
from kquota.policy.inodes import Inodes
from kquota.policy.limit_breaches import LimitBreach, Resource
from kquota.policy.limits import Limit, LimitPair, Ratio
from kquota.policy.topic_scope import Topics


class VolumeStatus(StrEnum):
    """The state of a volume, as its owner knows it."""

    OK = "ok"
    OFFLINE = "offline"  # the broker itself has taken its log dirs offline: no vote
    FAILED = "failed"  # missing, hung or unreadable while in use: the broker is undetermined


class VolumeRole(StrEnum):
    """The kind of data that Kafka keeps on a volume."""

    DATA = "data"
    METADATA = "metadata"  # only the KRaft log: alerted, but pausing producers can't free it


# an enumeration's own names take longer to look up
_OK, _OFFLINE, _FAILED, _DATA = VolumeStatus.OK, VolumeStatus.OFFLINE, VolumeStatus.FAILED, VolumeRole.DATA
_BYTES, _INODES = Resource.BYTES, Resource.INODES


class Volume(NamedTuple):
    """One volume in a usage record; a tuple, because clusters have thousands and read them all the time.

    ``limits`` are those that hold here: the volume's own where it has them, else the record's; None
    if they can't be judged, and ``limits_problem`` has the reason. ``own_hard`` and ``own_soft`` are the
    volume's own, for writing the record. ``fill_bytes_per_second`` is how fast its owner sees it fill
    (:mod:`kquota.policy.fill`), negative where it empties, None where that is not known;
    ``fill_ceiling_bytes_per_second`` is the most that it may fill while its owner is silent
    (:mod:`kquota.disks.fill_ceiling`), None where the owner gives no bound. ``topics`` are those with a
    partition on the volume (:mod:`kquota.policy.topic_scope`), None where its owner does not name them all.
    ``inodes`` are None where they are not judged: their number is not fixed, or the owner does not name them.
    """

    name: str
    capacity_bytes: int
    consumed_bytes: int
    limits: LimitPair | None
    limits_problem: str | None = None
    volume_id: str | None = None
    log_dirs: tuple[str, ...] = ()
    mount_point: str | None = None
    status: VolumeStatus = VolumeStatus.OK
    role: VolumeRole = VolumeRole.DATA
    latched: bool = False
    own_hard: Limit | None = None
    own_soft: Limit | None = None
    fill_bytes_per_second: int | None = None
    fill_ceiling_bytes_per_second: int | None = None
    topics: Topics | None = None
    inodes: Inodes | None = None

    @property
    def votes(self) -> bool:
        """Whether the volume votes in the cluster's decision."""
        return self.role is _DATA and self.status is not _OFFLINE

    @property
    def is_short_of_inodes(self) -> bool:
        """Whether fewer inodes are free than the soft limit."""
        return self.inodes is not None and self.inodes.headroom_ratio() != (1, 1)

    def headroom(self) -> Fraction | None:
        """Return the headroom that counts: 0 where latched; None where the volume can't be judged."""
        if self.latched:
            return Fraction(0)
        return None if self.limits is None else Fraction(*self._shortest()[0])

    def _shortest(self) -> tuple[Ratio, Resource]:
        """Return the smaller headroom, of bytes or of inodes; bytes that can't be judged are not short."""
        of_bytes: Ratio = (1, 1)
        if self.limits is not None:
            of_bytes = self.limits.headroom_ratio(self.capacity_bytes, self.consumed_bytes)
        if self.inodes is None:
            return of_bytes, _BYTES
        of_inodes = self.inodes.headroom_ratio()
        if of_inodes[0] * of_bytes[1] < of_bytes[0] * of_inodes[1]:
            return of_inodes, _INODES
        return of_bytes, _BYTES

    def seconds_to_limits(self) -> tuple[float | None, float | None]:
        """Return in how many seconds soft and hard limit are reached at its rate; see ``seconds_until``."""
        if self.limits is None:
            return None, None
        bounds = self.limits.bounds(self.capacity_bytes)
        rate = self.fill_bytes_per_second
        return (
            seconds_until(float(bounds.soft_bytes), self.consumed_bytes, rate),
            seconds_until(float(bounds.hard_bytes), self.consumed_bytes, rate),
        )

    def vote(self, *, away: bool = False) -> LimitBreach | None:
        """Return the volume's vote in the decision; None if it has no vote, or nothing to vote for.

        ``away`` means that its broker is inactive: it no longer runs on without an offline volume, and a
        latch counts.
        """
        if not self.votes and not (away and self.latched and self.role is _DATA):
            return None
        (left, of), resource = self._shortest()
        if self.latched or left == 0:
            # a failed volume with a capacity of 0 never had figures
            counts = self.latched or self.capacity_bytes > 0 or self.status is not _FAILED
            if not counts:
                return None
            return LimitBreach.at_hard(self.name, self.topics, by_latch=left > 0, resource=resource)
        # of a failed volume only a breach counts
        if left == of or self.status is _FAILED:
            return None
        return LimitBreach.over_soft(left, of, self.name, self.topics, resource=resource)
