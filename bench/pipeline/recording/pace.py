"""How much faster time passes in a recording, and Kafka's settings at that pace. Pure."""

from __future__ import annotations

HOUR_SECONDS = 1.0
"""An hour of the history takes this long: a week takes 168 s, 150 days take an hour."""
SCALE = 3600 / HOUR_SECONDS
"""A second of the recording stands for this many of the history."""
DAY_HOURS = 24


def milliseconds(hours: float) -> str:
    """Return hours of the history as Kafka's settings have them."""
    return str(max(round(hours * HOUR_SECONDS * 1000), 1))


BROKER_PROPERTIES = {
    # Five minutes; and a minute until files are removed.
    "log.retention.check.interval.ms": milliseconds(5 / 60),
    "log.segment.delete.delay.ms": milliseconds(1 / 60),
    "log.initial.task.delay.ms": "100",
    # At the true pace, 4 ms and 1 ms, the broker would do little else.
    "log.cleaner.backoff.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "num.partitions": "1",
}
TOPIC_SETTINGS = {
    "segment.bytes": str(2**20),  # the least that Kafka allows
    "file.delete.delay.ms": milliseconds(1 / 60),
    "delete.retention.ms": milliseconds(24),
    "min.cleanable.dirty.ratio": "0.5",
}
AGENT_SETTINGS = {
    "mode": "observe",
    "limits": {
        "soft": {"type": "MinFreePercentage", "level": 30},
        "hard": {"type": "MinFreePercentage", "level": 15},
    },
    "history_interval_seconds": 0.75 * HOUR_SECONDS,
    # It rests for this long after a look, so that there is a look in each hour.
    "segments": {"interval_seconds": 0.8 * HOUR_SECONDS, "files_per_second": 1_000_000},
    # They are on another broker: here they would be topics that do not keep the pace.
    "topics": {"create": False},
}
