"""Whether the records of the usage topic lie where later records of their keys would go.

Compaction compares records of a key only within a partition. Where partitions were added, the old record of a
key stays in its partition for ever, and later ones, for example a tombstone, go to another one.
"""

from __future__ import annotations

from collections.abc import Callable

from kquota.formats.records import TopicKind, TopicRecord, read_event
from kquota.policy.events import IgnoredEvent, WrongTopicEvent

# Far more than brokers and orders; the bound limits the memory that invented keys can take.
_MAX_KEYS = 10_000


class MisplacedRecords:
    """Follows in which partition the record of each key lies."""

    def __init__(
        self,
        topic: str,
        counts: Callable[[TopicRecord], bool] | None = None,
        kind: TopicKind = TopicKind.USAGE,
    ) -> None:
        """Follow the records of a topic; one in a wrong place is only believed if it ``counts``."""
        self._topic, self._kind = topic, kind
        self._counts = counts
        self._partitions = 0
        self._live: set[tuple[bytes, int]] = set()
        self._misplaced: set[tuple[bytes, int]] = set()

    @property
    def sentence(self) -> str | None:
        """Why the topic can't be used, and how to get out; None while every record is in its place."""
        if not self._misplaced:
            return None
        key, partition = min(self._misplaced)
        return (
            f"Topic {self._topic} is refused: partitions were added to it. It has {self._partitions} now, and"
            f" the record of key {key.decode()} is in partition {partition}, while new ones go to partition"
            f" {partition_of(key, self._partitions)}, so that orders and tombstones have no effect."
            " Delete the topic and let it be created again; then give again the orders that are to stay."
        )

    def take(self, record: TopicRecord) -> None:
        """Take in a record; a tombstone removes the record in its own partition."""
        key = record.key
        if key is None or isinstance(read_event(key, None, topic=self._kind), IgnoredEvent | WrongTopicEvent):
            return
        place = key, record.partition
        if record.value is None:
            self._live.discard(place)
            self._misplaced.discard(place)
        elif place not in self._live and len(self._live) < _MAX_KEYS:
            if self._counts is not None and self._is_misplaced(place) and not self._counts(record):
                return
            self._live.add(place)
            self._judge(place)

    def partitions_are(self, partitions: int) -> None:
        """The topic has this many partitions now."""
        self._partitions = partitions
        self._misplaced.clear()
        for place in self._live:
            self._judge(place)

    def forget(self) -> None:
        """The topic is read from its beginning, or is another one."""
        self._live.clear()
        self._misplaced.clear()

    def _judge(self, place: tuple[bytes, int]) -> None:
        if self._is_misplaced(place):
            self._misplaced.add(place)

    def _is_misplaced(self, place: tuple[bytes, int]) -> bool:
        key, partition = place
        return self._partitions > 0 and partition_of(key, self._partitions) != partition


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's own partitioner gives a key (``murmur2`` in librdkafka's words)."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(data: bytes) -> int:
    """Return MurmurHash2 with Kafka's seed (org.apache.kafka.common.utils.Utils.murmur2), as 32 bits."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    whole = len(data) & ~3
    h = 0x9747B28C ^ len(data)
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15
