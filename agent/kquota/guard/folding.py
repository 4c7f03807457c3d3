"""Folding the records of one topic, and counting the fate of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from kquota.formats.records import TopicRecord
from kquota.formats.sentences import excess_sentence
from kquota.formats.topic_replay import TopicReplay
from kquota.guard.report import Folded
from kquota.policy.events import Event, RefusedEvent
from kquota.policy.view import FoldResult


def fold_records(
    reading: TopicReplay, records: Sequence[TopicRecord], now: datetime, *, backlog: bool, fold: Folded
) -> Iterator[tuple[TopicRecord, Event, FoldResult]]:
    """Fold these records of one topic, and yield each that a later one has not superseded, with its result.

    The caller decides which of them are news: all of a ``backlog`` are from before its reading began.
    """
    events = reading.read(records, now, backlog=backlog)
    for record, event in zip(records, events, strict=True):
        if event is None:
            fold.results[FoldResult.SUPERSEDED.value] += 1
            continue
        result = reading.fold(event, now)
        fold.results[result.value] += 1
        if isinstance(event, RefusedEvent):
            fold.refusals[event.cause.value] += 1
        if result is FoldResult.EXCESS:
            fold.malformed.append(excess_sentence(record.key))
        yield record, event, result
