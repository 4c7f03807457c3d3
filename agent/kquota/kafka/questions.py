"""The reader's requests to the Admin client about its topic, made without waiting for the answers."""

import time
from collections.abc import Callable

from kquota.kafka.admin import AdminConnection, Pending, TopicFacts
from kquota.kafka.errors import KafkaFailure

_RETRY_SECONDS = 1.0
_LOOK_PAUSE_SECONDS = 0.3


class TopicQuestions:
    """Asks every `interval_seconds` what the topic is like, and where partitions end."""

    def __init__(
        self,
        admin: AdminConnection,
        topic: str,
        interval_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._topic = topic
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._facts: Pending[TopicFacts] | None = None
        self._facts_due = clock()
        self._facts_asked = clock() - _LOOK_PAUSE_SECONDS
        self._ends: dict[int, Pending[int]] = {}
        self._ends_due = clock()

    def look_soon(self) -> None:
        """Ask about the topic at once, but not in an endless hurry when that does not help."""
        soon = max(self._clock(), self._facts_asked + _LOOK_PAUSE_SECONDS)
        self._facts_due = min(self._facts_due, soon)

    def facts(self) -> TopicFacts | KafkaFailure | None:
        """The answer that has just come, if any."""
        now = self._clock()
        if self._facts is None:
            if now >= self._facts_due:
                self._facts_asked = now
                self._facts = self._admin.describe_topic(self._topic)
            return None
        if not self._facts.done():
            return None
        found, self._facts = self._facts.result(), None
        wait = min(_RETRY_SECONDS, self._interval_seconds)
        pause_seconds = wait if isinstance(found, KafkaFailure) else self._interval_seconds
        self._facts_due = now + self._admin.pause_seconds(pause_seconds)
        return found

    def ends(self, wanted: frozenset[int]) -> dict[int, int]:
        """Answers that have just come: where partitions ended; `wanted` are those to ask about."""
        found: dict[int, int] = {}
        for partition, pending in list(self._ends.items()):
            if pending.done():
                del self._ends[partition]
                end = pending.result()
                if not isinstance(end, KafkaFailure):
                    found[partition] = end
        now = self._clock()
        if now >= self._ends_due:
            to_ask = wanted - self._ends.keys() - found.keys()
            for partition in to_ask:
                self._ends[partition] = self._admin.end_offset(self._topic, partition)
            if to_ask:
                self._ends_due = now + _RETRY_SECONDS
        return found

    def forget_ends(self) -> None:
        """The topic is read from its beginning again: earlier answers are about other offsets."""
        self._ends.clear()
        self._ends_due = self._clock()
