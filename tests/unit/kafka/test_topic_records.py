"""The size of a record is the memory that it takes."""

from __future__ import annotations

import tracemalloc

import pytest

from kquota.formats.records import TopicRecord
from kquota.kafka.topic_records import size_bytes


@pytest.mark.accepts("F6")
@pytest.mark.parametrize(
    ("value", "headers", "name"),
    [
        (0, 0, ""),
        (1000, 3, "kquota-signer"),
        (1_000_000, 0, ""),
        (0, 100_000, "n"),
        (10, 1000, "a name \U0001f600"),
    ],
)
def test_the_size_of_a_record_is_about_the_memory_that_it_takes(value: int, headers: int, name: str) -> None:
    tracemalloc.start()
    try:
        record = TopicRecord(
            bytes(1000),
            bytes(value) if value else None,
            10**12,
            10_000,
            tuple((name.encode().decode(), b"value %d" % n) for n in range(headers)),
            offset=10**12,
        )
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken_bytes * 0.8 <= size_bytes(record) <= taken_bytes * 1.5 + 300
