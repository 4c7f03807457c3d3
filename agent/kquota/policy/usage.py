"""The usage record: one broker's report about its volumes (value of the usage topic).

The message is the one of the Strimzi proposal, with optional fields of ours (see
``schemas/usage.schema.json``). Readers ignore what they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from kquota.policy.limit_breaches import Votes, sorted_votes
from kquota.policy.limits import Limit
from kquota.policy.stale_growth_bound import reaches_after, vote_after
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus


@dataclass(frozen=True)
class UsageRecord:
    """A broker's usage record. ``hard`` and ``soft`` are None where the record's own can't be judged.

    ``joined`` is, by broker, when its agent saw it become active, as long as that is within the join grace.
    ``replaces`` is another instance for the same broker that has ended, and the number of its last record.
    ``appended_at`` is when the topic took the record in, by the clock of the broker that leads it there.
    ``signer`` has signed it, with the ``certificate`` of that fingerprint; None if it is not signed, or if
    signatures are not looked at.
    ``listed`` are inactive brokers that its agent has seen in the cluster's list, None if it names none
    (:mod:`kquota.policy.known_brokers`). ``size_bytes`` is the length of the value that it was read from.
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
        if all(volume.status is not VolumeStatus.OFFLINE for volume in self.volumes):
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
