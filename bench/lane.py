"""One broker with its producers, and how much they have landed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.figures import Case
from bench.landed import Landed
from bench.loads import JavaLoadClass, Load, LoadResults, topics
from bench.log_ends import LogEnds
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
        self._ends = LogEnds(system.cluster, self._topics, _SAMPLE_SECONDS)
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
        self._ends.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        _wait(self._admin.delete_topics(list(self._topics)))

    def stop(self) -> None:
        """End producers and samples."""
        if self._load is not None:
            self.results, self._load = self._load.stop(), None
            self._ends.close()

    def landed(self) -> Landed:
        """The bytes landed so far.

        Raises:
            KafkaException: the error that ended the sampling, if any.
        """
        return self._ends.landed()

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


def _wait(answers: Mapping[str, Future[None]]) -> None:
    for answer in answers.values():
        answer.result(_TIMEOUT_SECONDS)
