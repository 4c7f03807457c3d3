"""The threads that talk to Kafka live on after any failure: the end of one would go unnoticed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kquota.kafka.brokers import BrokerWatch
from kquota.kafka.config import ClientProperties
from kquota.kafka.producer import ProducerThread, RecordProducer
from kquota.kafka.topic_check import TopicWatch

NOWHERE = ClientProperties({"bootstrap.servers": "127.0.0.1:1"}, node=1)


class Mistaken:
    """Fails in an unexpected way, and signals when it is asked once more."""

    def __init__(self) -> None:
        self.asked = 0
        self.asked_again = threading.Event()

    def __call__(self, *_arguments: Any) -> None:
        self.asked += 1
        if self.asked > 1:
            self.asked_again.set()
        raise RuntimeError("a mistake")


@contextmanager
def closing(*parts: Any) -> Iterator[None]:
    try:
        yield
    finally:
        for part in parts:
            part.close()


def watch_of_brokers(mistaken: Mistaken, _patch: pytest.MonkeyPatch) -> Any:
    admin: Any = type("Admin", (), {"serve": mistaken})()
    watch = BrokerWatch(admin, lambda _event: None, brokers_interval_seconds=0.01)
    watch.start()
    return watch


def watch_of_topics(mistaken: Mistaken, _patch: pytest.MonkeyPatch) -> Any:
    check: Any = type("Check", (), {"look": mistaken})()
    watch = TopicWatch([check], lambda _verdict: None, retry_seconds=0.01)
    watch.start()
    return watch


def producer_thread(mistaken: Mistaken, patch: pytest.MonkeyPatch) -> Any:
    patch.setattr(RecordProducer, "poll", mistaken)
    return ProducerThread(NOWHERE)


@pytest.mark.parametrize("start", [watch_of_brokers, watch_of_topics, producer_thread])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mistake_ends_no_thread(
    start: Callable[[Mistaken, pytest.MonkeyPatch], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mistaken = Mistaken()
    with closing(start(mistaken, monkeypatch)):
        assert mistaken.asked_again.wait(10)
