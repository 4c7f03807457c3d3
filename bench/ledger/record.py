"""The records of the ledger: each names its producer and its number, and proves that it is whole. Pure.

A value is ASCII: the CRC-32 of all that follows the first blank, in eight hexadecimal digits, then producer,
sequence and transaction, then filling up to the wanted size, which differs from record to record.
`LedgerProducer.java` writes the same.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

NO_TRANSACTION = 0
_CHECKSUM_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of a record: producer, number (from 0), and the number of its transaction (from 1)."""

    producer: str
    sequence: int
    transaction: int = NO_TRANSACTION


def to_value(entry: Entry, size_bytes: int) -> bytes:
    """The value of a record of that size, or longer where its head is."""
    head = f"{entry.producer} {entry.sequence} {entry.transaction} ".encode("ascii")
    filling = f"{entry.sequence:x}.".encode("ascii")
    missing = max(0, size_bytes - _CHECKSUM_LENGTH - 1 - len(head))
    body = head + (filling * (missing // len(filling) + 1))[:missing]
    return f"{zlib.crc32(body):08x} ".encode("ascii") + body


def to_entry(value: bytes | None) -> Entry | None:
    """The content of the record; None if it is damaged, or not one of ours."""
    if value is None or value[_CHECKSUM_LENGTH : _CHECKSUM_LENGTH + 1] != b" ":
        return None
    body = value[_CHECKSUM_LENGTH + 1 :]
    if value[:_CHECKSUM_LENGTH] != f"{zlib.crc32(body):08x}".encode("ascii"):
        return None
    fields = body.split(b" ", 3)
    try:
        producer, sequence, transaction = fields[0].decode("ascii"), int(fields[1]), int(fields[2])
    except (ValueError, IndexError):
        return None
    return Entry(producer, sequence, transaction)
