"""From a cycle's report to metrics."""

from __future__ import annotations

from collections.abc import Iterator

from kquota.apply.applied_state import AppliedState
from kquota.core.decision import Mode, written_factor
from kquota.daemon.metrics import AgentMetrics, AppliedSample, DecisionSample, VolumeSample
from kquota.daemon.report import CycleReport


def measure(report: CycleReport, metrics: AgentMetrics) -> None:
    """Show in the metrics what a cycle saw and did."""
    metrics.records_read(report.folded)
    metrics.observed(_volumes(report))
    decision = report.decision
    if decision is not None:
        metrics.decided(
            DecisionSample(
                state=decision.state.value,
                factor=decision.factor,
                fallback=decision.fallback,
                undetermined=[(entry.broker_id, entry.cause.value) for entry in decision.undetermined],
                hold=None if decision.hold is None else decision.hold.action.value,
                sequence=report.sequence,
                enforcing=report.enforcement.mode is Mode.ENFORCE,
            )
        )
    metrics.applied(_applied(report))
    if report.write_error is not None:
        metrics.decision_write_failed()
    metrics.rival_seen(report.rival_instance is not None)


def _volumes(report: CycleReport) -> Iterator[VolumeSample]:
    if report.observation is None:
        return
    own = {} if report.own is None else {volume.name: volume for volume in report.own.volumes}
    for seen in report.observation.volumes:
        volume = own.get(seen.name)
        headroom = None if volume is None or seen.capacity_bytes is None else volume.headroom()
        yield VolumeSample(
            volume=seen.name,
            mount_point=seen.mount_point,
            role=seen.role,
            status=seen.status,
            capacity_bytes=seen.capacity_bytes,
            consumed_bytes=seen.consumed_bytes,
            headroom_ratio=None if headroom is None else written_factor(headroom),
            latched=volume is not None and volume.latched,
        )


def _applied(report: CycleReport) -> AppliedSample | None:
    applied = report.applied
    if not isinstance(applied, AppliedState):
        return None
    return AppliedSample(
        state=applied.state.value,
        factor=applied.factor,
        sequence=applied.sequence,
        verified=report.verified,
        mechanism=applied.mechanism.value,
        errors=applied.errors,
    )
