"""From a cycle's report to metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kquota.applied.state import AppliedState
from kquota.core.decision import Mode, State, written_factor
from kquota.core.usage import Volume
from kquota.daemon.metrics import AgentMetrics, AppliedSample, DecisionSample, VolumeSample
from kquota.daemon.report import CycleReport


def measure(
    report: CycleReport, metrics: AgentMetrics, growing_in_pause: frozenset[str] = frozenset()
) -> None:
    """Show in the metrics what a cycle saw and did; volumes that grow in PAUSE are given by name."""
    metrics.records_read(report.folded)
    metrics.observed(_volumes(report, growing_in_pause))
    decision = report.decision
    if decision is not None:
        metrics.decided(
            DecisionSample(
                state=decision.state.value,
                factor=decision.factor,
                held_by_fallback=decision.fallback and decision.state is not State.OPEN,
                undetermined=[(entry.broker_id, entry.cause.value) for entry in decision.undetermined],
                hold=None if decision.hold is None else decision.hold.action.value,
                sequence=report.sequence,
                enforcing=report.enforcement.mode is Mode.ENFORCE,
                clock_behind_seconds={
                    entry.broker_id: entry.clock_behind_seconds
                    for entry in decision.undetermined
                    if entry.broker_id is not None and entry.clock_behind_seconds is not None
                },
            )
        )
    metrics.applied(_applied(report))
    if report.write_error is not None:
        metrics.decision_write_failed()
    metrics.rival_seen(report.rival_instance is not None)


def _volumes(report: CycleReport, growing: frozenset[str]) -> Iterator[VolumeSample]:
    if report.observation is None:
        return
    own = {} if report.own is None else {volume.name: volume for volume in report.own.volumes}
    for seen in report.observation.volumes:
        sample = VolumeSample(
            seen.name, seen.mount_point, seen.role, seen.status, growing_in_pause=seen.name in growing
        )
        volume = own.get(seen.name)
        if volume is not None:
            sample = replace(sample, latched=volume.latched)
            if seen.capacity_bytes is not None:  # figures that were never known are not made up
                sample = _with_figures(sample, volume)
        yield sample


def _with_figures(sample: VolumeSample, volume: Volume) -> VolumeSample:
    headroom = volume.headroom()
    sample = replace(
        sample,
        capacity_bytes=volume.capacity_bytes,
        consumed_bytes=volume.consumed_bytes,
        fill_bytes_per_second=volume.fill_bytes_per_second,
        headroom_ratio=None if headroom is None else written_factor(headroom),
    )
    if volume.limits is None:
        return sample
    bounds = volume.limits.bounds(volume.capacity_bytes)
    seconds_to_soft, seconds_to_hard = volume.seconds_to_limits()
    return replace(
        sample,
        soft_limit_bytes=float(bounds.soft_bytes),
        hard_limit_bytes=float(bounds.hard_bytes),
        seconds_to_soft=seconds_to_soft,
        seconds_to_hard=seconds_to_hard,
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
        mode=applied.mode.value,
        errors=applied.errors,
    )
