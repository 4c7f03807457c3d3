"""Metrics of the present: values that are replaced as a whole, and their rendering at a scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from kquota.apply.applied_state import Mechanism
from kquota.core.decision import Mode, State
from kquota.core.records import HoldAction
from kquota.core.usage import VolumeStatus

_VOLUME_LABELS = ("volume", "mount_point", "role")

# One figure of a VolumeSample each: attribute, name of the metric, what it means.
_VOLUME_FIGURES = (
    ("capacity_bytes", "kquota_volume_capacity_bytes", "Size of the volume."),
    (
        "consumed_bytes",
        "kquota_volume_consumed_bytes",
        "What is not available to the broker's user, reserved blocks included.",
    ),
    (
        "soft_limit_bytes",
        "kquota_volume_soft_limit_bytes",
        "Consumption beyond which producers are slowed, whatever the type of the limit.",
    ),
    (
        "hard_limit_bytes",
        "kquota_volume_hard_limit_bytes",
        "Consumption at which producers are paused, whatever the type of the limit.",
    ),
    (
        "fill_bytes_per_second",
        "kquota_volume_fill_bytes_per_second",
        "How fast the volume filled in the last minutes; negative where it emptied, absent while not known.",
    ),
    (
        "seconds_to_soft",
        "kquota_volume_seconds_to_soft",
        "When the soft limit is reached if that goes on; absent for a volume that does not fill.",
    ),
    (
        "seconds_to_hard",
        "kquota_volume_seconds_to_hard",
        "When the hard limit is reached if that goes on; absent for a volume that does not fill.",
    ),
    (
        "headroom_ratio",
        "kquota_volume_headroom_ratio",
        "What is left between soft (1) and hard limit (0), latch included.",
    ),
    (
        "latched",
        "kquota_volume_latched",
        "Whether a hard breach holds on until the release margin.",
    ),
    (
        "growing_in_pause",
        "kquota_volume_growing_in_pause",
        "Whether the volume goes on filling in a PAUSE that is enforced: by replication, not by producers.",
    ),
)


PRESENT_NAMES = frozenset(
    {
        "kquota_build_info",
        "kquota_broker_info",
        "kquota_connected",
        "kquota_client_certificate_expiry_timestamp_seconds",
        "kquota_config_last_good",
        "kquota_rival_agent",
        "kquota_last_cycle_timestamp_seconds",
        "kquota_state",
        "kquota_throttle_factor_ratio",
        "kquota_fallback",
        "kquota_undetermined",
        "kquota_clock_behind_seconds",
        "kquota_hold_active",
        "kquota_decision_sequence",
        "kquota_enforcing",
        *(name for _, name, _ in _VOLUME_FIGURES),
        "kquota_volume_status",
        "kquota_applied_known",
        "kquota_applied_verified",
        "kquota_applied_state",
        "kquota_applied_factor_ratio",
        "kquota_applied_sequence",
        "kquota_applied_mechanism",
        "kquota_applied_mode",
        "kquota_applied_errors_total",
    }
)


@dataclass(frozen=True, slots=True)
class VolumeSample:
    """One volume of this broker; a figure is None where it is not known."""

    volume: str
    mount_point: str
    role: str  # data | metadata
    status: str  # ok | offline | failed
    capacity_bytes: int | None = None
    consumed_bytes: int | None = None
    soft_limit_bytes: float | None = None  # of consumption, whatever the limit's type
    hard_limit_bytes: float | None = None
    fill_bytes_per_second: float | None = None
    seconds_to_soft: float | None = None
    seconds_to_hard: float | None = None
    headroom_ratio: float | None = None
    latched: bool = False
    growing_in_pause: bool = False


@dataclass(frozen=True, slots=True)
class DecisionSample:
    """What was decided; ``undetermined`` holds (broker id or None for the cluster, cause).

    ``clock_behind_seconds`` is by broker, of those that are undetermined because of it.
    """

    state: str
    factor: float
    held_by_fallback: bool
    undetermined: Sequence[tuple[int | None, str]]
    hold: str | None  # pause | open
    sequence: int
    enforcing: bool
    clock_behind_seconds: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AppliedSample:
    """What the broker's plug-in says it does; ``verified`` is whether it was seen to exempt this agent."""

    state: str
    factor: float
    sequence: int | None
    verified: bool
    mechanism: str
    mode: str  # observe | enforce: the one in force
    errors: Mapping[str, int] = field(default_factory=dict)  # by kind, since the plug-in's start


