"""One broker with its producers and the thread that asks how much has landed."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Self

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from bench.figures import Case
from bench.landed import Landed, Sample
from bench.loads import RECORD_BYTES, JavaLoadClass, Load, LoadResults, topics
from bench.systems import System
from testbed.loopback.clients import admin_client

_SAMPLE_SECONDS = 0.1
_TIMEOUT_SECONDS = 30.0


class Lane:
    """Topics, producers and samples of one system, for one case; a context manager.

    The topics are made when the block begins and deleted when it ends, so that no case inherits a disk.
    """

    def __init__(self, system: System, case: Case, rate_bytes: float, java: JavaLoadClass) -> None:
        self.system = system
        self.case = case
        self.results: LoadResults | None = None
        self._rate_bytes, self._java = rate_bytes, java
        self._topics = topics(case.connections)
        self._admin: AdminClient = admin_client(system.cluster.client_configuration())
        self._samples: list[Sample] = []
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._sample, name=f"samples of {system.name}", daemon=True)
        self._load: Load | None = None

    def __enter__(self) -> Self:
        _wait(self._admin.create_topics([NewTopic(name, 1, 1) for name in self._topics]))
        # A log of its own for each load: its messages go there.
        log_path = self.system.cluster.path / f"load-{time.monotonic_ns()}.log"
        self._load = Load(
            self.system.cluster,
            self.case.client,
            self.case.connections,
            self.case.delivery,
            self._rate_bytes,
            self._java,
            log_path,
        )
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        _wait(self._admin.delete_topics(list(self._topics)))

    def stop(self) -> None:
        """End producers and samples."""
        if self._load is not None:
            self.results, self._load = self._load.stop(), None
            self._ended.set()
            self._thread.join()

    def landed(self) -> Landed:
        """The bytes landed so far.

        Raises:
            Exception: the error that ended the sampling, if any.
        """
        if self._failure is not None:
            raise self._failure
        return Landed(self._samples[:])

    def wait_until_flowing(self) -> None:
        """Wait until every connection has landed something.

        Raises:
            TimeoutError: one has not after thirty seconds.
        """
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            samples = self.landed().samples
            if samples and min(samples[-1].bytes_by_connection) > 0:
                return
            time.sleep(_SAMPLE_SECONDS)
        raise TimeoutError(f"{self.system.name}: not every producer has landed something")

    def _sample(self) -> None:
        wanted = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in self._topics}  # type: ignore[no-untyped-call]
        next_at = time.monotonic()
        while not self._ended.wait(max(0.0, next_at - time.monotonic())):
            next_at = max(next_at + _SAMPLE_SECONDS, time.monotonic())
            asked_at = time.monotonic()
            try:
                answers = self._admin.list_offsets(wanted, request_timeout=_TIMEOUT_SECONDS)
                ends = {partition.topic: answer.result().offset for partition, answer in answers.items()}
            except KafkaException as error:
                if self._samples:
                    self._failure = error
                    return
                continue  # a new topic may have no leader for a moment
            counts = tuple(ends[topic] * RECORD_BYTES for topic in self._topics)
            self._samples.append(Sample(asked_at, time.monotonic(), counts))


def _wait(answers: Mapping[str, Future[None]]) -> None:
    for answer in answers.values():
        answer.result(_TIMEOUT_SECONDS)
