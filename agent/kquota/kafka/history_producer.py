"""Publishing history records: in order, within bounds while the cluster is away, delaying nothing else."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from confluent_kafka import KafkaError, Message

from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.producer import PURGED, ProducerThread, Publisher

_UNDER_WAY_RECORDS = 200
_POLL_SECONDS = 0.5
_PAUSE_AFTER_FAILURE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _HistoryRecord:
    number: int
    key: bytes
    value: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.key) + len(self.value)


class HistoryPublisher(Publisher):
    """Publishes history records from a buffer of at most `max_buffered_bytes` (keys and values).

    When it is full the oldest records are dropped and counted: present events matter more than events
    while the cluster was away, and the decisions themselves are in the journal. A record that the
    cluster refuses for its size is dropped and counted at once. A record can land twice; (ClusterId,
    BrokerId, InstanceId, Kind, Sequence) shows it.
    """

    def __init__(
        self,
        producer_thread: ProducerThread,
        topic: str,
        *,
        max_buffered_bytes: int = 4 * 1_048_576,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_buffered_bytes = max_buffered_bytes
        self._generation = producer_thread.producer.generation
        self._buffer: deque[_HistoryRecord] = deque()
        self._under_way: dict[int, _HistoryRecord] = {}
        self._bytes = 0
        self._number = 0
        self._hold_until = clock()
        super().__init__(producer_thread, topic, clock)

    def publish(self, key: bytes, value: bytes) -> None:
        """Take a record for publication. Returns at once; drops the oldest records when there is no room."""
        with self._lock:
            if self._producer_thread.stopped.is_set():
                return
            self._number += 1
            self._buffer.append(_HistoryRecord(self._number, key, value))
            self._bytes += len(key) + len(value)
            self._make_room()
        self._hand_over()

    def buffered(self) -> int:
        """How many records are not delivered yet."""
        with self._lock:
            return len(self._buffer) + len(self._under_way)

    def _pending(self) -> bool:
        return bool(self._buffer or self._under_way)

    def _make_room(self) -> None:
        while self._bytes > self._max_buffered_bytes and self._buffer:
            oldest = self._buffer.popleft()
            self._bytes -= oldest.size_bytes
            self._producer.tally.dropped()

    def turn(self) -> float:
        """Hand over records that have waited, and those that a replaced client had under way."""
        if self._producer.generation != self._generation:
            self._generation = self._producer.generation
            with self._lock:
                self._take_back(sorted(self._under_way))
        self._hand_over()
        return _POLL_SECONDS

    def _hand_over(self) -> None:
        failure: KafkaFailure | None = None
        with self._lock:
            if self._clock() < self._hold_until:
                return
            while failure is None and self._buffer and self._may_hand_over():
                record = self._buffer.popleft()
                self._under_way[record.number] = record
                failure = self._producer.produce(
                    record.key, record.value, (), partial(self._finished, record.number)
                )
                if failure is not None:
                    self._settle(record.number, failure)
        if failure is not None:
            self._producer_thread.report(failure)

    def _may_hand_over(self) -> bool:
        """Whether more may be under way: half the room is for records that are newer."""
        under_way_bytes = sum(one.size_bytes for one in self._under_way.values())
        return len(self._under_way) < _UNDER_WAY_RECORDS and under_way_bytes < self._max_buffered_bytes / 2

    def _finished(self, number: int, error: KafkaError | None, _message: Message) -> None:
        # One that gave way to a snapshot which could not leave is no failure.
        purged = error is not None and error.code() in PURGED
        # Explaining a failure may mean to read a certificate: not while publish() would wait for the lock.
        failure = None if error is None or purged else self._producer.failure(error)
        with self._changed:
            if number not in self._under_way:
                return
            if purged:
                self._take_back([number])
            elif failure is None:
                self._forget(number)
                self._producer.delivered()
            else:
                self._settle(number, failure)
            self._changed.notify_all()
        if failure is not None:
            self._producer_thread.report(failure)

    def _settle(self, number: int, failure: KafkaFailure) -> None:
        """An undelivered record goes back to its place in the buffer, or is dropped; the caller has the
        lock.
        """
        self._producer.failed(failure)
        if failure.kind is Kind.TOO_LARGE:
            self._forget(number)
            self._producer.tally.dropped()
        else:
            self._take_back([number])
            self._hold_until = self._clock() + _PAUSE_AFTER_FAILURE_SECONDS

    def _forget(self, number: int) -> None:
        record = self._under_way.pop(number)
        self._bytes -= record.size_bytes

    def _take_back(self, numbers: list[int]) -> None:
        """Put records back among the waiting, by age; the caller has the lock."""
        for number in reversed(numbers):
            self._buffer.appendleft(self._under_way.pop(number))
        if len(self._buffer) > 1 and self._buffer[0].number > self._buffer[1].number:
            self._buffer = deque(sorted(self._buffer, key=lambda record: record.number))
        self._make_room()
