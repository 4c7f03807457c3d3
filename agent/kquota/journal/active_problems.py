"""The present troubles, in one table: a trouble is logged when it begins, every hour, and at its end."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kquota.journal.journal import Entry, MessageId
from kquota.kafka.errors import KafkaFailure

# A trouble that lasts is logged again this often, so that a journal that is rotated still names it.
STILL_SECONDS = 3600.0
# Kinds and brokers of one subject that are logged; a cluster that is down has as many as it has brokers.
MAX_OF_SUBJECT = 16


@dataclass(frozen=True, slots=True)
class ActiveProblem:
    """A present trouble: ``subject``, ``kind`` and ``broker`` identify it, and the sentence describes it.

    The ``message_id`` gives the level.
    """

    message_id: MessageId
    subject: str
    kind: str
    sentence: str = field(compare=False)
    broker: str = ""
    fields: Mapping[str, str] = field(default_factory=dict, compare=False)

    @staticmethod
    def of(
        subject: str, failure: KafkaFailure, message_id: MessageId = MessageId.KAFKA_TROUBLE
    ) -> ActiveProblem:
        """Return the trouble that a failure at Kafka is for a subject."""
        kind = f"{failure.kind} {failure.operation or ''}".strip()
        return ActiveProblem(message_id, subject, kind, failure.sentence, failure.broker or "")


@dataclass(slots=True)
class _Episode:
    trouble: ActiveProblem
    logged_at_seconds: float


class ActiveProblems:
    """The troubles that were logged and are not over.

    They are over when nothing is wrong with their subject any more: a client that tries one broker after the
    other fails at each in turn, and that is one episode of each of them.
    """

    def __init__(self) -> None:
        self._subjects: dict[str, dict[tuple[str, str], _Episode]] = {}

    def follow(self, standing: Iterable[ActiveProblem], now_seconds: float) -> list[Entry]:
        """Take in all present troubles; return those to be logged."""
        troubles = list(standing)
        entries: list[Entry] = []
        wrong = {trouble.subject for trouble in troubles}
        for subject in [subject for subject in self._subjects if subject not in wrong]:
            for episode in self._subjects.pop(subject).values():
                over = episode.trouble
                entries.append(Entry(logging.INFO, f"over: {over.sentence}", over.message_id, over.fields))
        for trouble in troubles:
            entries += self._log(trouble, now_seconds)
        return entries

    def _log(self, trouble: ActiveProblem, now_seconds: float) -> list[Entry]:
        episodes = self._subjects.setdefault(trouble.subject, {})
        episode = episodes.get((trouble.kind, trouble.broker))
        if episode is None:
            if len(episodes) >= MAX_OF_SUBJECT:
                return []
            episodes[trouble.kind, trouble.broker] = _Episode(trouble, now_seconds)
            sentence = trouble.sentence
        elif now_seconds - episode.logged_at_seconds >= STILL_SECONDS:
            episode.logged_at_seconds = now_seconds
            sentence = f"still: {trouble.sentence}"
        else:
            return []
        return [Entry(trouble.message_id.level, sentence, trouble.message_id, trouble.fields)]
