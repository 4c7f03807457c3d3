"""The progress of an ingest, for people."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass
class Progress:
    """Counts records by kind; `None` counts the malformed ones. Reports a line per batch."""

    report: Callable[[str], None]
    batches: int = 0
    raw_seconds: float = 0.0
    """Of the time of the batches, for the raw records."""
    counts: Counter[str | None] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)

    @property
    def records(self) -> int:
        """How many records were read, malformed ones included."""
        return self.counts.total()

    def appended(
        self, batch: int, counts: Mapping[str | None, int], seconds: float, raw_seconds: float
    ) -> None:
        """Count a batch that is in the tables, and report it; `raw_seconds` were for the raw records."""
        self.batches += 1
        self.raw_seconds += raw_seconds
        self.counts.update(counts)
        size = sum(counts.values())
        self.report(
            f"batch {batch}: {size:,} records in {seconds:.1f} s ({size / max(seconds, 0.001):,.0f}/s), "
            f"{raw_seconds:.1f} s for the raw ones: {in_words(counts)}"
        )

    def summary(self) -> str:
        """Return the work done, in one sentence."""
        seconds = time.monotonic() - self.started
        if not self.records:
            return "nothing new in the topic"
        return (
            f"{self.records:,} records in {self.batches} batches and {seconds:.0f} s "
            f"({self.records / max(seconds, 0.001):,.0f}/s), {self.raw_seconds:.1f} s for the raw ones: "
            f"{in_words(self.counts)}"
        )


def in_words(counts: Mapping[str | None, int]) -> str:
    """Return counts by kind as text, the largest first: `3 usage, 1 malformed`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0] or ""))
    return ", ".join(f"{count:,} {kind or 'malformed'}" for kind, count in ordered) or "none"
