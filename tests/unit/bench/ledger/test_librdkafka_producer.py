"""The book of the ledger's producer of librdkafka, whose own mock cluster takes the records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.ledger.book import Book, read_book
from bench.ledger.librdkafka_producer import LedgerProducer

_SECONDS = 60.0


def book_of(path: Path, settings: Mapping[str, str], is_enough: Callable[[Book], bool]) -> Book:
    """The book of a producer that is stopped when it has enough."""
    path.touch()
    mock = {"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": "1", "enable.idempotence": "true"}
    producer = LedgerProducer("mine", 3, path, 1_000, 50_000.0, mock | settings, transactional=False)
    run = threading.Thread(target=producer.run)
    run.start()
    deadline = time.monotonic() + _SECONDS
    while (
        not is_enough(read_book(path.read_text("ascii").splitlines(keepends=True)))
        and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    producer.stopped = True
    run.join(_SECONDS)
    return read_book(path.read_text("ascii").splitlines(keepends=True))


def test_it_notes_the_epochs_that_the_client_begins_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Answers come later than the client waits for them, so what it has sent may be there or not.
    late = {"test.mock.broker.rtt": "600", "message.timeout.ms": "500"}
    book = book_of(tmp_path / "late.book", late, lambda book: book.epochs > 0)
    assert book.epochs > 0
    assert book.errors.keys() == {"_MSG_TIMED_OUT"}
    assert "bumped epoch" in capsys.readouterr().err


def test_a_client_whose_records_are_taken_begins_none(tmp_path: Path) -> None:
    book = book_of(tmp_path / "taken.book", {}, lambda book: len(book.acknowledged) > 20)
    assert len(book.acknowledged) > 20
    assert book.epochs == 0
