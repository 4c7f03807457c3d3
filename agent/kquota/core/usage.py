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
from kquota.core.limits import MAX_BYTES, Limit, LimitPair
from kquota.core.silence import reaches_after, vote_after
from kquota.core.strict_json import MAX_TEXT, InvalidJson, ParsedJson, parse_json
from kquota.core.timestamps import InvalidTimestamp, format_utc, parse_utc
from kquota.core.usage_fields import (
    MalformedRecord,
    applied_field,
    ceiling_field,
    fill_field,
    joined_field,
    limit_field,
    limit_pair,
    log_dirs_field,
    object_field,
    optional_text,
    replaces_field,
    required,
    sequence_field,
    size_field,
)
from kquota.core.votes import Vote, Votes, sorted_votes

SCHEMA_VERSION = 1
MAX_VOLUMES = 4096


class VolumeStatus(StrEnum):
    """The state of a volume, as its owner knows it."""

    OK = "ok"
    OFFLINE = "offline"  # the broker itself has taken its log dirs offline: no vote
    FAILED = "failed"  # missing, hung or unreadable while in use: the broker is undetermined


_STATUS_BY_NAME = {status.value: status for status in VolumeStatus}


class VolumeRole(StrEnum):
    """The kind of data that Kafka keeps on a volume."""

    DATA = "data"
    METADATA = "metadata"  # only the KRaft log: alerted, but pausing producers can't free it


# an enumeration's own names take longer to look up
_OK, _OFFLINE, _FAILED, _DATA = VolumeStatus.OK, VolumeStatus.OFFLINE, VolumeStatus.FAILED, VolumeRole.DATA


class Volume(NamedTuple):
    """One volume in a usage record; a tuple, because clusters have thousands and read them all the time.

    ``limits`` are those that hold here: the volume's own where it has them, else the record's; None
    if they can't be judged, and ``limits_problem`` has the reason. ``own_hard`` and ``own_soft`` are the
    volume's own, for writing the record. ``fill_bytes_per_second`` is how fast its owner sees it fill
    (:mod:`kquota.core.fill`), negative where it empties, None where that is not known;
    ``fill_ceiling_bytes_per_second`` is the most that it may fill while its owner is silent
    (:mod:`kquota.core.fill_ceiling`), None where the owner gives no bound.
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

    @property
    def votes(self) -> bool:
        """Whether the volume votes in the cluster's decision."""
        return self.role is _DATA and self.status is not _OFFLINE

    def headroom(self) -> Fraction | None:
        """Return the headroom that counts: 0 where latched; None where the volume can't be judged."""
        if self.latched:
            return Fraction(0)
        return None if self.limits is None else self.limits.headroom(self.capacity_bytes, self.consumed_bytes)

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

    def vote(self, *, away: bool = False) -> Vote | None:
        """Return the volume's vote in the decision; None if it has no vote, or nothing to vote for.

        ``away`` means that its broker is inactive: it no longer runs on without an offline volume, and a
        latch counts.
        """
        if not self.votes and not (away and self.latched and self.role is _DATA):
            return None
        if self.limits is None:
            return Vote.at_hard(self.name, by_latch=True) if self.latched else None
        left, of = self.limits.headroom_ratio(self.capacity_bytes, self.consumed_bytes)
        if self.latched or left == 0:
            # a failed volume with a capacity of 0 never had figures
            counts = self.latched or self.capacity_bytes > 0 or self.status is not _FAILED
            return Vote.at_hard(self.name, by_latch=left > 0) if counts else None
        # of a failed volume only a breach counts
        if left == of or self.status is _FAILED:
            return None
        return Vote.over_soft(left, of, self.name)


