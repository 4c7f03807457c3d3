"""The topics on the volumes of a broker, and when their bytes leave: as one look at the segments found it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kquota.disks.segments import BrokerRules, PartitionOnDisk, TopicRules
from kquota.formats.sentences import amount
from kquota.policy.timestamps import format_utc
from kquota.retention.expiry import BUCKETS, LATER, Expiry, expiry_of

SCHEMA_VERSION = 1
HISTORY_TOPICS = 20
"""The topics of a volume that a history record names, the largest ones; the rest are one entry."""
FILE_TOPICS = 200
"""Likewise of the segments file."""
FILE_NAME = "segments.json"
"""The segments file, next to the decision file."""
SOON = "1h"
"""The bucket of `leaves within the hour`."""
IN_WORDS: Mapping[str, str] = {
    "10m": "10 minutes",
    "1h": "1 hour",
    "6h": "6 hours",
    "1d": "1 day",
    "3d": "3 days",
    "7d": "7 days",
    "30d": "30 days",
}


@dataclass(frozen=True, slots=True)
class TopicOnDisk:
    """The bytes of a topic on a volume, and of them those that leave within the hour.

    ``grown_bytes`` is the change since the look before, None where that is not known. ``retention_ms`` is the
    time after which its records leave this disk, None where no time ends them or it is not known.
    """

    name: str
    size_bytes: int
    soon_bytes: int
    grown_bytes: int | None
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class VolumeContents:
    """One volume: when its bytes leave, and all its topics, the largest first."""

    name: str
    volume_id: str
    expiry: Expiry
    topics: tuple[TopicOnDisk, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """The outcome of a look that ended at ``at``, ``span_seconds`` after the one before (None for none).

    ``notes`` are sentences about the figures that are not known, and why.
    """

    at: datetime
    span_seconds: float | None
    volumes: tuple[VolumeContents, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ContentsCount:
    """Adds up partitions, one after the other, and keeps none of them. Times are milliseconds since 1970."""

    broker_rules: BrokerRules
    _by_log_dir: dict[str, dict[str, Expiry]] = field(default_factory=dict)
    _retention_ms: dict[str, int] = field(default_factory=dict)

    def add(self, partition: PartitionOnDisk, rules: TopicRules | None, now_ms: int) -> None:
        """Take in a partition as it is now; without rules, its bytes count as unknown."""
        topics = self._by_log_dir.setdefault(partition.log_dir, {})
        found = expiry_of(partition, rules, self.broker_rules, now_ms)
        topics[partition.topic] = topics.get(partition.topic, Expiry()) + found
        if rules is not None and rules.cleanup_delete and rules.on_disk_ms is not None:
            self._retention_ms[partition.topic] = rules.on_disk_ms

    def volume(
        self, name: str, volume_id: str, log_dirs: Iterable[str], before: Mapping[str, int] | None
    ) -> VolumeContents:
        """Return the volume of these log dirs; ``before`` are the bytes of its topics at the look before."""
        topics: dict[str, Expiry] = {}
        for log_dir in log_dirs:
            for topic, expiry in self._by_log_dir.get(log_dir, {}).items():
                topics[topic] = topics.get(topic, Expiry()) + expiry
        found = [
            TopicOnDisk(
                topic,
                expiry.total_bytes,
                expiry.leaving_within(SOON),
                None if before is None else expiry.total_bytes - before.get(topic, 0),
                self._retention_ms.get(topic),
            )
            for topic, expiry in topics.items()
        ]
        found.sort(key=lambda topic: (-topic.size_bytes, topic.name))
        return VolumeContents(name, volume_id, sum(topics.values(), Expiry()), tuple(found))


def sizes_before(contents: Contents | None, volume_id: str) -> Mapping[str, int] | None:
    """Return the bytes of topics on a volume at an earlier look, by name; None where it was not looked at."""
    for volume in () if contents is None else contents.volumes:
        if volume.volume_id == volume_id:
            return {topic.name: topic.size_bytes for topic in volume.topics}
    return None


def topics_body(contents: Contents, most: int = HISTORY_TOPICS) -> dict[str, Any]:
    """Return the body of a history record of kind ``topics`` that names this many topics of a volume."""
    span_seconds = contents.span_seconds
    return {
        **({} if span_seconds is None else {"SpanSeconds": round(span_seconds, 3)}),
        "Volumes": [
            {
                "VolumeName": volume.name,
                "VolumeId": volume.volume_id,
                "Topics": [_topic(one) for one in volume.topics[:most]],
                "Others": {"Count": len(volume.topics[most:]), **_sizes(volume.topics[most:])},
            }
            for volume in contents.volumes
        ],
    }


def _topic(topic: TopicOnDisk) -> dict[str, Any]:
    retention_ms = topic.retention_ms
    kept = {} if retention_ms is None else {"RetentionSeconds": retention_ms / 1000}
    return {"Topic": topic.name, **_sizes([topic]), **kept}


def _sizes(topics: Sequence[TopicOnDisk]) -> dict[str, Any]:
    grown = [one.grown_bytes for one in topics if one.grown_bytes is not None]
    return {
        "Bytes": sum(one.size_bytes for one in topics),
        "LeavingSoonBytes": sum(one.soon_bytes for one in topics),
        **({"GrownBytes": sum(grown)} if topics and len(grown) == len(topics) else {}),
    }


def expiry_body(contents: Contents) -> dict[str, Any]:
    """Return the body of a history record of kind ``expiry``."""
    return {
        "Volumes": [
            {
                "VolumeName": volume.name,
                "VolumeId": volume.volume_id,
                "Leaving": dict(zip((*BUCKETS, LATER), volume.expiry.leaving_bytes, strict=True)),
                "NeverBytes": volume.expiry.never_bytes,
                "WaitsForUploadBytes": volume.expiry.waits_for_upload_bytes,
                "StrayBytes": volume.expiry.stray_bytes,
                "FutureBytes": volume.expiry.future_bytes,
                "DeletedBytes": volume.expiry.deleted_bytes,
                "UnknownBytes": volume.expiry.unknown_bytes,
            }
            for volume in contents.volumes
        ]
    }


def contents_document(contents: Contents) -> dict[str, Any]:
    """Return the segments file's JSON form (``schemas/segments.schema.json``)."""
    return {
        "SchemaVersion": SCHEMA_VERSION,
        "At": format_utc(contents.at),
        "Notes": list(contents.notes),
        "Topics": topics_body(contents, FILE_TOPICS),
        "Expiry": expiry_body(contents),
    }


def leaving_sentence(to_free_bytes: float, leaving: Mapping[str, int], deleted_bytes: int) -> str:
    """Return how much of the bytes to free leaves by itself, and until when.

    Args:
        to_free_bytes: the bytes that end a breach.
        leaving: the bytes that leave, by bucket.
        deleted_bytes: those of topics that are deleted already.
    """
    gone, some = deleted_bytes, None
    for bucket, words in IN_WORDS.items():
        gone += leaving[bucket]
        if gone >= to_free_bytes:
            return f"{amount(to_free_bytes)} to free; all of it leaves by itself within {words}"
        if gone and (some is None or bucket == SOON):
            some = f"{amount(gone)} of it leaves by itself within {words}"
    return f"{amount(to_free_bytes)} to free; {some or 'none of it leaves by itself'}"
