"""The usage topic or the orders topic: what its records mean, and how far it has been read.

An orders topic that can't be read, or is refused, does not change the decision on volumes: known orders go on
until they end. Without any order the volumes alone decide, which protects the disks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.sentences import excess_sentence
from kquota.formats.topic_replay import TopicReplay
from kquota.guard.folded import Folded
from kquota.kafka.topic_records import CaughtUp, TopicEvent, TopicRestarted
from kquota.policy.events import Event, RefusedEvent
from kquota.policy.view import FoldResult


class FoldedRecord(NamedTuple):
    """A record that no later one has superseded; what a reading from the beginning finds ``is_news`` not."""

    record: TopicRecord
    event: Event
    result: FoldResult
    is_news: bool


class TopicState:
    """One of our topics, fed with what its reader hands over, in that order.

    ``caught_up`` is whether it is read to its end; ``was_read`` whether it once was, so that there is a view.
    """

    def __init__(self, kind: TopicKind, future_tolerance: timedelta, verifier: RecordVerifier | None) -> None:
        """Begin with nothing read."""
        self.kind = kind
        self.replay = TopicReplay(future_tolerance, verifier)
        self.caught_up = self.was_read = False
        self._waiting = deque[TopicEvent]()

    def take(self, event: TopicEvent) -> None:
        """Keep an event until ``fold``."""
        self._waiting.append(event)

    @property
    def restarts(self) -> bool:
        """Whether the topic begins again with what ``fold`` has not yet taken in."""
        return any(isinstance(event, TopicRestarted) for event in self._waiting)

    def configure(
        self, future_tolerance: timedelta, verifier: RecordVerifier | None, *, forget: bool
    ) -> None:
        """Go on with other settings, and another reader, which begins again."""
        self.replay.configure(future_tolerance, verifier)
        self._waiting.clear()
        self._begin_again(same_topic=True, forget=forget)

    def fold(self, now: datetime, fold: Folded) -> Iterator[FoldedRecord]:
        """Take in the events, and yield the records among them, counting the fate of each."""
        while self._waiting:
            match self._waiting[0]:
                case TopicRecord():
                    yield from self._fold_records(now, fold)
                case TopicRestarted(same_topic=same_topic):
                    self._waiting.popleft()
                    self._begin_again(same_topic=same_topic)
                case CaughtUp():
                    self._waiting.popleft()
                    self.caught_up = self.was_read = True
                    self.replay.reached_end(now)

    def _begin_again(self, *, same_topic: bool, forget: bool = False) -> None:
        """Read from the beginning; what another topic of the same name contains is news."""
        self.replay.begin_again(same_topic=same_topic, forget=forget)
        self.caught_up = self.caught_up and not same_topic

    def _fold_records(self, now: datetime, fold: Folded) -> Iterator[FoldedRecord]:
        """Take in records up to the next other event: of a backlog, many are settled by later ones."""
        records: list[TopicRecord] = []
        while self._waiting and isinstance(record := self._waiting[0], TopicRecord):
            records.append(record)
            self._waiting.popleft()
        events = self.replay.read(records, now, backlog=not self.caught_up)
        for record, event in zip(records, events, strict=True):
            if event is None:
                fold.results[FoldResult.SUPERSEDED.value] += 1
                continue
            result = self.replay.fold(event, now)
            fold.results[result.value] += 1
            if isinstance(event, RefusedEvent):
                fold.refusals[event.cause.value] += 1
            if result is FoldResult.EXCESS:
                fold.malformed.append(excess_sentence(record.key))
            yield FoldedRecord(record, event, result, self.caught_up and result is not FoldResult.EXCESS)
