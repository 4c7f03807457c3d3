"""The usage record: what one broker says about its volumes (value of the usage topic).

The message is the one of the Strimzi proposal, with optional fields of ours (see
``schemas/usage.schema.json``). Readers ignore what they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import cast

from kquota.core.limits import MAX_BYTES, InvalidLimit, Limit, LimitPair, exact_number, json_number
from kquota.core.strict_json import MAX_TEXT, InvalidJson, ParsedJson, parse_json, printable
from kquota.core.timestamps import InvalidTimestamp, format_utc, parse_utc

SCHEMA_VERSION = 1
MAX_VOLUMES = 4096
MAX_APPLIED_KEYS = 32


class MalformedRecord(ValueError):
    """A value that is no usage record; the text says which key, which value and what is allowed."""


class VolumeStatus(StrEnum):
    """What the owner knows about a volume."""

    OK = "ok"
    OFFLINE = "offline"  # the broker itself has taken its log dirs offline: no vote
    FAILED = "failed"  # missing, hung or unreadable while in use: the broker is undetermined


class VolumeRole(StrEnum):
    """What Kafka keeps on a volume."""

    DATA = "data"
    METADATA = "metadata"  # only the KRaft log: alerted, but pausing producers can't free it


@dataclass(frozen=True, slots=True)
class Volume:
    """One volume in a usage record.

    ``limits`` are those that hold here: the volume's own where it has them, else the record's; None
    where they can't be judged, and ``limits_problem`` says why. ``own_hard`` and ``own_soft`` are the
    volume's own, for writing the record.
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

    @property
    def votes(self) -> bool:
        """Whether the volume has a say in the cluster's decision."""
        return self.role is VolumeRole.DATA and self.status is not VolumeStatus.OFFLINE

    def measured_headroom(self) -> Fraction | None:
        """Return the headroom by the figures alone, or None without limits to judge them by."""
        if self.limits is None:
            return None
        return self.limits.bounds(self.capacity_bytes).headroom(self.consumed_bytes)

    def headroom(self) -> Fraction | None:
        """Return the headroom that counts: 0 where latched; None where the volume can't be judged."""
        if self.latched:
            return Fraction(0)
        return self.measured_headroom()


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """A broker's usage record. ``hard`` and ``soft`` are None where the record's own can't be judged."""

    snapshot_at: datetime
    volumes: tuple[Volume, ...]
    hard: Limit | None
    soft: Limit | None
    limits_problem: str | None = None
    cluster_id: str | None = None
    instance_id: str | None = None
    sequence: int | None = None
    applied: Mapping[str, str | int | float | None] | None = None

    @property
    def invalid_limit(self) -> str | None:
        """Why some limit of the record can't be judged; None where all can."""
        if self.limits_problem is not None:
            return self.limits_problem
        for volume in self.volumes:
            if volume.limits_problem is not None:
                return f"volume {volume.name}: {volume.limits_problem}"
        return None

    @property
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
    record = _object(document, "the value")
    try:
        snapshot_at = parse_utc(_required(record, "SnapshotAt"))
    except InvalidTimestamp as error:
        raise MalformedRecord(f"SnapshotAt: {error}") from None
    hard, hard_problem = _limit(_object(_required(record, "HardLimit"), "HardLimit"), "HardLimit")
    soft, soft_problem = _limit(_object(_required(record, "SoftLimit"), "SoftLimit"), "SoftLimit")
    problem = hard_problem or soft_problem
    if hard is not None and soft is not None:
        problem = _pair(soft, hard)[1]
    entries = _required(record, "Volumes")
    if not isinstance(entries, (list, tuple)) or not 1 <= len(entries) <= MAX_VOLUMES:
        raise MalformedRecord(f"Volumes: must be a list of 1 to {MAX_VOLUMES} volumes")
    volumes = tuple(_volume(entry, index, hard, soft) for index, entry in enumerate(entries))
    names = {volume.name for volume in volumes}
    if len(names) != len(volumes):
        raise MalformedRecord("Volumes: two volumes have the same VolumeName")
    return UsageRecord(
        snapshot_at=snapshot_at,
        volumes=volumes,
        hard=hard,
        soft=soft,
        limits_problem=problem,
        cluster_id=_optional_text(record, "ClusterId"),
        instance_id=_optional_text(record, "InstanceId"),
        sequence=_sequence(record),
        applied=_applied(record),
    )


