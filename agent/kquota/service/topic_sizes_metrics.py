"""Metrics of the last look at the segments: totals of each volume, because topics are too many for labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from kquota.retention.expiry import BUCKETS, LATER, Expiry
from kquota.retention.topic_sizes import Contents


def of_contents(contents: Contents | None) -> Iterator[Metric]:
    """Yield them; without a look there are no series."""
    volumes = () if contents is None else contents.volumes
    leaving = GaugeMetricFamily(
        "kquota_volume_leaving_bytes",
        "Bytes on the volume that Kafka deletes by retention, by the time until which they leave.",
        labels=("volume", "within"),
    )
    staying = GaugeMetricFamily(
        "kquota_volume_staying_bytes",
        "Other bytes on the volume: they never leave, wait for their upload to remote storage, or are of"
        " stray or deleted directories, copies by moves between log dirs, or topics with unknown settings.",
        labels=("volume", "why"),
    )
    topics = GaugeMetricFamily(
        "kquota_volume_topics", "Topics with a partition on the volume.", labels=("volume",)
    )
    for volume in volumes:
        for bucket, size in zip((*BUCKETS, LATER), volume.expiry.leaving_bytes, strict=True):
            leaving.add_metric((volume.name, bucket), size)
        for why, size in _staying(volume.expiry).items():
            staying.add_metric((volume.name, why), size)
        topics.add_metric((volume.name,), len(volume.topics))
    looked = GaugeMetricFamily(
        "kquota_segments_seen_timestamp_seconds", "When the last look at the segments of this broker ended."
    )
    if contents is not None:
        looked.add_metric((), contents.at.timestamp())
    yield from (leaving, staying, topics, looked)


def _staying(expiry: Expiry) -> Mapping[str, int]:
    return {
        "never": expiry.never_bytes,
        "upload": expiry.waits_for_upload_bytes,
        "stray": expiry.stray_bytes,
        "deleted": expiry.deleted_bytes,
        "future": expiry.future_bytes,
        "unknown": expiry.unknown_bytes,
    }