@dataclass(frozen=True)
class UsageRecord:
    """A broker's usage record. ``hard`` and ``soft`` are None where the record's own can't be judged.

    ``joined`` is, by broker, when its agent saw it become active, as long as that is within the join grace.
    ``replaces`` is another instance for the same broker that has ended, and the number of its last record.
    ``appended_at`` is when the topic took the record in, by the clock of the broker that leads it there.
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
        """Whether each voting volume has a bound on how fast it fills."""
        return all(v.fill_ceiling_bytes_per_second is not None for v in self.volumes if v.votes)

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


def parse_usage(raw: bytes | str | ParsedJson) -> UsageRecord:
    """Read a record's value.

    Raises:
        MalformedRecord: no JSON object of that form; nothing of it may be used.
    """
    try:
        document = parse_json(raw)
    except InvalidJson as error:
        raise MalformedRecord(f"not JSON: {error}") from None
    return usage_from_document(document)


def usage_from_document(document: object) -> UsageRecord:
    """Read a record from its parsed JSON (numbers int, Decimal or float). See :func:`parse_usage`."""
    record = object_field(document, "the value")
    try:
        snapshot_at = parse_utc(required(record, "SnapshotAt"))
    except InvalidTimestamp as error:
        raise MalformedRecord(f"SnapshotAt: {error}") from None
    hard, hard_problem = limit_field(object_field(required(record, "HardLimit"), "HardLimit"), "HardLimit")
    soft, soft_problem = limit_field(object_field(required(record, "SoftLimit"), "SoftLimit"), "SoftLimit")
    pair, problem = None, hard_problem or soft_problem
    if hard is not None and soft is not None:
        pair, problem = limit_pair(soft, hard)
    entries = required(record, "Volumes")
    if not isinstance(entries, (list, tuple)) or not 1 <= len(entries) <= MAX_VOLUMES:
        raise MalformedRecord(f"Volumes: must be a list of 1 to {MAX_VOLUMES} volumes")
    known = hard is not None and soft is not None
    common = _CommonLimits(hard, soft, pair, problem if known else None)
    volumes = tuple([_volume(entry, index, common) for index, entry in enumerate(entries)])
    names = {volume.name for volume in volumes}
    if len(names) != len(volumes):
        raise MalformedRecord("Volumes: two volumes have the same VolumeName")
    return UsageRecord(
        snapshot_at=snapshot_at,
        volumes=volumes,
        hard=hard,
        soft=soft,
        limits_problem=problem,
        cluster_id=optional_text(record.get("ClusterId")),
        instance_id=optional_text(record.get("InstanceId")),
        sequence=sequence_field(record),
        applied=applied_field(record),
        joined=joined_field(record),
        replaces=replaces_field(record),
    )


def usage_to_document(
    record: UsageRecord, *, applied: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Return the record's JSON form. Its limits must be valid: we publish nothing that we would refuse."""
    if record.hard is None or record.soft is None:
        raise ValueError("a record without limits can't be published")
    replaces = record.replaces
    return _without_nulls(
        {
            "SchemaVersion": SCHEMA_VERSION,
            "SnapshotAt": format_utc(record.snapshot_at),
            "ClusterId": record.cluster_id,
            "InstanceId": record.instance_id,
            "Sequence": record.sequence,
            "Replaces": None if replaces is None else {"Instance": replaces[0], "Sequence": replaces[1]},
            "HardLimit": record.hard.to_document(),
            "SoftLimit": record.soft.to_document(),
            "Volumes": [_volume_document(volume) for volume in record.volumes],
            "Applied": None if applied is None else dict(applied),
            "Joined": {str(broker): format_utc(at) for broker, at in sorted(record.joined.items())} or None,
        }
    )


def _volume_document(volume: Volume) -> dict[str, object]:
    return _without_nulls(
        {
            "VolumeName": volume.name,
            "Capacity": volume.capacity_bytes,
            "Consumed": volume.consumed_bytes,
            "VolumeId": volume.volume_id,
            "LogDirs": list(volume.log_dirs) or None,
            "MountPoint": volume.mount_point,
            "HardLimit": None if volume.own_hard is None else volume.own_hard.to_document(),
            "SoftLimit": None if volume.own_soft is None else volume.own_soft.to_document(),
            "Status": volume.status.value,
            "Role": None if volume.role is VolumeRole.DATA else volume.role.value,
            "Latched": "HARD" if volume.latched else None,
            "FillBytesPerSecond": volume.fill_bytes_per_second,
            "FillCeiling": volume.fill_ceiling_bytes_per_second,
        }
    )


