"""Metrics of the present: the last cycle, and what is known of the agent itself, rendered at a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from kquota.apply.applied_state import AppliedState, Mechanism
from kquota.core.decision import Mode, State, written_factor
from kquota.core.records import HoldAction
from kquota.core.usage import VolumeStatus
from kquota.daemon.report import CycleReport
from kquota.observe.observation import VolumeObservation


class Present(Collector):
    """The present, rendered at a scrape; each attribute is replaced whole.

    ``identity`` is the broker's id and the cluster's, ``growing`` the names of volumes that grow in PAUSE.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self.identity: tuple[str, str] | None = None
        self.report: CycleReport | None = None
        self.growing: frozenset[str] = frozenset()
        self.connected = False
        self.last_good = False
        self.last_cycle_seconds: float | None = None
        self.certificate_expiry_seconds: float | None = None

    @property
    def decided(self) -> CycleReport | None:
        """The last cycle, if it has decided."""
        return None if self.report is None or self.report.decision is None else self.report

    @property
    def applied(self) -> AppliedState | None:
        """The state that the broker's plug-in reports; None where it reports nothing about the present."""
        applied = None if self.report is None else self.report.applied
        return applied if isinstance(applied, AppliedState) else None

    def describe(self) -> Iterable[Metric]:
        """Return the names, so that no other metric can take one of them."""
        return [Metric(name, "", "unknown") for name in sorted(PRESENT_NAMES)]

    def collect(self) -> Iterator[Metric]:
        """Render the present."""
        for figure in FIGURES:
            family = _FAMILIES[figure.kind](figure.name, figure.documentation, labels=figure.labels)
            for labels, value in figure.samples(self):
                family.add_metric(labels, value)
            yield family


