"""Producers of both client families that send at a steady rate, asked the same questions."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from confluent_kafka import KafkaError, Message, Producer

from testbed.loopback.cluster import KafkaCluster

RECORD_BYTES = 10_000
_QUEUED_RECORDS = 30
_JAVA = Path(__file__).with_name("PacedProducer.java")


class Paced(Protocol):
    """A producer that sends at a steady rate to each of its partitions until the end of the block.

    Records that do not fit into its short queue are left out, so that its backlog, and with it a mute, stays
    short. Each partition has a queue of its own: of one for all, a partition whose broker is muted takes what
    the others need.
    """

    client_id: str
    delivered_bytes: int
    failed: int
    throttle_max_ms: float
    throttle_average_ms: float

    def __enter__(self) -> Self: ...

    def __exit__(self, *_error: object) -> None: ...


class Librdkafka:
    """With confluent-kafka."""

    def __init__(
        self,
        cluster: KafkaCluster,
        client_id: str,
        topic: str,
        partitions: Sequence[int],
        bytes_per_second: float,
    ) -> None:
        self.client_id = client_id
        self.delivered_bytes = self.failed = 0
        self.throttle_max_ms = self.throttle_average_ms = 0.0
        self._topic = topic
        self._queued_records = dict.fromkeys(partitions, 0)
        self._gap_seconds = RECORD_BYTES / bytes_per_second
        self._producer = Producer(
            {
                **cluster.client_configuration(),
                "log_level": 0,
                "client.id": client_id,
                "linger.ms": 5,
                "statistics.interval.ms": 200,
                "stats_cb": self._on_statistics,
            }
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"paced-{client_id}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()
        self._producer.flush(30)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._gap_seconds, time.monotonic() - 0.5)
            for partition, queued in self._queued_records.items():
                if queued < _QUEUED_RECORDS:
                    self._queued_records[partition] += 1
                    self._producer.produce(
                        self._topic, bytes(RECORD_BYTES), partition=partition, on_delivery=self._on_delivery
                    )
            self._producer.poll(0)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        """Called in poll, by this producer's thread; when that has ended, in flush, by the block's."""
        partition = message.partition()
        assert partition is not None
        self._queued_records[partition] -= 1
        if error is None:
            self.delivered_bytes += RECORD_BYTES
        else:
            self.failed += 1

    def _on_statistics(self, statistics: str) -> None:
        """Each interval has its own maximum and average, of the requests that were answered in it."""
        seen: list[dict[str, Any]] = [
            broker["throttle"] for broker in json.loads(statistics)["brokers"].values()
        ]
        answered = [throttle for throttle in seen if throttle["cnt"]]
        if answered:
            self.throttle_max_ms = max(self.throttle_max_ms, *(throttle["max"] for throttle in answered))
            self.throttle_average_ms = max(
                self.throttle_average_ms, *(throttle["avg"] for throttle in answered)
            )


class Java:
    """With Kafka's own client, in a process of its own."""

    def __init__(
        self,
        cluster: KafkaCluster,
        client_id: str,
        topic: str,
        partitions: Sequence[int],
        bytes_per_second: float,
    ) -> None:
        self.client_id = client_id
        self.delivered_bytes = self.failed = 0
        self.throttle_max_ms = self.throttle_average_ms = 0.0
        java = [cluster.runtime.java, "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        java += ["-cp", cluster.runtime.class_path(), str(_JAVA)]
        java += [cluster.bootstrap_servers, client_id]
        java += [topic, ",".join(map(str, partitions)), str(RECORD_BYTES), str(bytes_per_second)]
        self._command = java
        self._environment = cluster.environment()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._environment,
        )
        self._thread = threading.Thread(target=self._read, name=f"paced-{self.client_id}")
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            assert self._process.stdin is not None
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            self._process.wait(30)
        self._process.kill()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            fields = line.split()
            if len(fields) == 4 and fields[0].isdigit():  # a logger may print lines, too
                self.delivered_bytes, self.failed = int(fields[0]), int(fields[1])
                self.throttle_max_ms = max(self.throttle_max_ms, float(fields[2]))
                self.throttle_average_ms = max(self.throttle_average_ms, float(fields[3]))


def rates(producers: Sequence[Paced], seconds: float) -> list[float]:
    """The rate that each of them delivers in bytes per second from now on."""
    before = [producer.delivered_bytes for producer in producers]
    begun = time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - begun
    return [(p.delivered_bytes - b) / elapsed for p, b in zip(producers, before, strict=True)]
