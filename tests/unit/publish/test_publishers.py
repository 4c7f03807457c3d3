"""Publishers whose cluster is not there: real clients on a closed port."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.publish import publisher as publishing
from kquota.publish.delivery import DeliveryTally
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


class LateProducer:
    """A producer whose record under way arrives just as it is to be called back."""

    generation = 1

    def __init__(self, *_: object) -> None:
        self.tally = DeliveryTally()
        self.handed_over: list[bytes] = []
        self._reports: dict[bytes, Callable[..., Any]] = {}

    def produce(self, _key: bytes, value: bytes, _headers: object, on_delivery: Callable[..., Any]) -> None:
        self.handed_over.append(value)
        self._reports[value] = on_delivery

    def purge_unsent(self) -> None:
        self._reports.pop(b"A")(None, None)
        self._reports.pop(b"B")(KafkaError(KafkaError._PURGE_QUEUE), None)

    def delivered(self) -> None:
        self.tally.delivered()

    def poll(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.01))

    def close(self) -> None:
        """There is no client."""


def test_a_snapshot_called_back_in_place_of_one_that_was_delivered_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = LateProducer()
    monkeypatch.setattr(publishing, "TopicProducer", lambda *_: late)
    publisher = UsagePublisher(NOWHERE, "t")
    try:
        publisher.publish(b"1", b"A")
        publisher.publish(b"1", b"B")
        assert late.handed_over == [b"A", b"B", b"B"]
        assert (publisher.state().delivered, publisher.state().replaced) == (1, 0)
    finally:
        publisher.close()


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
