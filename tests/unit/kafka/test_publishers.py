"""Publishers whose cluster is not there: real clients on a closed port."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kquota.kafka import producer as producing
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.delivery import DeliveryTally
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.history_producer import HistoryPublisher
from kquota.kafka.producer import ProducerThread, RecordProducer, TopicProducer
from kquota.kafka.publisher import UsagePublisher
from tests.integration.waiting import eventually

NOWHERE = ClientProperties({"bootstrap.servers": "127.0.0.1:1"}, node=1)


@pytest.fixture
def history() -> Iterator[HistoryPublisher]:
    with closing(ProducerThread(NOWHERE)) as producer_thread:
        yield HistoryPublisher(producer_thread, "t", max_buffered_bytes=1000)


def test_a_snapshot_that_cannot_be_sent_is_given_up_after_its_interval() -> None:
    failures: list[KafkaFailure] = []
    producer_thread = ProducerThread(NOWHERE, lifetime_seconds=1, on_failure=failures.append)
    publisher = UsagePublisher(producer_thread, "t")
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
        producer_thread.close()
    assert time.monotonic() - begun < 30, "it waits for no cluster"
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
    monkeypatch.setattr(producing, "TopicProducer", lambda *_: late)
    producer_thread = ProducerThread(NOWHERE)
    publisher = UsagePublisher(producer_thread, "t")
    try:
        publisher.publish(b"1", b"A")
        publisher.publish(b"1", b"B")
        assert late.handed_over == [b"A", b"B", b"B"]
        assert (publisher.state().delivered, publisher.state().replaced) == (1, 0)
    finally:
        producer_thread.close()


class SlowlyExplained(LateProducer):
    """A producer that loses its first record, and takes its time to give the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.known = threading.Event(), threading.Event()

    def lose_first(self) -> None:
        self._reports.pop(b"A")(KafkaError(KafkaError._MSG_TIMED_OUT), None)

    def failure(self, _error: KafkaError) -> KafkaFailure:
        self.asked.set()
        assert self.known.wait(60)
        return KafkaFailure(Kind.TIMEOUT, "it took too long")

    def failed(self, failure: KafkaFailure) -> None:
        self.tally.failed(failure)

    def report(self, _failure: KafkaFailure) -> None:
        """Report nothing."""

    def purge_unsent(self) -> None:
        """Nothing waits."""


@pytest.mark.parametrize("publisher_class", [UsagePublisher, HistoryPublisher])
def test_nobody_who_publishes_waits_for_the_explanation_of_a_loss(
    publisher_class: type[UsagePublisher | HistoryPublisher],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = SlowlyExplained()
    monkeypatch.setattr(producing, "TopicProducer", lambda *_: producer)
    producer_thread = ProducerThread(NOWHERE)
    publisher = publisher_class(producer_thread, "t")
    losing = threading.Thread(target=producer.lose_first)
    publishing_next = threading.Thread(target=publisher.publish, args=(b"1", b"B"))
    try:
        publisher.publish(b"1", b"A")
        eventually(lambda: producer.handed_over == [b"A"], "it is handed over")
        losing.start()
        assert producer.asked.wait(60)
        publishing_next.start()
        publishing_next.join(30)
        assert not publishing_next.is_alive()
    finally:
        producer.known.set()
        losing.join(60)
        publishing_next.join(60)
        producer_thread.close()
    assert publisher.state().errors[Kind.TIMEOUT] == 1


class UnknownTopic:
    """librdkafka's reaction to a topic that it knows to be missing: it does not even take the record."""

    def produce(self, *_: Any, **__: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC))


def test_nobody_who_publishes_waits_for_a_certificate_that_explains_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = RecordProducer(NOWHERE, Role.PRODUCER, {})
    producer = TopicProducer(client, "t")
    monkeypatch.setattr(producer._client, "current", UnknownTopic)
    monkeypatch.setattr(producer._client, "client_certificate", lambda: pytest.fail("a process is started"))
    try:
        failure = producer.produce(b"1", b"A", (), lambda *_: None)
        assert failure is not None
        assert (failure.kind, failure.topic) == (Kind.TOPIC_MISSING, "t")
    finally:
        monkeypatch.undo()
        client.close()


def test_a_closed_producer_drops_what_never_left_and_keeps_nobody_who_waits_for_it() -> None:
    reports: list[object] = []

    class Waiting:
        def take(self, error: object, _message: object) -> None:
            reports.append(error)

    waiting = Waiting()
    client = RecordProducer(NOWHERE, Role.PRODUCER, {})
    producer = TopicProducer(client, "t")
    for number in range(10):
        assert producer.produce(b"1", b"%d" % number, (), waiting.take) is None
    client.close()
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
    kept = {record.number for record in (*history._buffer, *history._under_way.values())}
    assert 50 in kept, "the newest is not among the dropped"
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
    producer_thread = ProducerThread(properties, lifetime_seconds=1)
    publisher = UsagePublisher(producer_thread, "t")
    try:
        problem = publisher.credentials_problem()
        assert problem is not None
        assert problem.kind is Kind.AUTHENTICATION
        assert "ssl.certificate.location" in problem.sentence
        publisher.publish(b"1", b"{}")
        assert publisher.flush(60)
        assert publisher.state().errors[Kind.AUTHENTICATION] == 1
    finally:
        producer_thread.close()
