"""What keeps a reader from reading at the moment, and when to say so."""

from enum import StrEnum

from kquota.kafka.client import TELL_AGAIN_SECONDS
from kquota.kafka.errors import KafkaFailure


class Source(StrEnum):
    """Where a failure showed. A success at one place says nothing about another."""

    CONNECTION = "connection"
    FETCH = "fetch"
    DESCRIBE = "describe"


class Troubles:
    """The failures that last, by source."""

    def __init__(self) -> None:
        self._lasting: set[Source] = set()
        self._told: dict[Source, tuple[str, float]] = {}

    def __contains__(self, source: Source) -> bool:
        return source in self._lasting

    def failed(self, source: Source, failure: KafkaFailure, at_monotonic: float) -> bool:
        """Note a failure; whether it is to be told: it is new, or it was last told a second ago."""
        self._lasting.add(source)
        sentence, told_at = self._told.get(source, ("", 0.0))
        if sentence == failure.sentence and at_monotonic - told_at < TELL_AGAIN_SECONDS:
            return False
        self._told[source] = (failure.sentence, at_monotonic)
        return True

    def succeeded(self, *sources: Source) -> bool:
        """Note a success; whether it has ended the last of the troubles."""
        before = bool(self._lasting)
        for source in sources:
            self._lasting.discard(source)
            self._told.pop(source, None)
        return before and not self._lasting
