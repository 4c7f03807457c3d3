"""Publishers whose cluster is not there: real clients on a closed port."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.publish.history import HistoryPublisher
from kquota.publish.producer import TopicProducer
from kquota.publish.publisher import UsagePublisher

NOWHERE = ClientProperties({"bootstrap.servers": "127.0.0.1:1"}, node=1)


@pytest.fixture
def history() -> Iterator[HistoryPublisher]:
    publisher = HistoryPublisher(NOWHERE, "t", max_buffered_bytes=1000)
    yield publisher
    publisher.close()


def test_a_snapshot_that_cannot_be_sent_is_given_up_after_its_interval() -> None:
    failures: list[KafkaFailure] = []
    publisher = UsagePublisher(NOWHERE, "t", interval_seconds=1, on_failure=failures.append)
    try:
        for number in range(20):
            publisher.publish(b"1", b"%d" % number)
        publisher.publish(b"2", b"other")
        assert publisher.flush(60)
        state = publisher.state()
        assert not state.connected
        assert state.delivered == 0
        assert state.replaced == 19
        assert state.errors[Kind.UNREACHABLE] == sum(state.errors.values()) == 2
        assert state.last_failure is not None
        assert "127.0.0.1:1 cannot be reached" in state.last_failure.sentence
        assert failures
    finally:
        begun = time.monotonic()
        publisher.close()
    assert time.monotonic() - begun < 2
    publisher.publish(b"1", b"after the end")
    assert publisher.flush(0)


def test_a_closed_producer_drops_what_never_left_and_keeps_nobody_who_waits_for_it() -> None:
    reports: list[object] = []

    class Waiting:
        def take(self, error: object, _message: object) -> None:
            reports.append(error)

    waiting = Waiting()
    producer = TopicProducer(NOWHERE, Role.HISTORY, "t", {})
    for number in range(10):
        assert producer.produce(b"1", b"%d" % number, (), waiting.take) is None
    producer.close()
    kept = weakref.ref(waiting)
    del waiting
    gc.collect()
    assert kept() is None
    assert not reports


def test_history_drops_the_oldest_and_counts_them(history: HistoryPublisher) -> None:
    for number in range(50):
        history.publish(b"1", b"%03d" % number + b"." * 96)
    assert history.buffered() <= 10 or history.state().dropped == 0
    assert history.buffered() + history.state().dropped == 50
    assert not history.flush(0.05)


def test_absent_credential_files_are_said_and_do_not_end_anything() -> None:
    properties = ClientProperties(
        {
            "bootstrap.servers": "127.0.0.1:1",
            "security.protocol": "ssl",
            "ssl.certificate.location": "/nonexistent/agent.pem",
            "ssl.key.location": "/nonexistent/agent.key",
        },
        node=1,
    )
    publisher = UsagePublisher(properties, "t", interval_seconds=1)
    try:
        problem = publisher.credentials_problem()
        assert problem is not None
        assert problem.kind is Kind.AUTHENTICATION
        assert "ssl.certificate.location" in problem.sentence
        publisher.publish(b"1", b"{}")
        assert publisher.flush(60)
        assert publisher.state().errors[Kind.AUTHENTICATION] == 1
    finally:
        publisher.close()
