"""The auditor: compares a producer's book with what a consumer reads, and says what does not agree. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from bench.ledger.book import Book
from bench.ledger.record import NO_TRANSACTION, Entry


class Promise(StrEnum):
    """Kafka's promise about a record that it has acknowledged."""

    NOTHING = "nothing"
    """acks=0: the client says so itself, as soon as it has written to its socket."""
    WHILE_LEADERS_LIVE = "at least once, while its leader lives"
    """acks=1."""
    AT_LEAST_ONCE = "at least once"
    EXACTLY_ONCE = "exactly once, in order"
    TRANSACTIONS = "exactly once, in order, by whole transactions"


@dataclass(frozen=True, slots=True)
class Found:
    """A record that a consumer read; without an entry it is damaged."""

    partition: int
    offset: int
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Account:
    """One producer's records, counted."""

    sent: int
    acknowledged: int
    given_up: int
    """The client reported an error: each may have landed or not."""
    landed: int
    """Different records in the log, as a consumer sees it."""
    unannounced: int
    """Of these, how many were never acknowledged; Kafka may keep them."""
    committed: int
    aborted: int
    lost: int
    """Acknowledged (and committed, where there are transactions), and not there."""
    doubled: int
    """Copies beyond the first."""
    displaced: int
    """Acknowledged, and not where the acknowledgement said."""
    disordered: int
    """In a partition, the first copy of a record after one that was sent later."""
    damaged: int
    """With a wrong checksum, or of another producer."""
    resurrected: int
    """Records of aborted transactions that a consumer of committed ones sees."""
    torn: int
    """Transactions of unknown end of which only a part is there."""
    epochs: int = 0
    """How often the client began a new epoch by itself, without a transaction.

    Both clients do so after a time-out, and after a sequence number that the broker did not expect. They
    then send again, in the new epoch, what waits for an answer, librdkafka's on any partition (its issue
    4953), and the broker can't recognise a copy.
    """

    def __add__(self, other: Account) -> Account:
        """The account of both producers together."""
        return Account(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Account)))

    def broken(self, promise: Promise, *, leaders_died: bool = False) -> Mapping[str, int]:
        """The counts that break the promise, by their names here; empty if it was kept."""
        wrong = {"damaged": self.damaged}
        if promise is not Promise.NOTHING and not (promise is Promise.WHILE_LEADERS_LIVE and leaders_died):
            wrong |= {"lost": self.lost, "displaced": self.displaced}
        if promise in {Promise.EXACTLY_ONCE, Promise.TRANSACTIONS}:
            wrong |= {"disordered": self.disordered}
            if not (promise is Promise.EXACTLY_ONCE and self.epochs):
                wrong |= {"doubled": self.doubled}
        if promise is Promise.TRANSACTIONS:
            wrong |= {"resurrected": self.resurrected, "torn": self.torn}
        return {name: count for name, count in wrong.items() if count}


def audit(producer: str, book: Book, found: Iterable[Found]) -> Account:
    """Compare a producer's book with all records of its topic, by partition in the order of their offsets.

    With transactions, `found` is what a consumer of committed records reads.
    """
    places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    of_transaction: defaultdict[int, set[int]] = defaultdict(set)
    newest: dict[int, int] = {}
    damaged = disordered = 0
    for record in found:
        entry = record.entry
        if entry is None or entry.producer != producer:
            damaged += 1
            continue
        if entry.sequence not in places:
            disordered += entry.sequence < newest.get(record.partition, -1)
            newest[record.partition] = max(entry.sequence, newest.get(record.partition, -1))
        places[entry.sequence].append((record.partition, record.offset))
        of_transaction[entry.transaction].add(entry.sequence)
    owed = {
        sequence: receipt
        for sequence, receipt in book.acknowledged.items()
        if receipt.transaction == NO_TRANSACTION or receipt.transaction in book.committed
    }
    told: defaultdict[int, set[int]] = defaultdict(set)
    for sequence, receipt in book.acknowledged.items():
        told[receipt.transaction].add(sequence)
    return Account(
        sent=book.sent if book.sent is not None else len(book.acknowledged) + len(book.given_up),
        acknowledged=len(book.acknowledged),
        given_up=len(book.given_up),
        landed=len(places),
        unannounced=len(places.keys() - book.acknowledged.keys()),
        committed=len(book.committed),
        aborted=len(book.aborted),
        lost=len(owed.keys() - places.keys()),
        doubled=sum(len(copies) - 1 for copies in places.values()),
        displaced=sum(
            receipt.offset >= 0 and (receipt.partition, receipt.offset) not in places[sequence]
            for sequence, receipt in owed.items()
            if sequence in places
        ),
        disordered=disordered,
        damaged=damaged,
        resurrected=sum(len(of_transaction.get(transaction, ())) for transaction in book.aborted),
        torn=sum(
            bool(of_transaction.get(transaction)) and not told[transaction] <= of_transaction[transaction]
            for transaction in book.unsettled
        ),
        epochs=book.epochs,
    )
