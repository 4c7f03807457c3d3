"""Segments of partitions on the disks of a broker, and the settings by which Kafka deletes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kquota.formats.strict_json import printable

_AS_RETENTION = -2  # of local.retention.*: the same as retention.*
_POLICIES = ("compact", "delete")
_REMOVAL_DELAY_MS = 60_000


class PartitionState(StrEnum):
    """The kind of a partition's directory, by its name."""

    LOG = "log"
    FUTURE = "future"
    """A copy that a move between log dirs is filling."""
    STRAY = "stray"
    """Of no partition that this broker has: Kafka leaves it."""
    DELETED = "deleted"
    """Kafka removes it within its topic's ``file.delete.delay.ms``."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment. ``size_bytes`` is what the disk gets back with it: the blocks of its log and its indexes.

    ``log_bytes`` is the length of its log alone, which ``retention.bytes`` counts. ``newest_ms`` is its
    largest timestamp, in milliseconds since 1970, or the time of its last change where it has none.
    """

    base_offset: int
    size_bytes: int
    newest_ms: int
    is_active: bool
    log_bytes: int


@dataclass(frozen=True, slots=True)
class PartitionOnDisk:
    """One directory of a partition, with its segments by base offset; only the last one may be active.

    ``removed_bytes`` are files that Kafka has renamed to delete them after a while; ``other_bytes`` are all
    that belong to no segment. An offset is None where it is not known: the log starts at
    ``log_start_offset``, the replicas in sync have all below ``high_watermark``, and the remote storage has
    all up to ``uploaded_to_offset``.
    """

    topic: str
    partition: int
    log_dir: str
    state: PartitionState
    segments: tuple[Segment, ...]
    removed_bytes: int = 0
    other_bytes: int = 0
    log_start_offset: int | None = None
    high_watermark: int | None = None
    uploaded_to_offset: int | None = None

    @property
    def size_bytes(self) -> int:
        """All its bytes on the disk."""
        return sum(one.size_bytes for one in self.segments) + self.removed_bytes + self.other_bytes


class InvalidTopicSettings(ValueError):
    """Settings of a topic or broker that can't be read; names the setting and the allowed values."""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The settings of a topic that decide about its segments; None is unlimited.

    ``remote_storage`` is whether segments are copied to remote storage, before they may leave this disk by
    the local retention.
    """

    cleanup_delete: bool
    cleanup_compact: bool
    retention_ms: int | None
    retention_bytes: int | None
    segment_ms: int
    segment_bytes: int
    file_delete_delay_ms: int
    remote_storage: bool = False
    local_retention_ms: int | None = None
    local_retention_bytes: int | None = None
    min_compaction_lag_ms: int = 0

    @property
    def is_tiered(self) -> bool:
        """Whether the local retention counts. Kafka keeps compacted topics on the disk alone."""
        return self.remote_storage and not self.cleanup_compact

    @property
    def on_disk_ms(self) -> int | None:
        """The time after which records leave this disk."""
        return self.local_retention_ms if self.is_tiered else self.retention_ms

    @property
    def on_disk_bytes(self) -> int | None:
        """The size of a partition above which its oldest segments leave this disk."""
        return self.local_retention_bytes if self.is_tiered else self.retention_bytes


@dataclass(frozen=True, slots=True)
class BrokerRules:
    """When a broker deletes segments: it looks for them at this interval.

    ``checked_ms`` is a moment at which it looked, in milliseconds since 1970, or None if none is known. The
    directory of a replica that is gone stays for ``removal_delay_ms``, whatever its topic has for files.
    """

    retention_check_interval_ms: int
    checked_ms: int | None = None
    removal_delay_ms: int = _REMOVAL_DELAY_MS


def topic_rules(settings: Mapping[str, str], *, broker_has_remote_storage: bool = False) -> TopicRules:
    """Read a topic's settings in force, as the Admin client returns them.

    Raises:
        InvalidTopicSettings: one is missing, or has a value that Kafka does not allow.
    """
    policies = {part.strip() for part in _text(settings, "cleanup.policy").split(",")} - {""}
    if unknown := sorted(policies - set(_POLICIES)):
        found = printable(unknown[0])
        raise InvalidTopicSettings(f"cleanup.policy is {found}, allowed are {', '.join(_POLICIES)}, or both")
    retention_ms, retention_bytes = _bound(settings, "retention.ms"), _bound(settings, "retention.bytes")
    is_copied = _flag(settings, "remote.storage.enable") and not _flag(settings, "remote.log.copy.disable")
    return TopicRules(
        cleanup_delete="delete" in policies,
        cleanup_compact="compact" in policies,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        segment_ms=_number(settings, "segment.ms"),
        segment_bytes=_number(settings, "segment.bytes"),
        file_delete_delay_ms=_number(settings, "file.delete.delay.ms"),
        remote_storage=broker_has_remote_storage and is_copied,
        local_retention_ms=_local(settings, "local.retention.ms", retention_ms),
        local_retention_bytes=_local(settings, "local.retention.bytes", retention_bytes),
        min_compaction_lag_ms=_number(settings, "min.compaction.lag.ms", 0),
    )


def broker_rules(settings: Mapping[str, str]) -> BrokerRules:
    """Read a broker's settings in force, as the Admin client returns them.

    Raises:
        InvalidTopicSettings: the interval is missing, or one is no number.
    """
    return BrokerRules(
        _number(settings, "log.retention.check.interval.ms"),
        removal_delay_ms=_number(settings, "log.segment.delete.delay.ms", _REMOVAL_DELAY_MS),
    )


def _text(settings: Mapping[str, str], name: str) -> str:
    if (text := settings.get(name)) is None:
        raise InvalidTopicSettings(f"there is no setting {name}, which each topic and broker has")
    return text


def _integer(settings: Mapping[str, str], name: str, least: int, default: int | None = None) -> int:
    if default is not None and name not in settings:
        return default
    text = _text(settings, name)
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise InvalidTopicSettings(
            f"{name} is {printable(text)}, allowed is a whole number of at least {least}"
        )
    return number


def _number(settings: Mapping[str, str], name: str, default: int | None = None) -> int:
    return _integer(settings, name, 0, default)


def _bound(settings: Mapping[str, str], name: str) -> int | None:
    number = _integer(settings, name, -1)
    return None if number < 0 else number


def _local(settings: Mapping[str, str], name: str, retention: int | None) -> int | None:
    number = _integer(settings, name, _AS_RETENTION, _AS_RETENTION)
    if number == _AS_RETENTION:
        return retention
    return None if number < 0 else number


def _flag(settings: Mapping[str, str], name: str) -> bool:
    return settings.get(name, "false").strip().lower() == "true"
