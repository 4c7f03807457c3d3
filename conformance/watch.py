"""Takes the samples of a trial: from the producers' books, the volume, and a consumer of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from confluent_kafka import Consumer, KafkaException

from conformance.course import Course, Sample

_LOOK_SECONDS = 0.1
_POLL_SECONDS = 0.2
_PACE_SECONDS = 0.05
_END_SECONDS = 30.0


class BookTail:
    """Counts the acknowledged records of a book that is being written."""

    def __init__(self, path: Path) -> None:
        self.acknowledged = 0
        self._path = path
        self._read = 0

    def look(self) -> int:
        """Return how many there are by now."""
        with self._path.open("rb") as book:
            book.seek(self._read)
            new = book.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        self.acknowledged += sum(line.startswith(b"a ") for line in whole.splitlines())
        return self.acknowledged


class PacedConsumer:
    """Reads topics from their beginning at a steady rate, in a group, until the block ends."""

    def __init__(self, bootstrap_servers: str, topics: Sequence[str], bytes_per_second: float) -> None:
        self.consumed_bytes = 0
        self._pace = bytes_per_second
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "conformance",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._consumer.subscribe(list(topics))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._consume, name="consumer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join(_END_SECONDS)

    def _consume(self) -> None:
        owed_since = time.monotonic()
        paced_bytes = 0
        while not self._ended.is_set():
            # A consumer that was stopped for more than a second does not make up for it.
            allowed = (time.monotonic() - owed_since) * self._pace
            if paced_bytes >= allowed:
                time.sleep(_PACE_SECONDS)
                continue
            if allowed - paced_bytes > self._pace:
                owed_since, paced_bytes = time.monotonic(), 0
            message = self._consumer.poll(_POLL_SECONDS)
            if message is not None and message.error() is None:
                size = len(message.value() or b"")
                paced_bytes += size
                self.consumed_bytes += size
        with suppress(KafkaException):  # without a coordinator there is no group to leave
            self._consumer.close()


class Watch:
    """A thread that takes samples until the block ends."""

    def __init__(
        self, volume: Path, books: Sequence[Path], record_bytes: int, consumer: PacedConsumer
    ) -> None:
        self._volume = volume
        self._tails = [BookTail(book) for book in books]
        self._record_bytes = record_bytes
        self._consumer = consumer
        self._samples: list[Sample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def course(self) -> Course:
        """The samples so far."""
        return Course(self._samples[:])

    def fewest_records(self) -> int:
        """Return how many records the producer with the fewest has had acknowledged."""
        return min(tail.acknowledged for tail in self._tails)

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            at = time.monotonic()
            counts = tuple(tail.look() * self._record_bytes for tail in self._tails)
            self._samples.append(Sample(at, left_bytes(self._volume), counts, self._consumer.consumed_bytes))


def left_bytes(volume: Path) -> int:
    """Return what an ordinary user may still write on the volume."""
    status = os.statvfs(volume)
    return status.f_bavail * status.f_frsize
