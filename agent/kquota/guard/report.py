"""The observations and actions of one cycle."""

from __future__ import annotations

from dataclasses import dataclass, field

from kquota.disks.observation import Observation
from kquota.guard.applied_state import AppliedState, AppliedUnknown
from kquota.guard.enforcement import Enforcement
from kquota.guard.folded import Folded
from kquota.guard.inputs import ClusterNews, Moment
from kquota.policy.decision import Decision, State
from kquota.policy.standing_orders import StandingOrder
from kquota.policy.usage import UsageRecord
from kquota.policy.volume import VolumeStatus


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
