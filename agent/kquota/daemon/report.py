"""The observations and actions of one cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kquota.applied.state import AppliedState, AppliedUnknown
from kquota.core.decision import Decision
from kquota.core.usage import UsageRecord
from kquota.daemon.clocks import Moment
from kquota.daemon.enforcement import Enforcement
from kquota.daemon.orders import OrderNews
from kquota.daemon.ports import ClusterNews
from kquota.observe.observation import Observation


@dataclass(frozen=True, slots=True)
class CycleReport:
    """The observations and actions of one cycle, for the journal, the status, the metrics and the history.

    ``heard`` is, by broker, which instance of its agent reported last, and the time of its snapshot.
    ``decision`` is None while the agent still waits for its first look at the cluster.
    """

    moment: Moment
    sentence: str
    decision: Decision | None
    enforcement: Enforcement
    own: UsageRecord | None
    observation: Observation | None
    applied: AppliedState | AppliedUnknown | None
    news: ClusterNews
    verified: bool = False
    folded: Counter[str] = field(default_factory=Counter)
    malformed: tuple[str, ...] = ()
    orders: tuple[OrderNews, ...] = ()
    heard: Mapping[int, tuple[str | None, datetime]] = field(default_factory=dict)
    rival_instance: str | None = None
    sequence: int = 0
    published: bool = False
    written: bool = False
    write_error: str | None = None
