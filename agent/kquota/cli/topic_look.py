"""The topics that grow on this host's broker, read now and then while a user watches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from kquota.disks.topic_growth import SPAN_SECONDS, TopicGrowthQuestion

# An answer takes SPAN_SECONDS; listing the segments of thousands of partitions is not free.
_EVERY_SECONDS = 10.0


class TopicLook:
    """Asks again and again, one question at a time; never blocks."""

    def __init__(self, log_dirs: Sequence[str]) -> None:
        self._log_dirs = log_dirs
        self._question: TopicGrowthQuestion | None = None
        self._due = time.monotonic()
        self._growing: list[dict[str, object]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._question is not None:
            self._question.close()

    def growing(self) -> list[dict[str, object]] | None:
        """Return topics with their rates as of the last answer, the fastest first; None while not known."""
        now = time.monotonic()
        if self._question is None:
            if now >= self._due:
                self._ask(now)
        elif (answer := self._question.answer()) is not None:
            self._question = None
            self._growing = [
                {"topic": topic, "bytes_per_second": grown / SPAN_SECONDS}
                for topic, grown in answer.grown_bytes
            ]
        return self._growing

    def _ask(self, now: float) -> None:
        self._due = now + _EVERY_SECONDS
        try:
            self._question = TopicGrowthQuestion(self._log_dirs)
        except OSError:
            self._growing = None  # no process to be had: it is known of no topic
