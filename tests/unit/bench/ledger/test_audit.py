"""The ledger: a log as Kafka promises it breaks nothing, and each way to break it is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.ledger.audit import Account, Found, Promise, audit
from bench.ledger.book import Book, Receipt, UnreadableBook, read_book
from bench.ledger.record import Entry, to_entry, to_value

PARTITIONS = 3
ME = "java-idempotent"


@given(st.text("abc-=1", min_size=1), st.integers(0, 10**12), st.integers(0, 10**6), st.integers(0, 2_000))
def test_a_record_says_what_was_written_and_has_its_size(
    producer: str, sequence: int, transaction: int, size_bytes: int
) -> None:
    entry = Entry(producer, sequence, transaction)
    value = to_value(entry, size_bytes)

    assert to_entry(value) == entry
    assert len(value) == max(size_bytes, len(to_value(entry, 0)))


@given(st.integers(0, 299), st.integers(1, 255))
def test_a_changed_byte_is_damage(place: int, difference: int) -> None:
    value = bytearray(to_value(Entry(ME, 17), 300))
    value[place] ^= difference

    assert to_entry(bytes(value)) is None


@pytest.mark.parametrize("value", [None, b"", b"00000000 ", b"00000000", b"x" * 40])
def test_what_is_no_record_of_ours_is_damage(value: bytes | None) -> None:
    assert to_entry(value) is None


def test_a_book_is_read_as_far_as_it_goes() -> None:
    lines = [
        "a 0 1 2 7\n",
        "f 1 1 MSG_TIMED_OUT\n",
        "c 1\n",
        "x 2\n",
        "u 3 TIMED_OUT\n",
        "n 4\n",
        "e 9\n",
        "a 5 0",
    ]

    assert read_book(lines) == Book(
        acknowledged={0: Receipt(1, 2, 7)},
        given_up={1},
        errors=Counter({"MSG_TIMED_OUT": 1, "TIMED_OUT": 1}),
        committed={1},
        aborted={2},
        unsettled={3},
        epochs=1,
        sent=9,
    )


@pytest.mark.parametrize("line", ["a 1 0 2\n", "q 1\n", "n one\n", "c\n", "c 1 2\n", "a one 0 1 2\n"])
def test_a_line_that_no_producer_writes_is_refused(line: str) -> None:
    with pytest.raises(UnreadableBook, match="line 2"):
        read_book(["e 1\n", line])


def in_a_log(count: int, transaction_of: Callable[[int], int] = lambda _sequence: 0) -> list[Found]:
    """Records, numbered from 0, dealt to the partitions in turn."""
    return [
        Found(sequence % PARTITIONS, sequence // PARTITIONS, Entry(ME, sequence, transaction_of(sequence)))
        for sequence in range(count)
    ]


def book_of(found: list[Found], sent: int | None = None) -> Book:
    """The book of a producer for which all of them were acknowledged."""
    entries = [(one, one.entry) for one in found if one.entry is not None]
    receipts = {
        entry.sequence: Receipt(entry.transaction, one.partition, one.offset) for one, entry in entries
    }
    return Book(acknowledged=receipts, sent=len(found) if sent is None else sent)


@given(st.integers(0, 60))
def test_a_log_with_all_that_was_acknowledged_keeps_every_promise(count: int) -> None:
    found = in_a_log(count)

    account = audit(ME, book_of(found), found)

    assert (account.sent, account.acknowledged, account.landed) == (count, count, count)
    assert all(not account.broken(promise) for promise in Promise)


def test_what_was_never_acknowledged_may_be_there_or_not() -> None:
    found = in_a_log(9)
    book = book_of(found[:6], sent=12)
    book.given_up = {6, 7, 9}

    account = audit(ME, book, found)

    assert (account.landed, account.unannounced, account.given_up) == (9, 3, 3)
    assert all(not account.broken(promise) for promise in Promise)


@given(st.integers(1, 40), st.data())
def test_a_record_that_is_gone_is_lost(count: int, data: st.DataObject) -> None:
    found = in_a_log(count)
    gone = data.draw(st.integers(0, count - 1))

    account = audit(ME, book_of(found), found[:gone] + found[gone + 1 :])

    assert account.lost == 1
    assert account.broken(Promise.AT_LEAST_ONCE) == {"lost": 1}
    assert account.broken(Promise.WHILE_LEADERS_LIVE) == {"lost": 1}
    assert account.broken(Promise.WHILE_LEADERS_LIVE, leaders_died=True) == {}
    assert account.broken(Promise.NOTHING) == {}


@given(st.integers(1, 40), st.data())
def test_a_second_copy_breaks_exactly_once_alone(count: int, data: st.DataObject) -> None:
    found = in_a_log(count)
    twice = found[data.draw(st.integers(0, count - 1))]

    account = audit(ME, book_of(found), [*found, replace(twice, offset=1_000)])

    assert account.doubled == 1
    assert account.broken(Promise.AT_LEAST_ONCE) == {}
    assert account.broken(Promise.EXACTLY_ONCE) == {"doubled": 1}
    assert replace(account, epochs=1).broken(Promise.EXACTLY_ONCE) == {}
    assert replace(account, epochs=1).broken(Promise.TRANSACTIONS) == {"doubled": 1}


def test_a_record_behind_a_later_one_of_its_partition_is_out_of_order() -> None:
    found = in_a_log(9)
    entries = [one.entry for one in found]
    entries[0], entries[3] = entries[3], entries[0]  # both in partition 0
    swapped = [replace(one, entry=entry) for one, entry in zip(found, entries, strict=True)]

    account = audit(ME, book_of(swapped), swapped)

    assert account.broken(Promise.AT_LEAST_ONCE) == {}
    assert account.broken(Promise.EXACTLY_ONCE) == {"disordered": 1}


def test_a_record_elsewhere_than_its_acknowledgement_said_is_displaced() -> None:
    found = in_a_log(6)
    book = book_of(found)
    book.acknowledged[4] = Receipt(0, 1, 77)
    book.acknowledged[5] = Receipt(0, 2, -1)  # the broker did not say where

    assert audit(ME, book, found).broken(Promise.AT_LEAST_ONCE) == {"displaced": 1}


def test_damaged_and_foreign_records_break_every_promise() -> None:
    found = [*in_a_log(3), Found(0, 1, None), Found(0, 2, Entry("somebody", 0))]

    for promise in Promise:
        assert audit(ME, book_of(in_a_log(3)), found).broken(promise) == {"damaged": 2}


def transactions() -> tuple[Book, list[Found]]:
    """Transactions 1 to 4 of six records each: committed, aborted, of unknown end, committed."""
    found = in_a_log(24, lambda sequence: 1 + sequence // 6)
    book = book_of(found)
    book.committed, book.aborted, book.unsettled = {1, 4}, {2}, {3}
    return book, found


def visible(found: list[Found], *numbers: int) -> list[Found]:
    return [one for one in found if one.entry is not None and one.entry.transaction in numbers]


@pytest.mark.parametrize("numbers", [(1, 4), (1, 3, 4)], ids=["it was aborted", "it was committed"])
def test_transactions_are_there_whole_or_not_at_all(numbers: tuple[int, ...]) -> None:
    book, found = transactions()

    account = audit(ME, book, visible(found, *numbers))

    assert account.broken(Promise.TRANSACTIONS) == {}
    assert (account.committed, account.aborted) == (2, 1)


def test_a_part_of_a_transaction_of_unknown_end_is_torn() -> None:
    book, found = transactions()

    account = audit(ME, book, visible(found, 1) + visible(found, 3)[:4] + visible(found, 4))

    assert account.broken(Promise.TRANSACTIONS) == {"torn": 1}


def test_records_of_an_aborted_transaction_are_not_to_be_seen() -> None:
    book, found = transactions()

    assert audit(ME, book, visible(found, 1, 2, 4)).broken(Promise.TRANSACTIONS) == {"resurrected": 6}


def test_a_committed_transaction_without_one_of_its_records_has_lost_it() -> None:
    book, found = transactions()

    assert audit(ME, book, visible(found, 1, 4)[1:]).broken(Promise.TRANSACTIONS) == {"lost": 1}


def test_accounts_of_several_producers_add_up() -> None:
    one, other = Account(*range(15)), Account(*range(100, 115))
    assert one + other == Account(*range(100, 130, 2))
