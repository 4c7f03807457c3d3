"""A record is as old as its snapshot, whatever compaction and retention have done to its topic."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kquota.formats.records import TopicRecord, read_event
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties
from kquota.kafka.topics import usage_topic
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import FallbackAction, State
from kquota.policy.timestamps import format_utc
from kquota.policy.view import ClusterView
from testbed.loopback.clients import create_topic
from testbed.loopback.cluster import KafkaCluster
from tests.integration.kafka.conftest import AGENT, PATIENCE_SECONDS, Seen, read_all
from tests.integration.waiting import eventually

STALENESS = timedelta(seconds=60)
# Each is far shorter than the time that the records are there for.
EAGER = {
    "segment.ms": "100",
    "segment.bytes": str(1024 * 1024),
    "retention.ms": "100",
    "retention.bytes": "1000",
    "delete.retention.ms": "0",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}
NOW = datetime.now(UTC)


def usage(broker: int, free_percent: int, age_seconds: float) -> tuple[bytes, bytes]:
    document = {
        "SnapshotAt": format_utc(NOW - timedelta(seconds=age_seconds)),
        "HardLimit": {"type": "MinFreePercentage", "level": 10},
        "SoftLimit": {"type": "MinFreePercentage", "level": 20},
        "Volumes": [{"VolumeName": "/dev/sda", "Capacity": 100, "Consumed": 100 - free_percent}],
    }
    return str(broker).encode(), json.dumps(document).encode()


def decided(seen: Seen) -> dict[str, object]:
    """The decision of an agent that reads the topic now, as of one and the same moment."""
    view = ClusterView(timedelta(seconds=30))
    view.fold_all((read_event(record.key, record.value) for record in seen.of(TopicRecord)), NOW)
    settings = PolicySettings(FallbackAction.OPEN, STALENESS)
    decision = decide(view, Situation(frozenset({1, 2, 3, 4})), settings, NOW)
    return {
        "state": decision.state,
        "stale": {(entry.broker_id, entry.cause.value) for entry in decision.undetermined},
        "because of": [reason.broker_id for reason in decision.reasons],
    }


@pytest.mark.accepts("A20", "A21")
def test_freshness_is_the_same_before_and_after_compaction_and_retention(
    secured: KafkaCluster,
    properties: ClientProperties,
    admin: AdminConnection,
    super_admin: AdminClient,
    topic_name: str,
    closing: Callable[[Any], Any],
) -> None:
    create_topic(super_admin, topic_name, [[1, 2]], {**usage_topic().settings, **EAGER})
    writer = Producer({**secured.client_configuration(AGENT), "partitioner": "murmur2", "log_level": 0})

    def write(*records: tuple[bytes, bytes]) -> None:
        for key, value in records:
            writer.produce(topic_name, key=key, value=value)
        assert writer.flush(PATIENCE_SECONDS) == 0
        time.sleep(0.15)  # each in a segment of its own

    # Broker 3 reported nothing after the first segment: its record is the oldest that is left, and fresh.
    write(usage(2, 12, age_seconds=1), usage(3, 15, age_seconds=59), usage(4, 5, age_seconds=3600))
    # The last report of broker 2 is stale, although it is newer in the topic than that of broker 3.
    write(usage(2, 12, age_seconds=61))
    for number in range(20):
        write(usage(1, 30 + number, age_seconds=1))
    expected = {"state": State.PAUSE, "stale": {(2, "stale"), (4, "stale")}, "because of": [4, 3]}

    def compacted() -> Seen | None:
        reader, seen = read_all(properties, topic_name, admin, closing)
        reader.close()
        assert decided(seen) == expected
        return seen if len(seen.values) <= 6 else None

    found = eventually(compacted, "the log cleaner has compacted the topic", PATIENCE_SECONDS)
    assert found.latest.keys() == {b"1", b"2", b"3", b"4"}, "retention takes nothing"
