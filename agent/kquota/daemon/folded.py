"""The effect of one cycle's records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from kquota.core.records import Event, UsageEvent
from kquota.core.usage import UsageRecord
from kquota.core.view import FoldResult
from kquota.daemon.orders import OrderNews


@dataclass(slots=True)
class Folded:
    """The fate of one cycle's records, and which of them are news.

    ``malformed`` are sentences; ``rival`` is the last report of another agent for this broker. ``heard`` is,
    by broker, which instance of its agent reported last, and the time of its snapshot.
    """

    results: Counter[str] = field(default_factory=Counter)
    malformed: list[str] = field(default_factory=list)
    orders: list[OrderNews] = field(default_factory=list)
    rival: UsageRecord | None = None
    heard: dict[int, tuple[str | None, datetime]] = field(default_factory=dict)

    def hear(self, event: Event, result: FoldResult) -> None:
        """Take in who reported."""
        if result is FoldResult.USAGE and isinstance(event, UsageEvent):
            self.heard[event.broker_id] = event.record.instance_id, event.record.snapshot_at
