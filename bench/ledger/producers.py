"""Starts the ledger's producers, and opens their books."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.ledger.book import Book, read_book
from bench.loads import Client, Delivery, JavaLoadClass
from testbed.loopback.processes import ChildProcess
from testbed.loopback.runtime import KafkaRuntime

PARTITIONS = 3
RECORD_BYTES = 1_000
LEDGER_PRODUCER = Path(__file__).with_name("LedgerProducer.java")
_REPOSITORY = Path(__file__).resolve().parents[2]
_END_SECONDS = 180.0
"""A producer ends its last transaction and delivers what waits, or gives it up: the longest delivery time."""


_JAVA_NAMES_EPOCHS = "-Dorg.apache.logging.log4j.level=INFO"
_JAVA_EPOCH = "ProducerId set to "
"""Java's words in its log: once for the first epoch, and then for each that it begins by itself."""


class ProducerFailed(Exception):
    """A producer ended before its time, or not in time; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A client with one way of delivery."""

    client: Client
    delivery: Delivery

    @property
    def topic(self) -> str:
        """The name of its topic and of the producer."""
        return f"{self.client}-{self.delivery}".lower().replace("=", "-")


KINDS = tuple(
    Kind(client, delivery) for client in Client for delivery in Delivery if delivery is not Delivery.USUAL
)


class Surroundings(Protocol):
    """The part of a cluster that a producer has to know, such as a `KafkaCluster`."""

    @property
    def path(self) -> Path:
        """The directory of books and logs."""

    @property
    def bootstrap_servers(self) -> str:
        """The listener for applications."""

    def environment(self) -> dict[str, str]:
        """The environment of processes that end with the cluster."""


class LedgerProducer:
    """One running producer with its book; its topic is named after its kind unless it is given.

    `launcher` is the command that starts it, if it has to run elsewhere (a network of its own).
    """

    def __init__(
        self,
        kind: Kind,
        cluster: Surroundings,
        java: JavaLoadClass,
        rate_bytes: float,
        settings: Mapping[str, str],
        *,
        topic: str | None = None,
        partitions: int = PARTITIONS,
        record_bytes: int = RECORD_BYTES,
        launcher: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.topic = topic or kind.topic
        self.path = cluster.path / f"{self.topic}.book"
        self.path.touch()
        transactional = kind.delivery is Delivery.TRANSACTIONAL
        of_java = kind.client is Client.JAVA
        command = [sys.executable, "-m", "bench.ledger.librdkafka_producer"]
        if of_java:
            program, *rest = java.command()
            command = [program, _JAVA_NAMES_EPOCHS, *rest]
        # Small buffers: what waits in PAUSE is soon delivered or given up.
        buffers = ["buffer.memory=1000000"] if of_java else ["queue.buffering.max.kbytes=1000"]
        self._process = ChildProcess(
            [
                *launcher,
                *command,
                cluster.bootstrap_servers,
                self.topic,
                str(partitions),
                str(self.path),
                str(record_bytes),
                str(rate_bytes),
                "true" if transactional else "false",
                *buffers,
                *kind.delivery.settings,
                *(f"{name}={value}" for name, value in settings.items()),
            ],
            log_path=cluster.path / f"{self.topic}.log",
            environment={**cluster.environment(), "PYTHONPATH": str(_REPOSITORY)},
        )

    def acknowledged(self) -> int:
        """How many records were acknowledged by now.

        Raises:
            ProducerFailed: it has ended.
        """
        if self._process.exit_code() is not None:
            raise ProducerFailed(f"{self.topic} has ended:\n{self._process.log_tail()}")
        with self.path.open(encoding="ascii") as lines:
            return sum(line.startswith("a ") for line in lines)

    def book(self) -> Book:
        """Its book as it is now; Java's epochs, which its client names in its log alone, are added."""
        with self.path.open(encoding="ascii") as lines:
            book = read_book(lines)
        if self.kind == Kind(Client.JAVA, Delivery.IDEMPOTENT):
            with self._process.log_path.open(encoding="utf-8", errors="replace") as log:
                book.epochs += max(0, sum(_JAVA_EPOCH in line for line in log) - 1)
        return book

    def ask_to_stop(self) -> None:
        """Have it deliver what waits and end its book."""
        self._process.popen.terminate()

    def ended(self, timeout_seconds: float) -> Book:
        """Wait for the end of a producer, and kill it after that time; its book, right as far as it goes."""
        self._process.terminate(timeout_seconds)
        return self.book()

    def stopped(self) -> Book:
        """Wait for the end of a producer that was asked to stop; its whole book.

        Raises:
            ProducerFailed: it had ended before, or does not end.
        """
        book = self.ended(_END_SECONDS)
        if book.sent is None:
            raise ProducerFailed(f"{self.topic} did not end its book:\n{self._process.log_tail()}")
        return book

    def remove(self) -> None:
        """Remove the files of a producer that has ended."""
        self.path.unlink()
        self._process.log_path.unlink()


def compiled(runtime: KafkaRuntime, directory: Path) -> JavaLoadClass:
    """Java's producer."""
    return JavaLoadClass(runtime, directory, LEDGER_PRODUCER)
