"""A look at the cluster that lasts: its display while the topic is read again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kquota.cli import cluster_look
from kquota.cli.cluster_look import ClusterLook
from kquota.formats.record_verifier import ReplayGuard
from kquota.formats.records import TopicKind, TopicRecord
from kquota.guard import kafka_state
from kquota.kafka.brokers import BrokerList
from kquota.kafka.topic_records import CaughtUp, ReaderEvent, TopicRestarted
from kquota.policy.timestamps import format_utc
from kquota.trust.signer import FileSigner
from kquota.trust.signing import RecordSigner
from tests.unit.guard.configured import settings_in
from tests.unit.trust.issuing import Authority
from tests.unit.wording import say

MINUTE = timedelta(minutes=1)


def hold(action: str) -> TopicRecord:
    until = format_utc(datetime.now(UTC) + 10 * MINUTE)
    value = {"Action": action, "Until": until, "Reason": "a test", "Actor": "alice"}
    return record(b"hold", value)


def usage(free: int, age: timedelta = timedelta(0)) -> TopicRecord:
    return record(
        b"1",
        {
            "SnapshotAt": format_utc(datetime.now(UTC) - age),
            "HardLimit": {"type": "MinFreeBytes", "level": 10},
            "SoftLimit": {"type": "MinFreeBytes", "level": 20},
            "Volumes": [
                {
                    "VolumeName": "/dev/sda1",
                    "Capacity": 100,
                    "Consumed": 100 - free,
                    "Topics": ["orders"],
                    "TopicsComplete": True,
                }
            ],
        },
    )


def record(key: bytes, value: dict[str, Any] | None) -> TopicRecord:
    appended_ms = round(datetime.now(UTC).timestamp() * 1000)
    topic = TopicKind.USAGE if key.isdigit() else TopicKind.ORDERS
    return TopicRecord(key, None if value is None else json.dumps(value).encode(), appended_ms, topic=topic)


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
    assert shown.after(usage(50), hold("pause"), CaughtUp(1), CaughtUp(1, TopicKind.ORDERS)) == "PAUSE"
    created = TopicRestarted("id", "the topic was deleted and created again", topic=TopicKind.ORDERS)
    assert shown.after(created, CaughtUp(0, TopicKind.ORDERS)) == "PAUSE", "as the agents have it"


def test_an_order_in_the_backlog_of_a_shortened_log_is_not_in_force_before_the_end(shown: Shown) -> None:
    assert shown.after(usage(50), CaughtUp(1), CaughtUp(0, TopicKind.ORDERS)) == "OPEN"
    cut = TopicRestarted("id", "the offset is out of range", same_topic=True, topic=TopicKind.ORDERS)
    assert shown.after(cut, hold("pause")) == "OPEN"
    assert shown.after(record(b"hold", None), CaughtUp(2, TopicKind.ORDERS)) == "OPEN"


def test_an_order_that_a_shortened_log_has_lost_does_not_count(shown: Shown) -> None:
    assert shown.after(usage(50), hold("pause"), CaughtUp(1), CaughtUp(1, TopicKind.ORDERS)) == "PAUSE"
    cut = TopicRestarted("id", "the offset is out of range", same_topic=True, topic=TopicKind.ORDERS)
    assert shown.after(cut, CaughtUp(0, TopicKind.ORDERS)) == "OPEN"


@pytest.mark.accepts("G25")
def test_a_look_lets_the_reports_count_that_agents_let_count(tmp_path: Path) -> None:
    with closing(ClusterLook(settings_in(tmp_path))) as look:
        shown = Shown(look)
        listed = json.loads(usage(50).value or b"") | {"Listed": [3]}
        full = json.loads(usage(5).value or b"")
        assert shown.after(usage(50), record(b"3", full), CaughtUp(1)) == "PAUSE", "no agent names any"
        assert shown.after(record(b"1", listed), record(b"3", None), record(b"7", full)) == "OPEN"
        assert shown.after(record(b"3", full)) == "PAUSE"
        counts = {one["broker_id"]: one["counts"] for one in look.document()["brokers"]}
        assert counts == {1: True, 3: True, 7: False}
        (warning,) = look.document()["warnings"]
        assert warning.startswith("the report of broker 7 does not count")


@pytest.mark.parametrize(
    ("scope", "topic", "said"),
    [
        ("volume", "orders", f"Topic orders: PAUSE: {say('over-hard', volume='/dev/sda1', broker=1)}"),
        ("volume", "visits", "Topic visits: OPEN: no volume that is over its soft limit holds a partition"),
        ("cluster", "visits", f"Topic visits: PAUSE: {say('over-hard', volume='/dev/sda1', broker=1)}"),
    ],
)
def test_a_topic_is_explained_by_the_same_look_as_the_cluster(
    tmp_path: Path, scope: str, topic: str, said: str
) -> None:
    with closing(ClusterLook(settings_in(tmp_path, scope=scope))) as look:
        look.put(BrokerList(frozenset({1}), "c", 0.0))
        look.put(usage(5))
        look.put(CaughtUp(1))
        look.take(0)
        assert look.document(topic=topic)["topic_sentence"].startswith(said)
        assert "topic_sentence" not in look.document(12)
        of_all = "PAUSE for 1 of 12 topics: " if scope == "volume" else "PAUSE: "
        assert look.document(12)["sentence"].startswith(of_all)


def test_a_look_ends_whatever_comes_and_leaves_the_rest_to_the_next(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_state, "MAX_EVENTS_A_CYCLE", 10)
    monkeypatch.setattr(cluster_look, "_TAKE_SECONDS", 0.0)
    states = [shown.after(*(usage(50) for _ in range(25)), CaughtUp(25)), shown.after(), shown.after()]
    assert states == ["PAUSE", "PAUSE", "OPEN"], "it is known once all is read"
    monkeypatch.setattr(cluster_look, "_TAKE_SECONDS", 60.0)
    assert shown.after(*(usage(50) for _ in range(25)), usage(15)) == "THROTTLE", "one call reads all it can"


def test_who_signed_is_shown_and_what_was_refused(tmp_path: Path) -> None:
    always = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
    files = Authority(tmp_path, valid=always).issue("kquota://*/agent/1", valid=always)
    signing = {"mode": "accept", "ca_file": str(files.authorities), "key_file": str(files.key)}
    signing["certificate_file"] = str(files.certificate)
    record_signer = RecordSigner(FileSigner(files), "__kquota_volume_usage", ReplayGuard())
    look = ClusterLook(settings_in(tmp_path, signing=signing))
    shown, unsigned = Shown(look), usage(50)
    try:
        assert shown.after(unsigned, CaughtUp(1)) == "OPEN"
        assert look.document()["signing"] == "accept"
        assert [broker["signed"] for broker in look.document()["brokers"]] == [False]
        value = usage(15).value
        headers = tuple(record_signer.headers(b"1", value, "c", 1))
        signed = TopicRecord(b"1", value, headers=headers)
        assert shown.after(signed) == "THROTTLE"
        assert [broker["signed"] for broker in look.document()["brokers"]] == [True]
        assert look.problems == ()
        assert shown.after(unsigned._replace(headers=headers, appended_ms=None)) == "THROTTLE"
        assert look.problems == (say("refused-wrong_signature", key=1),)
        assert shown.after(unsigned) == "OPEN"
        assert look.problems == ()
    finally:
        look.close()
