"""Publishing usage snapshots: the newest of each key, never a queue of old ones."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from confluent_kafka import KafkaError, Message

from kquota.kafka.delivery import Headers
from kquota.kafka.errors import KafkaFailure, Kind
from kquota.kafka.producer import PURGED, ProducerThread, Publisher

_POLL_SECONDS = 0.5
_POLL_WHILE_WAITING_SECONDS = 0.1


@dataclass(slots=True)
class _Snapshot:
    key: bytes
    value: bytes
    headers: Headers
    expires_at: float
    generation: int = 0
    reported: bool = False


class UsagePublisher(Publisher):
    """Publishes snapshots without ever blocking; of each key at most one is under way and at most one waits.

    A snapshot lives for the producer thread's `lifetime_seconds`: then the next one is due, and an old one is
    not worth sending. One that has not left yet gives way to a newer one at once; one that found the topic
    missing is tried again while it lives. Every snapshot that was not delivered is reported to the producer
    thread.
    """

    def __init__(
        self, producer_thread: ProducerThread, topic: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._under_way: dict[bytes, _Snapshot] = {}
        self._waiting: dict[bytes, _Snapshot] = {}
        super().__init__(producer_thread, topic, clock)

    def publish(self, key: bytes, value: bytes, headers: Headers = ()) -> None:
        """Send a snapshot, in place of any of the same key that has not left yet. Returns at once."""
        snapshot = _Snapshot(key, value, headers, self._clock() + self._producer_thread.lifetime_seconds)
        failure: KafkaFailure | None = None
        with self._lock:
            if self._producer_thread.stopped.is_set():
                return
            if self._waiting.pop(key, None) is not None:
                self._producer.tally.replaced()
            under_way = key in self._under_way
            if under_way:
                self._waiting[key] = snapshot
            else:
                failure = self._send(snapshot)
        if under_way:
            # Queued records that are not sent are reported as purged, and the waiting one follows them.
            self._producer.purge_unsent()
        if failure is not None:
            self._producer_thread.report(failure)

    def credentials_problem(self) -> KafkaFailure | None:
        """Why the credential files on disk cannot be used (an earlier client may still work), or None."""
        return self._producer_thread.producer.credentials_problem

    def _pending(self) -> bool:
        return bool(self._under_way or self._waiting)

    def turn(self) -> float:
        """Send the records that nothing else will send."""
        failures = []
        with self._changed:
            for snapshot in self._left_behind():
                if snapshot.expires_at <= self._clock():
                    self._changed.notify_all()
                    continue
                failure = self._send(snapshot)
                if failure is not None:
                    failures.append(failure)
            waits = bool(self._waiting)
        for failure in failures:
            self._producer_thread.report(failure)
        return _POLL_WHILE_WAITING_SECONDS if waits else _POLL_SECONDS

    def _left_behind(self) -> list[_Snapshot]:
        """Take out the records that nothing else will send: those in flight in a client that has been
        replaced, and those that wait although no record of their key is in flight. The caller holds the lock.
        """
        generation = self._producer.generation
        for key, snapshot in list(self._under_way.items()):
            if snapshot.generation != generation:
                del self._under_way[key]
                self._waiting.setdefault(key, snapshot)
        keys = [key for key in self._waiting if key not in self._under_way]
        return [self._waiting.pop(key) for key in keys]

    def _send(self, snapshot: _Snapshot) -> KafkaFailure | None:
        """Hand a snapshot to librdkafka; returns a failure that is to be reported. The caller holds the
        lock.
        """
        snapshot.generation = self._producer.generation
        self._under_way[snapshot.key] = snapshot
        failure = self._producer.produce(
            snapshot.key, snapshot.value, snapshot.headers, partial(self._finished, snapshot)
        )
        return None if failure is None else self._settle(snapshot, failure)

    def _finished(self, snapshot: _Snapshot, error: KafkaError | None, _message: Message) -> None:
        purged = error is not None and error.code() in PURGED
        # Explaining a failure may mean to read a certificate: not while publish() would wait for the lock.
        failure = None if error is None or purged else self._producer.failure(error)
        report: KafkaFailure | None = None
        with self._lock:
            if self._under_way.get(snapshot.key) is not snapshot:
                return
            if error is None:
                self._producer.delivered()
                report = self._settle(snapshot, None)
            elif purged:
                if snapshot.key in self._waiting or snapshot.expires_at <= self._clock():
                    self._producer.tally.replaced()
                else:
                    # Meant was one before it, which was delivered meanwhile: nothing newer follows.
                    self._waiting[snapshot.key] = snapshot
                report = self._settle(snapshot, None)
            else:
                report = self._settle(snapshot, failure)
        if report is not None:
            self._producer_thread.report(report)

    def _settle(self, snapshot: _Snapshot, failure: KafkaFailure | None) -> KafkaFailure | None:
        """A snapshot is no longer under way; send what waits behind it. The caller holds the lock."""
        del self._under_way[snapshot.key]
        self._changed.notify_all()
        report = failure if failure is not None and not snapshot.reported else None
        if report is not None:
            snapshot.reported = True
            self._producer.failed(report)
        following = self._waiting.pop(snapshot.key, None)
        if following is not None and failure is None and not self._producer_thread.stopped.is_set():
            return self._send(following)
        if following is not None:
            self._waiting[snapshot.key] = following
        elif failure is not None and failure.kind is Kind.TOPIC_MISSING:
            self._waiting[snapshot.key] = snapshot
        return report
