"""The fate of the records that one cycle folds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from kquota.guard.orders import OrderNews
from kquota.policy.events import RefusedEvent
from kquota.policy.usage import UsageRecord


@dataclass(slots=True)
class Folded:
    """The fate of one cycle's records, and which of them are news.

    ``malformed`` are sentences; ``refusals`` counts records refused for their signature, by cause, and
    ``refused`` are those that are news. ``rival`` is the last report of another agent for this broker.
    ``heard`` is, by broker, which instance of its agent reported last, and the time of its snapshot.
    """

    results: Counter[str] = field(default_factory=Counter)
    malformed: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    refused: list[RefusedEvent] = field(default_factory=list)
    orders: list[OrderNews] = field(default_factory=list)
    rival: UsageRecord | None = None
    heard: dict[int, tuple[str | None, datetime]] = field(default_factory=dict)

    @property
    def rival_instance(self) -> str | None:
        """The other agent's instance; None where there is no other agent."""
        return None if self.rival is None else self.rival.instance_id or "unknown"
