"""The present problems, in one table: a problem is logged when it begins, every hour, and at its end."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kquota.journal.journal import Entry, MessageId
from kquota.kafka.errors import KafkaFailure

# A problem that lasts is logged again this often, so that a journal that is rotated still names it.
STILL_SECONDS = 3600.0
# Kinds and brokers of one subject that are logged; a cluster that is down has as many as it has brokers.
MAX_OF_SUBJECT = 16


@dataclass(frozen=True, slots=True)
class ActiveProblem:
    """A present problem: ``subject``, ``kind`` and ``broker`` identify it, and the sentence describes it.

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
        """Return the problem that a failure at Kafka is for a subject."""
        kind = f"{failure.kind} {failure.operation or ''}".strip()
        return ActiveProblem(message_id, subject, kind, failure.sentence, failure.broker or "")


class ActiveProblems:
    """The problems that were logged and are not over.

    They are over when nothing is wrong with their subject any more: a client that tries one broker after the
    other fails at each in turn, and that is one episode of each of them. A sentence that several
    subjects report is logged once, and is over when it is so for all of them.
    """

    def __init__(self) -> None:
        self._subjects: dict[str, dict[tuple[str, str], ActiveProblem]] = {}
        self._logged_at_seconds: dict[str, float] = {}

    def follow(self, standing: Iterable[ActiveProblem], now_seconds: float) -> list[Entry]:
        """Take in all present problems; return those to be logged."""
        problems = list(standing)
        wrong = {problem.subject for problem in problems}
        ended = [
            problem
            for subject in [subject for subject in self._subjects if subject not in wrong]
            for problem in self._subjects.pop(subject).values()
        ]
        entries = [entry for problem in problems for entry in self._log(problem, now_seconds)]
        lasting = {begun.sentence for episodes in self._subjects.values() for begun in episodes.values()}
        over = {problem.sentence: problem for problem in ended if problem.sentence not in lasting}
        for sentence in over:
            del self._logged_at_seconds[sentence]
        return [
            *(
                Entry(logging.INFO, f"over: {one.sentence}", one.message_id, one.fields)
                for one in over.values()
            ),
            *entries,
        ]

    def _log(self, problem: ActiveProblem, now_seconds: float) -> list[Entry]:
        episodes = self._subjects.setdefault(problem.subject, {})
        begun = episodes.get((problem.kind, problem.broker))
        sentence = problem.sentence
        if begun is None:
            if len(episodes) >= MAX_OF_SUBJECT:
                return []
            begun = episodes[problem.kind, problem.broker] = problem
        if begun.sentence in self._logged_at_seconds:
            if now_seconds - self._logged_at_seconds[begun.sentence] < STILL_SECONDS:
                return []
            sentence = f"still: {sentence}"
        self._logged_at_seconds[begun.sentence] = now_seconds
        return [Entry(problem.message_id.level, sentence, problem.message_id, problem.fields)]