class Present(Collector):
    """The present as values, rendered at a scrape; each attribute is replaced whole."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.identity: tuple[str, str] | None = None
        self.volumes: tuple[VolumeSample, ...] = ()
        self.decision: DecisionSample | None = None
        self.applied: AppliedSample | None = None
        self.connected = False
        self.last_good = False
        self.rival = False
        self.last_cycle_seconds: float | None = None
        self.certificate_expiry_seconds: float | None = None

    def describe(self) -> Iterable[Metric]:
        """Return the names, so that no other metric can take one of them."""
        return [Metric(name, "", "unknown") for name in sorted(PRESENT_NAMES)]

    def collect(self) -> Iterator[Metric]:
        """Render the present."""
        yield InfoMetricFamily("kquota_build", "The agent's version.", {"version": self.version})
        if self.identity is not None:
            broker, cluster_id = self.identity
            yield InfoMetricFamily(
                "kquota_broker",
                "The broker this agent is for.",
                {"broker": broker, "cluster_id": cluster_id},
            )
        yield _gauge("kquota_connected", "Whether the publisher is connected to the cluster.", self.connected)
        if self.certificate_expiry_seconds is not None:
            yield _gauge(
                "kquota_client_certificate_expiry_timestamp_seconds",
                "When the client certificate on disk expires.",
                self.certificate_expiry_seconds,
            )
        yield _gauge(
            "kquota_config_last_good",
            "Whether the configuration in force is the last good one because the present one is bad.",
            self.last_good,
        )
        yield _gauge("kquota_rival_agent", "Whether another agent claims to be this broker's.", self.rival)
        if self.last_cycle_seconds is not None:
            yield _gauge(
                "kquota_last_cycle_timestamp_seconds", "When the last cycle ended.", self.last_cycle_seconds
            )
        if self.decision is not None:
            yield from _decision_metrics(self.decision)
        yield from _volume_metrics(self.volumes)
        yield from _applied_metrics(self.applied)


def _gauge(name: str, documentation: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, value=float(value))


def _one_of(
    name: str, documentation: str, label: str, choices: Iterable[str], chosen: str
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, documentation, labels=[label])
    for choice in choices:
        family.add_metric([str(choice)], float(choice == chosen))
    return family


def _decision_metrics(decision: DecisionSample) -> Iterator[Metric]:
    yield _one_of(
        "kquota_state", "What is decided: 1 for the state in force.", "state", State, decision.state
    )
    yield _gauge(
        "kquota_throttle_factor_ratio", "What is left to producers: 1 all, 0 nothing.", decision.factor
    )
    yield _gauge(
        "kquota_fallback",
        "Whether producers are held because a state is not known; 0 where the fallback action is open.",
        decision.held_by_fallback,
    )
    undetermined = GaugeMetricFamily(
        "kquota_undetermined",
        "1 for each broker whose state is not known, and why; an empty broker is the whole cluster.",
        labels=["broker", "cause"],
    )
    for broker_id, cause in decision.undetermined:
        undetermined.add_metric(["" if broker_id is None else str(broker_id), str(cause)], 1.0)
    yield undetermined
    behind = GaugeMetricFamily(
        "kquota_clock_behind_seconds",
        "How far the clock of a broker's host is behind, for each whose state is not known because of it.",
        labels=["broker"],
    )
    for broker_id, seconds in decision.clock_behind_seconds.items():
        behind.add_metric([str(broker_id)], seconds)
    yield behind
    yield _one_of(
        "kquota_hold_active",
        "1 for the hold an operator has set.",
        "action",
        HoldAction,
        decision.hold or "",
    )
    yield _gauge("kquota_decision_sequence", "Sequence of the decision written last.", decision.sequence)
    yield _gauge("kquota_enforcing", "Whether decisions are enforced, not only observed.", decision.enforcing)


def _volume_metrics(volumes: Sequence[VolumeSample]) -> Iterator[Metric]:
    for attribute, name, documentation in _VOLUME_FIGURES:
        family = GaugeMetricFamily(name, documentation, labels=_VOLUME_LABELS)
        for sample in volumes:
            value = getattr(sample, attribute)
            if value is not None:
                family.add_metric(_volume_labels(sample), float(value))
        yield family
    status = GaugeMetricFamily(
        "kquota_volume_status", "1 for the status of the volume.", labels=[*_VOLUME_LABELS, "status"]
    )
    for sample in volumes:
        for choice in VolumeStatus:
            status.add_metric([*_volume_labels(sample), choice.value], float(choice == sample.status))
    yield status


def _volume_labels(sample: VolumeSample) -> list[str]:
    return [sample.volume, sample.mount_point, sample.role]


def _applied_metrics(applied: AppliedSample | None) -> Iterator[Metric]:
    yield _gauge(
        "kquota_applied_known", "Whether the broker's plug-in says what it does.", applied is not None
    )
    yield _gauge(
        "kquota_applied_verified",
        "Whether the plug-in was seen to exempt this agent, so that enforcing is safe.",
        applied is not None and applied.verified,
    )
    if applied is None:
        return
    yield _one_of("kquota_applied_state", "What the plug-in applies.", "state", State, applied.state)
    yield _gauge("kquota_applied_factor_ratio", "The throttle factor the plug-in applies.", applied.factor)
    if applied.sequence is not None:
        yield _gauge("kquota_applied_sequence", "Sequence of the decision in force.", applied.sequence)
    yield _one_of(
        "kquota_applied_mechanism",
        "What holds producers.",
        "mechanism",
        Mechanism,
        applied.mechanism,
    )
    yield _one_of(
        "kquota_applied_mode",
        "The mode in force at the plug-in: observe holds nobody, whatever is decided.",
        "mode",
        Mode,
        applied.mode,
    )
    errors = CounterMetricFamily(
        "kquota_applied_errors", "Errors of the plug-in since it started.", labels=["kind"]
    )
    for kind, count in sorted(applied.errors.items()):
        errors.add_metric([kind], float(count))
    yield errors
