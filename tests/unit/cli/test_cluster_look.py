"""A look at the cluster that lasts: its display while the topic is read again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kquota.cli.cluster_look import ClusterLook
from kquota.core.timestamps import format_utc
from kquota.fold.records import CaughtUp, ReaderEvent, TopicRecord, TopicRestarted
from kquota.kafka.brokers import BrokerList
from tests.unit.daemon.configured import settings_in

MINUTE = timedelta(minutes=1)


def hold(action: str) -> TopicRecord:
    until = format_utc(datetime.now(UTC) + 10 * MINUTE)
    return record(b"hold", {"Action": action, "Until": until, "Reason": "a test", "Actor": "alice"})


def usage(free: int, age: timedelta = timedelta(0)) -> TopicRecord:
    return record(
        b"1",
        {
            "SnapshotAt": format_utc(datetime.now(UTC) - age),
            "HardLimit": {"type": "MinFreeBytes", "level": 10},
            "SoftLimit": {"type": "MinFreeBytes", "level": 20},
            "Volumes": [{"VolumeName": "/dev/sda1", "Capacity": 100, "Consumed": 100 - free}],
        },
    )


def record(key: bytes, value: dict[str, Any] | None) -> TopicRecord:
    return TopicRecord(0, 0, 0, key, None if value is None else json.dumps(value).encode())


class Shown:
    """A look, and what it shows after events of the reader."""

    def __init__(self, look: ClusterLook) -> None:
        self._look = look
        look.put(BrokerList(frozenset({1}), "c", 0.0))

    def after(self, *events: TopicRecord | ReaderEvent) -> str:
        for event in events:
            self._look.put(event)
        self._look.take(0)
        return str(self._look.document()["state"])


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    look = ClusterLook(settings_in(tmp_path))
    yield Shown(look)
    look.close()


@pytest.mark.accepts("F9")
@pytest.mark.parametrize("same_topic", [True, False])
def test_old_records_of_a_topic_that_is_read_again_are_not_shown_as_the_present(
    shown: Shown, same_topic: bool
) -> None:
    assert shown.after(usage(50), CaughtUp(1)) == "OPEN"
    again = TopicRestarted("id", "it is read again", same_topic=same_topic)
    assert shown.after(again, usage(5, 50 * MINUTE)) == "OPEN"
    assert shown.after(usage(15), CaughtUp(3)) == "THROTTLE"
    assert shown.after(usage(50)) == "OPEN", "what comes from now on counts at once"


def test_an_order_outlives_the_deletion_of_the_topic(shown: Shown) -> None:
    assert shown.after(usage(50), hold("pause"), CaughtUp(2)) == "PAUSE"
    created = TopicRestarted("id", "the topic was deleted and created again")
    assert shown.after(created, usage(50), CaughtUp(1)) == "PAUSE", "as the agents have it"


def test_an_order_in_the_backlog_of_a_shortened_log_is_not_in_force_before_the_end(shown: Shown) -> None:
    assert shown.after(usage(50), CaughtUp(1)) == "OPEN"
    cut = TopicRestarted("id", "the offset is out of range", same_topic=True)
    assert shown.after(cut, hold("pause")) == "OPEN"
    assert shown.after(record(b"hold", None), usage(50), CaughtUp(3)) == "OPEN"


def test_an_order_that_a_shortened_log_has_lost_does_not_count(shown: Shown) -> None:
    assert shown.after(usage(50), hold("pause"), CaughtUp(2)) == "PAUSE"
    cut = TopicRestarted("id", "the offset is out of range", same_topic=True)
    assert shown.after(cut, usage(50), CaughtUp(1)) == "OPEN"
