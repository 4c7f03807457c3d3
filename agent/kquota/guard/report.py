"""The observations and actions of one cycle."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from kquota.disks.observation import Observation
from kquota.guard.applied_state import AppliedState, AppliedUnknown
from kquota.guard.enforcement import Enforcement
from kquota.guard.inputs import ClusterNews, Moment
from kquota.guard.orders import OrderNews
from kquota.policy.decision import Decision, State
from kquota.policy.events import RefusedEvent
from kquota.policy.standing_orders import StandingOrder
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import VolumeStatus


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


@dataclass(frozen=True, slots=True)
class CycleReport:
    """The observations and actions of one cycle, for the journal, the status, the metrics and the history.

    ``decision`` is None while the agent still waits for its first look at the cluster.
    """

    moment: Moment
    sentence: str
    decision: Decision | None
    enforcement: Enforcement
    own: UsageRecord | None
    observation: Observation
    applied: AppliedState | AppliedUnknown | None
    news: ClusterNews
    verified: bool = False
    fold: Folded = field(default_factory=Folded)
    orders: tuple[StandingOrder, ...] = ()
    sequence: int = 0
    written: bool = False
    write_error: str | None = None

    @property
    def is_calm(self) -> bool:
        """Whether nothing is held or unknown: then events change the decision, and seldom the time alone.

        The probe process reports a volume that comes to a limit, and the Kafka clients report what they read.
        """
        decision, own, applied = self.decision, self.own, self.applied
        return (
            decision is not None
            and decision.state is State.OPEN
            and not (decision.hold or decision.undetermined or decision.covered)
            and own is not None
            and all(volume.status is VolumeStatus.OK and not volume.latched for volume in own.volumes)
            and isinstance(applied, AppliedState)
            and applied.state is State.OPEN
            and self.write_error is None
        )
