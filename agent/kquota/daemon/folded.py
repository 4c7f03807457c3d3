"""What one cycle's records were."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kquota.core.usage import UsageRecord
from kquota.daemon.orders import OrderNews


@dataclass(slots=True)
class Folded:
    """What became of one cycle's records, and which of them are news.

    ``malformed`` are sentences; ``rival`` is the last report of another agent for this broker.
    """

    results: Counter[str] = field(default_factory=Counter)
    malformed: list[str] = field(default_factory=list)
    orders: list[OrderNews] = field(default_factory=list)
    rival: UsageRecord | None = None
