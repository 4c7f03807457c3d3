"""A producer's own book: the answers to each of its records and transactions. Pure.

The producer appends a line to a file as soon as it knows something, so that the book of one that was killed
is right as far as it goes:

    a SEQUENCE TRANSACTION PARTITION OFFSET   acknowledged, there (offset -1: the broker did not say where)
    f SEQUENCE TRANSACTION ERROR              given up: it may have landed or not
    c TRANSACTION                             committed
    x TRANSACTION                             aborted
    u TRANSACTION ERROR                       neither is known
    n SEQUENCE                                the client began a new epoch by itself, before that record
    e SENT                                    the end, with the number of records sent
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where an acknowledged record is, by the acknowledgement."""

    transaction: int
    partition: int
    offset: int


class UnreadableBook(Exception):
    """A line of a book that no producer writes; the message names it."""


@dataclass(slots=True)
class Book:
    """All answers to one producer. `sent` is None where it could not end its book."""

    acknowledged: dict[int, Receipt] = field(default_factory=dict)
    given_up: set[int] = field(default_factory=set)
    errors: Counter[str] = field(default_factory=Counter)
    committed: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    unsettled: set[int] = field(default_factory=set)
    epochs: int = 0
    sent: int | None = None


def read_book(lines: Iterable[str]) -> Book:
    """Read a book; a last line without its end, which a kill leaves, counts for nothing.

    Raises:
        UnreadableBook: another line is none of the above.
    """
    book = Book()
    for number, line in enumerate(lines, start=1):
        if not line.endswith("\n"):
            break
        try:
            _enter(book, *line.split())
        except (TypeError, ValueError) as error:
            raise UnreadableBook(f"line {number}: {line.rstrip()!r} ({error})") from None
    return book


def _enter(book: Book, kind: str, first: str, *more: str) -> None:
    if kind == "a":
        transaction, partition, offset = map(int, more)
        book.acknowledged[int(first)] = Receipt(transaction, partition, offset)
    elif kind == "f":
        _transaction, error = more
        book.given_up.add(int(first))
        book.errors[error] += 1
    elif kind == "u":
        (error,) = more
        book.unsettled.add(int(first))
        book.errors[error] += 1
    elif kind in {"c", "x"} and not more:
        (book.committed if kind == "c" else book.aborted).add(int(first))
    elif kind == "n" and not more:
        int(first)
        book.epochs += 1
    elif kind == "e" and not more:
        book.sent = int(first)
    else:
        raise ValueError("unknown")
