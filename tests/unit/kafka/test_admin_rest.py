"""When the Admin client is there: always in a small cluster, in a large one while questions are open. The
cluster is librdkafka's own stand-in.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing

import psutil
import pytest
from confluent_kafka import Producer

from kquota.kafka import admin as asking
from kquota.kafka.admin import AdminConnection
from kquota.kafka.config import ClientProperties, Role
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.producer import RecordProducer
from tests.integration.waiting import eventually

BROKERS = 9
TOPIC = "t"


class Clock:
    seconds = 1003.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClientProperties]:
    mock = Producer({"test.mock.num.brokers": BROKERS, "log_level": 0})
    brokers = mock.list_topics(timeout=60).brokers.values()
    mock.produce(TOPIC, b"value", partition=0)
    assert mock.flush(60) == 0
    yield ClientProperties({"bootstrap.servers": ",".join(f"{b.host}:{b.port}" for b in brokers)}, node=1)
    del mock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def admin(cluster: ClientProperties, clock: Clock) -> Iterator[AdminConnection]:
    with (
        closing(RecordProducer(cluster, Role.PRODUCER, {})) as producer,
        closing(AdminConnection(cluster, asking_through=producer.client, clock=clock)) as admin,
    ):
        yield admin


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this cluster count as a large one."""
    monkeypatch.setattr(asking, "BROKERS_WITHOUT_REST", BROKERS - 1)


def ask(admin: AdminConnection) -> None:
    assert admin.end_offset(TOPIC, 0).result() == 1


def list_brokers(admin: AdminConnection) -> None:
    found = admin.describe_cluster().result()
    assert not isinstance(found, KafkaFailure)
    assert len(found.broker_ids) == BROKERS


def is_there(admin: AdminConnection) -> bool:
    return admin._client.current() is not None


def test_in_a_large_cluster_the_admin_client_is_there_while_questions_are_open(
    large: None, admin: AdminConnection, clock: Clock
) -> None:
    ask(admin)
    list_brokers(admin)
    threads = _threads()
    admin.serve()
    assert is_there(admin), "it was just asked"
    clock.seconds += 2
    admin.serve()
    assert not is_there(admin)
    eventually(lambda: _threads() <= threads - BROKERS, "its threads have ended")
    list_brokers(admin)
    assert not is_there(admin), "another client asks for the list"
    ask(admin)
    assert is_there(admin)
    clock.seconds += 2
    admin.serve()
    ask(admin)


def test_an_open_question_keeps_the_admin_client(large: None, admin: AdminConnection, clock: Clock) -> None:
    list_brokers(admin)
    ask(admin)
    open_question: Future[None] = Future()
    admin._open.append(open_question)
    clock.seconds += 2
    admin.serve()
    assert is_there(admin)
    open_question.set_result(None)
    admin.serve()
    assert not is_there(admin)


def test_a_question_that_waits_for_its_answer_holds_up_no_other_and_keeps_the_client(
    large: None, admin: AdminConnection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_brokers(admin)
    asked, may_answer = threading.Event(), threading.Event()

    def slowly(*_: object, **__: object) -> None:
        asked.set()
        assert may_answer.wait(60)

    monkeypatch.setattr(asking, "_at_once", slowly)
    waiting = threading.Thread(target=admin.leaders)
    waiting.start()
    try:
        assert asked.wait(60)
        clock.seconds += 2
        admin.serve()
        assert is_there(admin)
        ask(admin)
    finally:
        may_answer.set()
        waiting.join(60)


def test_in_a_small_cluster_the_admin_client_stays(admin: AdminConnection, clock: Clock) -> None:
    list_brokers(admin)
    clock.seconds += 60
    admin.serve()
    assert is_there(admin)
    assert admin.pause_seconds(5) == 5


def test_in_a_large_cluster_questions_come_at_the_same_time_every_20_seconds(
    large: None, admin: AdminConnection, clock: Clock
) -> None:
    assert admin.pause_seconds(2) == 2, "the size is not known yet"
    list_brokers(admin)
    assert admin.pause_seconds(2) == admin.pause_seconds(10) == 17
    assert admin.pause_seconds(30) == 30
    assert admin.pause_seconds(1) == 1, "a failure is looked at soon"


def test_a_cluster_that_shrinks_has_the_admin_client_again(
    large: None, admin: AdminConnection, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_brokers(admin)
    clock.seconds += 2
    admin.serve()
    monkeypatch.setattr(asking, "BROKERS_WITHOUT_REST", BROKERS)
    list_brokers(admin)
    list_brokers(admin)
    assert is_there(admin)
    assert admin.pause_seconds(5) == 5


def test_a_client_that_ends_while_it_rests_does_not_come_back(
    large: None, admin: AdminConnection, clock: Clock
) -> None:
    list_brokers(admin)
    clock.seconds += 2
    admin.serve()
    admin.close()
    assert isinstance(admin.end_offset(TOPIC, 0).result(), KafkaFailure)
    assert not is_there(admin)


def _threads() -> int:
    return psutil.Process().num_threads()
