"""The usage record: one broker's report about its volumes (value of the usage topic).

The message is the one of the Strimzi proposal, with optional fields of ours (see
``schemas/usage.schema.json``). Readers ignore what they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from kquota.core.fill import seconds_until
from kquota.core.inodes import Inodes
from kquota.core.limit_breaches import LimitBreach, Resource, Votes, sorted_votes
from kquota.core.limits import Limit, LimitPair, Ratio
from kquota.core.stale_growth_bound import reaches_after, vote_after
from kquota.core.topic_scope import Topics


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
    (:mod:`kquota.core.fill`), negative where it empties, None where that is not known;
    ``fill_ceiling_bytes_per_second`` is the most that it may fill while its owner is silent
    (:mod:`kquota.core.fill_ceiling`), None where the owner gives no bound. ``topics`` are those with a
    partition on the volume (:mod:`kquota.core.topic_scope`), None where the owner does not name all of them.
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


@dataclass(frozen=True)
class UsageRecord:
    """A broker's usage record. ``hard`` and ``soft`` are None where the record's own can't be judged.

    ``joined`` is, by broker, when its agent saw it become active, as long as that is within the join grace.
    ``replaces`` is another instance for the same broker that has ended, and the number of its last record.
    ``appended_at`` is when the topic took the record in, by the clock of the broker that leads it there.
    ``signer`` has signed it, with the ``certificate`` of that fingerprint; None if it is not signed, or if
    signatures are not looked at.
    ``listed`` are inactive brokers that its agent has seen in the cluster's list, None if it names none
    (:mod:`kquota.core.known_brokers`). ``size_bytes`` is the length of the value that it was read from.
    """

    snapshot_at: datetime
    volumes: tuple[Volume, ...]
    hard: Limit | None
    soft: Limit | None
    limits_problem: str | None = None
    cluster_id: str | None = None
    instance_id: str | None = None
    sequence: int | None = None
    applied: Mapping[str, str | int | float | None] | None = None
    joined: Mapping[int, datetime] = field(default_factory=dict, hash=False)
    replaces: tuple[str, int] | None = None
    appended_at: datetime | None = field(default=None, compare=False)
    signer: str | None = field(default=None, compare=False)
    certificate: str | None = field(default=None, compare=False)
    listed: frozenset[int] | None = None
    size_bytes: int = field(default=0, compare=False)

    @cached_property
    def votes(self) -> Votes:
        """The votes of the volumes that are over their soft limit."""
        return sorted_votes(volume.vote() for volume in self.volumes)

    @cached_property
    def votes_away(self) -> Votes:
        """The same for an inactive broker: a volume that was latched when it went offline counts, too."""
        if all(volume.status is not _OFFLINE for volume in self.volumes):
            return self.votes
        return sorted_votes(volume.vote(away=True) for volume in self.volumes)

    @property
    def observed_at(self) -> datetime:
        """When its figures were observed, at the latest: a clock that is ahead must not make them younger."""
        return self.snapshot_at if self.appended_at is None else min(self.snapshot_at, self.appended_at)

    def dated_at(self, staleness: timedelta) -> datetime:
        """Return the time that its freshness is judged by: its own, as far as that can be.

        A record that was stored more than ``staleness`` before its own time is by a clock that was ahead.
        When its time has come at last, its figures are as old as its storage: it must not be fresh again.
        """
        stored_at = self.appended_at
        if stored_at is None or self.snapshot_at - stored_at <= staleness:
            return self.snapshot_at
        return stored_at

    def votes_after(self, age: timedelta) -> Votes | None:
        """Return the worst that its votes can have become at that age; None where a volume has no bound."""
        if not self.is_bounded:
            return None
        soft_after, _ = self.reaches_after
        if soft_after is None or age < soft_after:
            return self.votes
        return sorted_votes(vote_after(volume, age) for volume in self.volumes if volume.votes)

    @cached_property
    def is_bounded(self) -> bool:
        """Whether each voting volume has a bound on how fast it fills; one short of inodes has none."""
        return all(
            volume.fill_ceiling_bytes_per_second is not None and not volume.is_short_of_inodes
            for volume in self.volumes
            if volume.votes
        )

    @cached_property
    def reaches_after(self) -> tuple[timedelta | None, timedelta | None]:
        """The ages at which the first volume can be over its soft and at its hard limit; None for never."""
        ages = [reaches_after(volume) for volume in self.volumes if volume.votes]
        soft = min((soft for soft, _ in ages if soft is not None), default=None)
        return soft, min((hard for _, hard in ages if hard is not None), default=None)

    @cached_property
    def invalid_limit(self) -> str | None:
        """Why some limit of the record can't be judged; None where all can."""
        if self.limits_problem is not None:
            return self.limits_problem
        for volume in self.volumes:
            if volume.limits_problem is not None:
                return f"volume {volume.name}: {volume.limits_problem}"
        return None

    @cached_property
    def failed_volumes(self) -> tuple[Volume, ...]:
        """The data volumes whose owner can't read them."""
        return tuple(v for v in self.volumes if v.status is VolumeStatus.FAILED and v.role is VolumeRole.DATA)