def usage_to_document(
    record: UsageRecord, *, applied: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Return the record's JSON form. Its limits must be valid: we publish nothing that we would refuse."""
    if record.hard is None or record.soft is None:
        raise ValueError("a record without limits can't be published")
    document: dict[str, object] = {
        "SchemaVersion": SCHEMA_VERSION,
        "SnapshotAt": format_utc(record.snapshot_at),
    }
    if record.cluster_id is not None:
        document["ClusterId"] = record.cluster_id
    if record.instance_id is not None:
        document["InstanceId"] = record.instance_id
    if record.sequence is not None:
        document["Sequence"] = record.sequence
    document["HardLimit"] = record.hard.to_document()
    document["SoftLimit"] = record.soft.to_document()
    document["Volumes"] = [_volume_document(volume) for volume in record.volumes]
    if applied is not None:
        document["Applied"] = dict(applied)
    return document


def _volume_document(volume: Volume) -> dict[str, object]:
    entry: dict[str, object] = {
        "VolumeName": volume.name,
        "Capacity": volume.capacity_bytes,
        "Consumed": volume.consumed_bytes,
    }
    if volume.volume_id is not None:
        entry["VolumeId"] = volume.volume_id
    if volume.log_dirs:
        entry["LogDirs"] = list(volume.log_dirs)
    if volume.mount_point is not None:
        entry["MountPoint"] = volume.mount_point
    if volume.own_hard is not None:
        entry["HardLimit"] = volume.own_hard.to_document()
    if volume.own_soft is not None:
        entry["SoftLimit"] = volume.own_soft.to_document()
    entry["Status"] = volume.status.value
    if volume.role is not VolumeRole.DATA:
        entry["Role"] = volume.role.value
    if volume.latched:
        entry["Latched"] = "HARD"
    return entry


def _volume(entry: object, index: int, hard: Limit | None, soft: Limit | None) -> Volume:
    where = f"Volumes[{index}]"
    fields = _object(entry, where)
    name = _required(fields, "VolumeName", where)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_TEXT or not name.isprintable():
        raise MalformedRecord(f"{where}.VolumeName: must be a text of 1 to {MAX_TEXT} printable characters")
    capacity = _size(_required(fields, "Capacity", where), f"{where}.Capacity")
    consumed = _size(_required(fields, "Consumed", where), f"{where}.Consumed")
    if consumed > capacity:
        raise MalformedRecord(f"{where}.Consumed: {consumed} is more than the capacity, {capacity}")
    own_hard, own_soft, problem = None, None, None
    if fields.get("HardLimit") is not None:
        own_hard, problem = _limit(_object(fields["HardLimit"], f"{where}.HardLimit"), "HardLimit")
    if fields.get("SoftLimit") is not None:
        own_soft, soft_problem = _limit(_object(fields["SoftLimit"], f"{where}.SoftLimit"), "SoftLimit")
        problem = problem or soft_problem
    limits = None
    if problem is None:
        effective_hard, effective_soft = own_hard or hard, own_soft or soft
        if effective_hard is not None and effective_soft is not None:
            limits, problem = _pair(effective_soft, effective_hard)
    status, latched = _status(fields, where), _latched(fields, where)
    return Volume(
        name=name,
        capacity_bytes=capacity,
        consumed_bytes=consumed,
        limits=limits,
        limits_problem=problem,
        volume_id=_optional_text(fields, "VolumeId"),
        log_dirs=_log_dirs(fields),
        mount_point=_optional_text(fields, "MountPoint"),
        status=status,
        role=VolumeRole.METADATA if fields.get("Role") == VolumeRole.METADATA.value else VolumeRole.DATA,
        latched=latched,
        own_hard=own_hard,
        own_soft=own_soft,
    )


def _status(fields: Mapping[str, object], where: str) -> VolumeStatus:
    value = fields.get("Status")
    if value is None:
        return VolumeStatus.OK
    if not isinstance(value, str):
        raise MalformedRecord(f"{where}.Status: must be one of {', '.join(VolumeStatus)}")
    # A status of a newer version: whatever it means, it is not "fine".
    return VolumeStatus(value) if value in set(VolumeStatus) else VolumeStatus.FAILED


def _latched(fields: Mapping[str, object], where: str) -> bool:
    value = fields.get("Latched")
    if value is None:
        return False
    if not isinstance(value, str):
        raise MalformedRecord(f'{where}.Latched: must be absent or "HARD"')
    return True  # a latch of a newer version holds, too


def _limit(document: Mapping[str, object], where: str) -> tuple[Limit | None, str | None]:
    type_name, level = document.get("type"), document.get("level")
    if not isinstance(type_name, str):
        raise MalformedRecord(f"{where}.type: must be a text")
    if isinstance(level, bool) or not isinstance(level, (int, float, Decimal)):
        raise MalformedRecord(f"{where}.level: must be a number")
    try:
        return Limit.parse(document), None
    except InvalidLimit as error:
        return None, f"{where}: {error}"


def _pair(soft: Limit, hard: Limit) -> tuple[LimitPair | None, str | None]:
    try:
        return LimitPair(soft, hard), None
    except InvalidLimit as error:
        return None, str(error)


def _object(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise MalformedRecord(f"{where}: must be a JSON object")
    return cast("Mapping[str, object]", value)


def _required(fields: Mapping[str, object], key: str, where: str = "") -> object:
    if key not in fields:
        raise MalformedRecord(f"{where + '.' if where else ''}{key} is missing")
    return fields[key]


def _size(value: object, where: str) -> int:
    number = exact_number(value)
    if number is None or number.denominator != 1 or not 0 <= number <= MAX_BYTES:
        raise MalformedRecord(f"{where}: must be a whole number of bytes between 0 and {MAX_BYTES}")
    return number.numerator


def _sequence(record: Mapping[str, object]) -> int | None:
    value = record.get("Sequence")
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_BYTES else None
    )


def _optional_text(fields: Mapping[str, object], key: str) -> str | None:
    value = fields.get(key)
    return printable(value) if isinstance(value, str) else None


def _applied(record: Mapping[str, object]) -> Mapping[str, str | int | float | None] | None:
    """Return what the plug-in applies, fit to print and to be written as JSON; what is nested is dropped."""
    document = record.get("Applied")
    if not isinstance(document, dict):
        return None
    applied: dict[str, str | int | float | None] = {}
    for key, value in list(document.items())[:MAX_APPLIED_KEYS]:
        if value is None or isinstance(value, bool):
            applied[printable(key)] = value
        elif isinstance(value, str):
            applied[printable(key)] = printable(value)
        elif (number := exact_number(value)) is not None:
            applied[printable(key)] = json_number(number)
    return applied


def _log_dirs(fields: Mapping[str, object]) -> tuple[str, ...]:
    value = fields.get("LogDirs")
    entries: Sequence[object] = value if isinstance(value, list) else ()
    return tuple(printable(entry) for entry in entries[:64] if isinstance(entry, str))
