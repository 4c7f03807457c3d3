"""The JSON form of a usage record, the value in the usage topic (``schemas/usage.schema.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kquota.formats.strict_json import MAX_TEXT, InvalidJson, ParsedJson, parse_json
from kquota.formats.usage_fields import (
    MAX_LISTED_BROKERS,
    MalformedRecord,
    applied_field,
    ceiling_field,
    fill_field,
    joined_field,
    limit_field,
    limit_pair,
    listed_field,
    log_dirs_field,
    object_field,
    optional_text,
    replaces_field,
    required,
    sequence_field,
    size_field,
)
from kquota.policy.inodes import inodes_field
from kquota.policy.limits import MAX_BYTES, Limit, LimitPair
from kquota.policy.timestamps import InvalidTimestamp, format_utc, parse_utc
from kquota.policy.topic_scope import topics_field
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus

SCHEMA_VERSION = 1
MAX_VOLUMES = 4096
_STATUS_BY_NAME = {status.value: status for status in VolumeStatus}
# an enumeration's own names take longer to look up
_OK, _DATA = VolumeStatus.OK, VolumeRole.DATA


def parse_usage(raw: bytes | str | ParsedJson) -> UsageRecord:
    """Read a record's value.

    Raises:
        MalformedRecord: no JSON object of that form; nothing of it may be used.
    """
    try:
        document = parse_json(raw)
    except InvalidJson as error:
        raise MalformedRecord(f"not JSON: {error}") from None
    record = usage_from_document(document)
    return record if isinstance(raw, ParsedJson) else replace(record, size_bytes=len(raw))


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
        listed=listed_field(record),
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
            "Listed": None if record.listed is None else sorted(record.listed)[:MAX_LISTED_BROKERS],
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
            "Topics": None if volume.topics is None else list(volume.topics),
            "TopicsComplete": None if volume.topics is None else True,
            "Inodes": None if volume.inodes is None else volume.inodes.to_document(),
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
    fill, ceiling, topics = get("FillBytesPerSecond"), get("FillCeiling"), get("Topics")
    inodes = get("Inodes")
    if inodes is not None:
        inodes, inodes_problem = inodes_field(inodes)
        problem = problem or inodes_problem
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
        None if topics is None else topics_field(topics, get("TopicsComplete")),
        inodes,
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
