"""The output of the reader of the usage topic: records as they are, and events about the reading itself."""

from dataclasses import dataclass

from kquota.kafka.errors import KafkaFailure


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One record, uninterpreted. `value` None is a tombstone. `timestamp_ms` is the record's own (epoch,
    None for none) and proves nothing about the freshness of its content.
    """

    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


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


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Every partition has been read up to where it ended when the reading began. Handed over once, and again
    after each TopicRestarted.
    """

    records: int


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """The number of partitions is known, or has grown."""

    partitions: int


@dataclass(frozen=True, slots=True)
class ReadingFailed:
    """Something keeps the reader from reading; it goes on trying. Handed over at each try."""

    failure: KafkaFailure


@dataclass(frozen=True, slots=True)
class ReadingRecovered:
    """The obstacle that kept the reader from reading is gone."""


ReaderEvent = TopicRestarted | CaughtUp | PartitionsChanged | ReadingFailed | ReadingRecovered