def _without_nulls(document: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _CommonLimits:
    """The limits of a record, for the volumes that have none of their own."""

    hard: Limit | None
    soft: Limit | None
    pair: LimitPair | None
    problem_of_pair: str | None


def _volume(entry: object, index: int, common: _CommonLimits) -> Volume:
    """Read a volume. Clusters have thousands, several times a minute: the usual case comes first."""
    fields = entry if type(entry) is dict else object_field(entry, index)
    try:
        name, capacity, consumed = fields["VolumeName"], fields["Capacity"], fields["Consumed"]
    except KeyError as missing:
        raise MalformedRecord(f"Volumes[{index}].{missing.args[0]} is missing") from None
    if not isinstance(name, str) or not 0 < len(name) <= MAX_TEXT or not name.isprintable():
        raise MalformedRecord(
            f"Volumes[{index}].VolumeName: must be a text of 1 to {MAX_TEXT} printable characters"
        )
    if type(capacity) is not int or not 0 <= capacity <= MAX_BYTES:
        capacity = size_field(capacity, index, "Capacity")
    if type(consumed) is not int or not 0 <= consumed <= MAX_BYTES:
        consumed = size_field(consumed, index, "Consumed")
    if consumed > capacity:
        raise MalformedRecord(f"Volumes[{index}].Consumed: {consumed} is more than the capacity, {capacity}")
    get = fields.get
    if get("HardLimit") is None and get("SoftLimit") is None:
        own_hard, own_soft, limits, problem = None, None, common.pair, common.problem_of_pair
    else:
        own_hard, own_soft, limits, problem = _limits_of(fields, f"Volumes[{index}]", common)
    status, latched = get("Status"), get("Latched")
    fill, ceiling = get("FillBytesPerSecond"), get("FillCeiling")
    # by position: names cost as much as half of all the rest
    return Volume(
        name,
        capacity,
        consumed,
        limits,
        problem,
        optional_text(get("VolumeId")),
        log_dirs_field(get("LogDirs")),
        optional_text(get("MountPoint")),
        _OK if status == "ok" else _status(status, index),
        VolumeRole.METADATA if get("Role") == "metadata" else _DATA,
        False if latched is None else _latched(latched, index),
        own_hard,
        own_soft,
        None if fill is None else fill_field(fill),
        None if ceiling is None else ceiling_field(ceiling),
    )


def _limits_of(
    fields: Mapping[str, object], where: str, common: _CommonLimits
) -> tuple[Limit | None, Limit | None, LimitPair | None, str | None]:
    """Return a volume's own hard and soft limit, the pair that applies to it, and its problem, if any."""
    hard, soft = fields.get("HardLimit"), fields.get("SoftLimit")
    own_hard, own_soft, problem = None, None, None
    if hard is not None:
        own_hard, problem = limit_field(object_field(hard, f"{where}.HardLimit"), "HardLimit")
    if soft is not None:
        own_soft, soft_problem = limit_field(object_field(soft, f"{where}.SoftLimit"), "SoftLimit")
        problem = problem or soft_problem
    if problem is not None:
        return own_hard, own_soft, None, problem
    effective_hard, effective_soft = own_hard or common.hard, own_soft or common.soft
    if effective_hard is None or effective_soft is None:
        return own_hard, own_soft, None, None
    return own_hard, own_soft, *limit_pair(effective_soft, effective_hard)


def _status(value: object, index: int) -> VolumeStatus:
    if value is None:
        return _OK
    if not isinstance(value, str):
        raise MalformedRecord(f"Volumes[{index}].Status: must be one of {', '.join(VolumeStatus)}")
    # A status of a newer version: whatever it means, it is not "fine".
    return _STATUS_BY_NAME.get(value, VolumeStatus.FAILED)


def _latched(value: object, index: int) -> bool:
    if not isinstance(value, str):
        raise MalformedRecord(f'Volumes[{index}].Latched: must be absent or "HARD"')
    return True  # a latch of a newer version holds, too
