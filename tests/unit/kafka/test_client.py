"""A client that is built again when its credential files change, with a fake in place of librdkafka's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kquota.kafka.client import CREDENTIALS_LOOK_SECONDS, CREDENTIALS_RETRY_SECONDS, RotatingClient
from kquota.kafka.config import ClientProperties, ConfigurationError, Role
from kquota.kafka.errors import KafkaFailure, Kind

NO_THREAD = KafkaException(
    KafkaError(KafkaError._CRIT_SYS_RESOURCE, "Failed to create producer: Failed to create thread")
)

UNREADABLE = KafkaException(KafkaError(KafkaError._INVALID_ARG, "ssl.key.location failed: Permission denied"))


class Bench:
    """A RotatingClient on a clock of ours, whose builds end as the test decides."""

    def __init__(self, directory: Path) -> None:
        self.key = directory / "agent.key"
        self.key.write_text("a key", "utf-8")
        self.refusal: KafkaException | None = None
        self.builds = 0
        self.retired: list[int] = []
        self.now_seconds = 100.0
        self.reading = threading.Event()
        self.disk_answers: threading.Event | None = None

    def rotating(self) -> RotatingClient[int]:
        properties = ClientProperties(
            {"bootstrap.servers": "127.0.0.1:1", "ssl.key.location": str(self.key)}, node=1
        )
        return RotatingClient(
            self._build,
            properties,
            Role.PRODUCER,
            retire=self.retired.append,
            clock=lambda: self.now_seconds,
        )

    def repair_permissions(self) -> None:
        """As chmod does it, in another tick of the file system's clock than before."""
        before = self.key.stat().st_ctime_ns
        while self.key.stat().st_ctime_ns == before:
            self.key.chmod(0o640)

    def _build(self, _configuration: dict[str, Any]) -> int:
        self.builds += 1
        if self.disk_answers is not None:
            self.reading.set()
            assert self.disk_answers.wait(60)
        if self.refusal is not None:
            raise self.refusal
        return self.builds


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_that_a_client_can_not_get_a_thread_says_nothing_about_the_configuration(bench: Bench) -> None:
    bench.refusal = NO_THREAD
    with pytest.raises(OSError, match="Failed to create thread"):
        bench.rotating()
    bench.refusal = KafkaException(KafkaError(KafkaError._INVALID_ARG, "No such property"))
    with pytest.raises(ConfigurationError, match="No such property"):
        bench.rotating()


@pytest.mark.accepts("F22")
def test_credentials_that_a_change_of_permissions_mends_are_taken_up(bench: Bench) -> None:
    client = bench.rotating()
    first = client.current()
    bench.key.write_text("another key", "utf-8")
    bench.refusal = UNREADABLE
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    client.refresh()
    assert client.problem is not None
    assert (client.current(), client.generation) == (first, 1), "the one in use stays"
    bench.refusal = None
    bench.repair_permissions()
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    client.refresh()
    assert (client.problem, client.generation) == (None, 2)


@pytest.mark.accepts("F22")
def test_credentials_that_can_not_be_used_are_tried_again_and_not_in_a_hurry(bench: Bench) -> None:
    client = bench.rotating()
    bench.key.write_text("another key", "utf-8")
    bench.refusal = UNREADABLE
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    client.refresh()
    builds = bench.builds
    for _ in range(round(4 * CREDENTIALS_RETRY_SECONDS / CREDENTIALS_LOOK_SECONDS)):
        bench.now_seconds += CREDENTIALS_LOOK_SECONDS
        client.refresh()
    assert bench.builds == builds + 4
    bench.refusal = None  # the defect was not in the file, but for example in a directory above it
    bench.now_seconds += CREDENTIALS_RETRY_SECONDS
    client.refresh()
    assert (client.problem, client.generation) == (None, 2)
    bench.now_seconds += CREDENTIALS_RETRY_SECONDS
    client.refresh()
    assert client.generation == 2, "what is well is left alone"


@pytest.mark.accepts("F9")
def test_a_client_is_renewed_once_if_that_is_asked_for(bench: Bench) -> None:
    client = bench.rotating()
    client.renew()
    assert client.generation == 1, "not before its thread comes"
    client.refresh()
    assert (client.current(), client.generation, bench.retired) == (2, 2, [1])
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    client.refresh()
    assert client.generation == 2


@pytest.mark.accepts("F9")
def test_a_renewal_that_fails_is_tried_again(bench: Bench) -> None:
    client = bench.rotating()
    bench.refusal = NO_THREAD
    client.renew()
    client.refresh()
    assert (client.current(), bench.retired) == (1, []), "the one in use stays"
    bench.refusal = None
    bench.now_seconds += CREDENTIALS_RETRY_SECONDS
    client.refresh()
    assert (client.problem, client.generation) == (None, 2)


def test_a_problem_of_new_credentials_explains_no_failure_of_the_client_in_use(bench: Bench) -> None:
    client = bench.rotating()
    bench.key.write_text("another key", "utf-8")
    bench.refusal = UNREADABLE
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    client.refresh()
    late = KafkaFailure(Kind.TIMEOUT, "no answer")
    assert client.errors.explain(late) == late


@pytest.mark.accepts("F22")
@pytest.mark.parametrize(
    "refusal", [NO_THREAD, KafkaException(KafkaError(KafkaError._INVALID_ARG, "something else"))]
)
def test_a_first_client_that_comes_late_is_tried_again_whatever_is_in_its_way(
    bench: Bench, refusal: KafkaException
) -> None:
    bench.refusal = UNREADABLE
    client = bench.rotating()
    assert (client.current(), client.generation) == (None, 0)
    bench.refusal = refusal
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    client.refresh()  # in a thread that has to live on
    assert client.problem is not None
    assert refusal.args[0].str() in client.problem.sentence
    bench.refusal = None
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    client.refresh()
    assert (client.problem, client.generation) == (None, 1)


@pytest.mark.accepts("F22")
def test_nobody_waits_for_credential_files_that_are_being_read(bench: Bench) -> None:
    client = bench.rotating()
    first = client.current()
    bench.key.write_text("another key", "utf-8")
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    bench.disk_answers = threading.Event()
    reading = threading.Thread(target=client.refresh)
    asked: list[object] = []

    def ask() -> None:
        client.refresh()
        asked.extend((client.current(), client.generation, client.problem))

    asking = threading.Thread(target=ask, daemon=True)
    reading.start()
    try:
        assert bench.reading.wait(60)
        asking.start()
        asking.join(30)
        assert asked == [first, 1, None], "the one in use is to be had meanwhile"
    finally:
        bench.disk_answers.set()
        reading.join(60)
    assert client.generation == 2


def test_a_client_that_was_built_after_the_end_is_ended_too(bench: Bench) -> None:
    client = bench.rotating()
    bench.key.write_text("another key", "utf-8")
    bench.now_seconds += CREDENTIALS_LOOK_SECONDS
    bench.disk_answers = threading.Event()
    reading = threading.Thread(target=client.refresh)
    reading.start()
    try:
        assert bench.reading.wait(60)
        client.close()
    finally:
        bench.disk_answers.set()
        reading.join(60)
    assert client.current() is None
    assert bench.retired == [1, 2]
