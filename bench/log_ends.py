"""The thread that asks a cluster how much has landed in the logs of topics."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from bench.landed import Landed, Sample
from bench.loads import RECORD_BYTES
from testbed.loopback.clients import admin_client
from testbed.loopback.cluster import KafkaCluster

_TIMEOUT_SECONDS = 30.0


class LogEnds:
    """The ends of the logs of topics with one partition each, from `start` to `close`."""

    def __init__(self, cluster: KafkaCluster, topics: Sequence[str], interval_seconds: float) -> None:
        self._topics = tuple(topics)
        self._interval_seconds = interval_seconds
        self._admin = admin_client(cluster.client_configuration())
        self._samples: list[Sample] = []
        self._failure: KafkaException | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="ends of logs", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def close(self) -> None:
        """End it; the samples remain."""
        self._ended.set()
        self._thread.join()

    def wait_until_quick(self, answer_seconds: float, seconds: float, at_most_seconds: float) -> None:
        """Wait until all answers of the last ``seconds`` took at most ``answer_seconds``.

        Raises:
            TimeoutError: they did not within ``at_most_seconds``.
        """
        began_at = time.monotonic()
        while (waited_seconds := time.monotonic() - began_at) < at_most_seconds:
            since = time.monotonic() - seconds
            lately = [one for one in self._samples[:] if one.answered_at >= since]
            slowest = max((one.answered_at - one.asked_at for one in lately), default=at_most_seconds)
            if waited_seconds >= seconds and slowest <= answer_seconds:
                return
            time.sleep(self._interval_seconds)
        raise TimeoutError(f"the brokers do not answer within {answer_seconds} s: the machine is too busy")

    def landed(self, prefix: str = "") -> Landed:
        """The bytes landed so far in the topics whose names begin with ``prefix``, each as a connection.

        Raises:
            KafkaException: a question failed, other than before the first answer.
        """
        if self._failure is not None:
            raise self._failure
        chosen = [index for index, topic in enumerate(self._topics) if topic.startswith(prefix)]
        return Landed(
            [
                Sample(one.asked_at, one.answered_at, tuple(one.bytes_by_connection[i] for i in chosen))
                for one in self._samples[:]
            ]
        )

    def _ask(self) -> None:
        wanted = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in self._topics}  # type: ignore[no-untyped-call]
        next_at = time.monotonic()
        while not self._ended.wait(max(0.0, next_at - time.monotonic())):
            next_at = max(next_at + self._interval_seconds, time.monotonic())
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
