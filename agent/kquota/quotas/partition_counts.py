"""The leaders of partitions, for a broker that divides by them; and the leaders file
(``schemas/leaders.schema.json``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SCHEMA_VERSION = 1

PartitionCounts = Mapping[str, tuple[int, int]]
"""By topic: the partitions that a broker leads, and all that have a leader."""


def partition_counts(leaders: Mapping[str, Iterable[int | None]], broker_id: int) -> PartitionCounts:
    """Return the counts of this broker; ``leaders`` are those of each topic's partitions, None for none."""
    counts = {}
    for topic, of_topic in leaders.items():
        known = [leader for leader in of_topic if leader is not None]
        counts[topic] = known.count(broker_id), len(known)
    return counts


def leaders_document(
    counts: PartitionCounts, *, cluster_id: str, broker_id: int, boot_id: str, seen_uptime_ms: int
) -> dict[str, object]:
    """Return the leaders file's JSON form; ``seen_uptime_ms`` is when the cluster was asked, or before."""
    return {
        "schema_version": SCHEMA_VERSION,
        "cluster_id": cluster_id,
        "broker_id": broker_id,
        "boot_id": boot_id,
        "seen_uptime_ms": seen_uptime_ms,
        "topics": {topic: list(counts[topic]) for topic in sorted(counts)},
    }
