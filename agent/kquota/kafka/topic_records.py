"""The output of the reader of our topics: records as they are, and events about the reading itself."""

from dataclasses import dataclass
from sys import getsizeof

from kquota.formats.records import TopicKind, TopicRecord
from kquota.kafka.errors import KafkaFailure

# A record with its numbers, and the place of a header, take this in Python's memory.
_RECORD_BYTES, _HEADER_BYTES = 300, 64


def size_bytes(record: TopicRecord) -> int:
    """Return about the memory that a record takes: headers of a few bytes take many times their length."""
    headers = sum(_HEADER_BYTES + getsizeof(name) + getsizeof(value) for name, value in record.headers)
    return _RECORD_BYTES + getsizeof(record.key) + getsizeof(record.value) + headers


@dataclass(frozen=True, slots=True)
class TopicRestarted:
    """The topic is a new one, or its offsets have gone back: everything is read again from its beginning,
    and the offsets of later records do not compare with those of earlier ones. It reverts nothing that was
    read.

    Of the `same_topic` the records that are still there come again. In either case CaughtUp follows when the
    topic has been read to its end.
    """

    topic_id: str
    reason: str
    same_topic: bool = False
    topic: TopicKind = TopicKind.USAGE


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Every partition has been read up to where it ended when the reading began. Handed over once, and again
    after each TopicRestarted.
    """

    records: int
    topic: TopicKind = TopicKind.USAGE


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """The number of partitions is known, or has grown."""

    partitions: int
    topic: TopicKind = TopicKind.USAGE


@dataclass(frozen=True, slots=True)
class ReadingFailed:
    """Something keeps the reader from reading; it goes on trying. Handed over at each try."""

    failure: KafkaFailure
    topic: TopicKind = TopicKind.USAGE


@dataclass(frozen=True, slots=True)
class ReadingRecovered:
    """The obstacle that kept the reader from reading is gone."""

    topic: TopicKind = TopicKind.USAGE


TopicEvent = TopicRecord | TopicRestarted | CaughtUp
ReaderEvent = TopicRestarted | CaughtUp | PartitionsChanged | ReadingFailed | ReadingRecovered