Samples = Iterable[tuple[Sequence[str], Any]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric; ``samples`` yields the values of its labels with its value, nothing while that is unknown."""

    name: str
    documentation: str
    samples: Callable[[Present], Samples]
    labels: tuple[str, ...] = ()
    kind: Literal["gauge", "counter", "info"] = "gauge"

    @property
    def series(self) -> str:
        """The name of its series."""
        return self.name + {"gauge": "", "counter": "_total", "info": "_info"}[self.kind]


_FAMILIES: Mapping[str, Callable[..., Any]] = {
    "gauge": GaugeMetricFamily,
    "counter": CounterMetricFamily,
    "info": InfoMetricFamily,
}


def _value(value: float | None) -> Samples:
    return () if value is None else [((), float(value))]


def _one_of(choices: Iterable[str], chosen: str | None) -> Samples:
    return [((str(choice),), float(choice == chosen)) for choice in choices]


def _of(part: str, samples: Callable[[Any], Samples]) -> Callable[[Present], Samples]:
    """Return the samples of one part of the present, an attribute of it; none while that is not known."""

    def of_part(present: Present) -> Samples:
        known = getattr(present, part)
        return () if known is None else samples(known)

    return of_part


def _volume(name: str, documentation: str) -> Figure:
    """Return the metric of one figure of each volume."""

    def samples(present: Present) -> Samples:
        for seen in _observed(present):
            if (value := _volume_figures(present, seen).get(name)) is not None:
                yield (seen.name, seen.mount_point, seen.role.value), float(value)

    return Figure(f"kquota_volume_{name}", documentation, samples, _VOLUME_LABELS)


def _observed(present: Present) -> tuple[VolumeObservation, ...]:
    observation = None if present.report is None else present.report.observation
    return () if observation is None else observation.volumes


def _volume_figures(present: Present, seen: VolumeObservation) -> Mapping[str, float | None]:
    """Return the figures of a volume that are known, by name; limits as consumption, whatever their type."""
    own = None if present.report is None else present.report.own
    volume = next((one for one in own.volumes if one.name == seen.name), None) if own else None
    figures: dict[str, float | None] = {
        "latched": volume is not None and volume.latched,
        "growing_in_pause": seen.name in present.growing,
    }
    if volume is None or seen.capacity_bytes is None:  # figures that were never known are not made up
        return figures
    headroom = volume.headroom()
    figures["capacity_bytes"] = volume.capacity_bytes
    figures["consumed_bytes"] = volume.consumed_bytes
    figures["fill_bytes_per_second"] = volume.fill_bytes_per_second
    figures["headroom_ratio"] = None if headroom is None else written_factor(headroom)
    figures["seconds_to_soft"], figures["seconds_to_hard"] = volume.seconds_to_limits()
    if volume.limits is not None:
        bounds = volume.limits.bounds(volume.capacity_bytes)
        figures["soft_limit_bytes"] = float(bounds.soft_bytes)
        figures["hard_limit_bytes"] = float(bounds.hard_bytes)
    return figures


_VOLUME_LABELS = ("volume", "mount_point", "role")
FIGURES = (
    Figure(
        "kquota_build",
        "The agent's version.",
        lambda present: [((present.version,), {})],
        ("version",),
        "info",
    ),
    Figure(
        "kquota_broker",
        "The broker this agent is for.",
        _of("identity", lambda identity: [(identity, {})]),
        ("broker", "cluster_id"),
        "info",
    ),
    Figure(
        "kquota_connected",
        "Whether the publisher is connected to the cluster.",
        lambda present: _value(present.connected),
    ),
    Figure(
        "kquota_client_certificate_expiry_timestamp_seconds",
        "When the client certificate on disk expires.",
        lambda present: _value(present.certificate_expiry_seconds),
    ),
    Figure(
        "kquota_config_last_good",
        "Whether the configuration in force is the last good one because the present one is bad.",
        lambda present: _value(present.last_good),
    ),
    Figure(
        "kquota_rival_agent",
        "Whether another agent claims to be this broker's.",
        lambda present: _value(present.report is not None and present.report.fold.rival is not None),
    ),
    Figure(
        "kquota_last_cycle_timestamp_seconds",
        "When the last cycle ended.",
        lambda present: _value(present.last_cycle_seconds),
    ),
    Figure(
        "kquota_state",
        "The decided state: 1 for the one in force.",
        _of("decided", lambda report: _one_of(State, report.decision.state)),
        ("state",),
    ),
    Figure(
        "kquota_throttle_factor_ratio",
        "Share of their rate that producers keep: 1 all, 0 nothing.",
        _of("decided", lambda report: _value(report.decision.factor)),
    ),
    Figure(
        "kquota_fallback",
        "Whether producers are held because a state is not known; 0 where the fallback action is open.",
        _of(
            "decided",
            lambda report: _value(report.decision.fallback and report.decision.state is not State.OPEN),
        ),
    ),
    Figure(
        "kquota_undetermined",
        "1 for each broker whose state is not known, and why; an empty broker is the whole cluster.",
        _of(
            "decided",
            lambda report: [
                (("" if entry.broker_id is None else str(entry.broker_id), entry.cause.value), 1.0)
                for entry in report.decision.undetermined
            ],
        ),
        ("broker", "cause"),
    ),
    Figure(
        "kquota_clock_behind_seconds",
        "How far the clock of a broker's host is behind, for each whose state is not known because of it.",
        _of(
            "decided",
            lambda report: [
                ((str(entry.broker_id),), entry.clock_behind_seconds)
                for entry in report.decision.undetermined
                if entry.broker_id is not None and entry.clock_behind_seconds is not None
            ],
        ),
        ("broker",),
    ),
    Figure(
        "kquota_hold_active",
        "1 for the hold an operator has set.",
        _of(
            "decided",
            lambda report: _one_of(HoldAction, report.decision.hold and report.decision.hold.action),
        ),
        ("action",),
    ),
    Figure(
        "kquota_decision_sequence",
        "Sequence of the decision written last.",
        _of("decided", lambda report: _value(report.sequence)),
    ),
    Figure(
        "kquota_enforcing",
        "Whether decisions are enforced, not only observed.",
        _of("decided", lambda report: _value(report.enforcement.mode is Mode.ENFORCE)),
    ),
    _volume("capacity_bytes", "Size of the volume."),
    _volume("consumed_bytes", "Space that is not available to the broker's user, reserved blocks included."),
    _volume(
        "soft_limit_bytes", "Consumption beyond which producers are slowed, whatever the type of the limit."
    ),
    _volume("hard_limit_bytes", "Consumption at which producers are paused, whatever the type of the limit."),
    _volume(
        "fill_bytes_per_second",
        "How fast the volume filled in the last minutes; negative where it emptied, absent while not known.",
    ),
    _volume(
        "seconds_to_soft",
        "When the soft limit is reached if that goes on; absent for a volume that does not fill.",
    ),
    _volume(
        "seconds_to_hard",
        "When the hard limit is reached if that goes on; absent for a volume that does not fill.",
    ),
    _volume("headroom_ratio", "Share left between soft (1) and hard limit (0), latch included."),
    _volume("latched", "Whether a hard breach holds on until the release margin."),
    _volume(
        "growing_in_pause",
        "Whether the volume goes on filling in a PAUSE that is enforced: by replication, not by producers.",
    ),
    Figure(
        "kquota_volume_status",
        "1 for the status of the volume.",
        lambda present: [
            ((seen.name, seen.mount_point, seen.role.value, choice.value), float(choice is seen.status))
            for seen in _observed(present)
            for choice in VolumeStatus
        ],
        (*_VOLUME_LABELS, "status"),
    ),
    Figure(
        "kquota_applied_known",
        "Whether the broker's plug-in reports its state.",
        lambda present: _value(present.applied is not None),
    ),
    Figure(
        "kquota_applied_verified",
        "Whether the plug-in was seen to exempt this agent, so that enforcing is safe.",
        lambda present: _value(present.report is not None and present.report.verified),
    ),
    Figure(
        "kquota_applied_state",
        "The state the plug-in applies.",
        _of("applied", lambda applied: _one_of(State, applied.state)),
        ("state",),
    ),
    Figure(
        "kquota_applied_factor_ratio",
        "The throttle factor the plug-in applies.",
        _of("applied", lambda applied: _value(applied.factor)),
    ),
    Figure(
        "kquota_applied_sequence",
        "Sequence of the decision in force.",
        _of("applied", lambda applied: _value(applied.sequence)),
    ),
    Figure(
        "kquota_applied_mechanism",
        "The mechanism that holds producers.",
        _of("applied", lambda applied: _one_of(Mechanism, applied.mechanism)),
        ("mechanism",),
    ),
    Figure(
        "kquota_applied_mode",
        "The mode in force at the plug-in: observe holds no producer, whatever the decision.",
        _of("applied", lambda applied: _one_of(Mode, applied.mode)),
        ("mode",),
    ),
    Figure(
        "kquota_applied_errors",
        "Errors of the plug-in since it started.",
        _of(
            "applied",
            lambda applied: [((kind,), float(count)) for kind, count in sorted(applied.errors.items())],
        ),
        ("kind",),
        "counter",
    ),
)
PRESENT_NAMES = frozenset(figure.series for figure in FIGURES)
