"""A producer of librdkafka that keeps a book of the answers to each record, until SIGTERM.

    python -m bench.ledger.librdkafka_producer BOOTSTRAP TOPIC PARTITIONS BOOK RECORD_BYTES BYTES_PER_SECOND
        TRANSACTIONS [name=value]...

The counterpart of LedgerProducer.java, with the same arguments.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from bench.ledger.record import NO_TRANSACTION, Entry, to_value

_TRANSACTION_SECONDS = 0.3
_OWED_SECONDS = 0.1
_CALL_SECONDS = 30.0
_FULL_SECONDS = 0.01
_NEW_EPOCH = "All partitions drained"
"""librdkafka's words, when it goes on with another epoch or another producer id."""


class LedgerProducer:
    """One producer; the topic's name is the producer's, too."""

    def __init__(
        self,
        topic: str,
        partitions: int,
        book: Path,
        record_bytes: int,
        rate_bytes: float,
        settings: Mapping[str, str],
        *,
        transactional: bool,
    ) -> None:
        self.stopped = False
        self._topic, self._partitions, self._record_bytes = topic, partitions, record_bytes
        self._gap_seconds = record_bytes / rate_bytes
        self._transactional = transactional
        own: dict[str, object] = {"client.id": topic, "log_level": "0"}
        if transactional:  # whose epochs are those of their transactions
            own["transactional.id"] = topic
        elif settings.get("enable.idempotence") == "true":
            own |= {"debug": "eos", "logger": _logger(self._note)}
        self._settings = {**settings, **own}
        self._book = book.open("a", encoding="ascii", buffering=1)
        self._sequence, self._transaction = 0, NO_TRANSACTION
        self._open()

    def run(self) -> None:
        """Produce until it is stopped; then end the book."""
        if self._transactional:
            self._begin_transaction()
        due = time.monotonic()
        commit_at = due + _TRANSACTION_SECONDS
        while not self.stopped:
            now = time.monotonic()
            if self._transactional and now >= commit_at:
                self._end_transaction()
                self._begin_transaction()
                commit_at = time.monotonic() + _TRANSACTION_SECONDS
            self._send()
            due = max(due + self._gap_seconds, time.monotonic() - _OWED_SECONDS)
            self._serve_until(due)
        if self._transactional:
            self._end_transaction()
        while self._producer.flush(_CALL_SECONDS):
            pass
        self._write("e", self._sequence)
        self._book.close()

    def _serve_until(self, due: float) -> None:
        """Take answers until the next record is due; each answer ends a poll, and is no reason to send."""
        self._poll(0)
        while not self.stopped and (left_seconds := due - time.monotonic()) > 0:
            self._poll(left_seconds)

    def _poll(self, seconds: float) -> None:
        # A fatal error is raised here, too, and the next record or the end of the transaction meets it.
        with suppress(KafkaException):
            self._producer.poll(seconds)

    def _open(self) -> None:
        self._producer = Producer(self._settings)
        if self._transactional:
            self._until_done(self._producer.init_transactions)

    def _begin_transaction(self) -> None:
        self._transaction += 1
        try:
            self._producer.begin_transaction()
        except KafkaException as failed:
            self._open_again(failed)
            self._producer.begin_transaction()

    def _send(self) -> None:
        number, transaction = self._sequence, self._transaction

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                self._write("a", number, transaction, message.partition(), -1 if offset is None else offset)
            else:
                self._write("f", number, transaction, error.name())

        value = to_value(Entry(self._topic, number, transaction), self._record_bytes)
        try:
            self._producer.produce(
                self._topic, value, partition=number % self._partitions, on_delivery=delivered
            )
        except BufferError:  # its queue is full: it is held
            self._poll(_FULL_SECONDS)
            return
        except KafkaException as failed:  # of a failed transaction the end says so
            self._write("f", number, transaction, failed.args[0].name())
            if not self._transactional:
                self._open()
        self._sequence += 1

    def _end_transaction(self) -> None:
        try:
            self._until_done(self._producer.commit_transaction)
            self._write("c", self._transaction)
        except KafkaException as failed:
            if failed.args[0].txn_requires_abort():
                self._abort()
            else:
                self._open_again(failed)

    def _abort(self) -> None:
        try:
            self._until_done(self._producer.abort_transaction)
            self._write("x", self._transaction)
        except KafkaException as failed:
            self._open_again(failed)

    def _open_again(self, cause: KafkaException) -> None:
        """A new producer of the same id ends the old one's transaction, one way or the other."""
        self._write("u", self._transaction, cause.args[0].name())
        self._producer.purge()
        self._poll(0)
        self._open()

    def _note(self, line: str) -> None:
        if _NEW_EPOCH in line:
            self._write("n", self._sequence)
            print(line, file=sys.stderr, flush=True)

    @staticmethod
    def _until_done(call: Callable[[float], None]) -> None:
        """Call again what could not be done in time, as librdkafka's documentation has it."""
        while True:
            try:
                call(_CALL_SECONDS)
                return
            except KafkaException as failed:
                if not failed.args[0].retriable():
                    raise

    def _write(self, *fields: object) -> None:
        print(*fields, file=self._book)


def _logger(note: Callable[[str], None]) -> logging.Logger:
    """A logger that hands librdkafka's lines to `note` alone."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            note(record.getMessage())

    logger = logging.getLogger("librdkafka")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.handlers = [Handler()]
    return logger


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM."""
    bootstrap, topic, partitions, book, record_bytes, rate, transactions = arguments[:7]
    settings = dict(argument.split("=", 1) for argument in arguments[7:])
    producer = LedgerProducer(
        topic,
        int(partitions),
        Path(book),
        int(record_bytes),
        float(rate),
        {"bootstrap.servers": bootstrap, **settings},
        transactional=transactions == "true",
    )

    def stop(_number: int, _frame: object) -> None:
        producer.stopped = True

    signal.signal(signal.SIGTERM, stop)
    producer.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
