"""Metrics of the present: values that are replaced as a whole, and their rendering at a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from kquota.applied.state import Mechanism
from kquota.core.decision import Mode, State
from kquota.core.records import HoldAction
from kquota.core.usage import VolumeStatus


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

    @property
    def labels(self) -> tuple[str, str, str]:
        """The values of the labels."""
        return self.volume, self.mount_point, self.role


@dataclass(frozen=True, slots=True)
class DecisionSample:
    """The decision; ``undetermined`` holds (broker id or None for the cluster, cause).

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
    """The state that the broker's plug-in reports; ``verified`` whether it was seen to exempt this agent."""

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
        for figure in _FIGURES:
            family = _FAMILIES[figure.kind](figure.name, figure.documentation, labels=figure.labels)
            for labels, value in figure.samples(self):
                family.add_metric(labels, value)
            yield family


Samples = Iterable[tuple[Sequence[str], Any]]


@dataclass(frozen=True, slots=True)
class _Figure:
    """A metric; ``samples`` yields the values of its labels with its value, nothing while that is unknown."""

    name: str
    documentation: str
    samples: Callable[[Present], Samples]
    labels: tuple[str, ...] = ()
    kind: Literal["gauge", "counter", "info"] = "gauge"

    @property
    def series(self) -> str:
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


def _of_decision(samples: Callable[[DecisionSample], Samples]) -> Callable[[Present], Samples]:
    return lambda present: () if present.decision is None else samples(present.decision)


def _of_applied(samples: Callable[[AppliedSample], Samples]) -> Callable[[Present], Samples]:
    return lambda present: () if present.applied is None else samples(present.applied)


def _volume(attribute: str, documentation: str) -> _Figure:
    """Return the metric that is an attribute of each volume."""

    def samples(present: Present) -> Samples:
        for volume in present.volumes:
            if (value := getattr(volume, attribute)) is not None:
                yield volume.labels, float(value)

    return _Figure(f"kquota_volume_{attribute}", documentation, samples, _VOLUME_LABELS)


_VOLUME_LABELS = ("volume", "mount_point", "role")
_FIGURES = (
    _Figure(
        "kquota_build",
        "The agent's version.",
        lambda present: [((), {"version": present.version})],
        kind="info",
    ),
    _Figure(
        "kquota_broker",
        "The broker this agent is for.",
        lambda present: (
            []
            if present.identity is None
            else [((), dict(zip(("broker", "cluster_id"), present.identity, strict=True)))]
        ),
        kind="info",
    ),
    _Figure(
        "kquota_connected",
        "Whether the publisher is connected to the cluster.",
        lambda present: _value(present.connected),
    ),
    _Figure(
        "kquota_client_certificate_expiry_timestamp_seconds",
        "When the client certificate on disk expires.",
        lambda present: _value(present.certificate_expiry_seconds),
    ),
    _Figure(
        "kquota_config_last_good",
        "Whether the configuration in force is the last good one because the present one is bad.",
        lambda present: _value(present.last_good),
    ),
    _Figure(
        "kquota_rival_agent",
        "Whether another agent claims to be this broker's.",
        lambda present: _value(present.rival),
    ),
    _Figure(
        "kquota_last_cycle_timestamp_seconds",
        "When the last cycle ended.",
        lambda present: _value(present.last_cycle_seconds),
    ),
    _Figure(
        "kquota_state",
        "The decided state: 1 for the one in force.",
        _of_decision(lambda decision: _one_of(State, decision.state)),
        ("state",),
    ),
    _Figure(
        "kquota_throttle_factor_ratio",
        "Share of their rate that producers keep: 1 all, 0 nothing.",
        _of_decision(lambda decision: _value(decision.factor)),
    ),
    _Figure(
        "kquota_fallback",
        "Whether producers are held because a state is not known; 0 where the fallback action is open.",
        _of_decision(lambda decision: _value(decision.held_by_fallback)),
    ),
    _Figure(
        "kquota_undetermined",
        "1 for each broker whose state is not known, and why; an empty broker is the whole cluster.",
        _of_decision(
            lambda decision: [
                (("" if broker_id is None else str(broker_id), str(cause)), 1.0)
                for broker_id, cause in decision.undetermined
            ]
        ),
        ("broker", "cause"),
    ),
    _Figure(
        "kquota_clock_behind_seconds",
        "How far the clock of a broker's host is behind, for each whose state is not known because of it.",
        _of_decision(
            lambda decision: [
                ((str(broker_id),), seconds) for broker_id, seconds in decision.clock_behind_seconds.items()
            ]
        ),
        ("broker",),
    ),
    _Figure(
        "kquota_hold_active",
        "1 for the hold an operator has set.",
        _of_decision(lambda decision: _one_of(HoldAction, decision.hold)),
        ("action",),
    ),
    _Figure(
        "kquota_decision_sequence",
        "Sequence of the decision written last.",
        _of_decision(lambda decision: _value(decision.sequence)),
    ),
    _Figure(
        "kquota_enforcing",
        "Whether decisions are enforced, not only observed.",
        _of_decision(lambda decision: _value(decision.enforcing)),
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
    _Figure(
        "kquota_volume_status",
        "1 for the status of the volume.",
        lambda present: [
            ((*volume.labels, choice.value), float(choice == volume.status))
            for volume in present.volumes
            for choice in VolumeStatus
        ],
        (*_VOLUME_LABELS, "status"),
    ),
    _Figure(
        "kquota_applied_known",
        "Whether the broker's plug-in reports its state.",
        lambda present: _value(present.applied is not None),
    ),
    _Figure(
        "kquota_applied_verified",
        "Whether the plug-in was seen to exempt this agent, so that enforcing is safe.",
        lambda present: _value(present.applied is not None and present.applied.verified),
    ),
    _Figure(
        "kquota_applied_state",
        "The state the plug-in applies.",
        _of_applied(lambda applied: _one_of(State, applied.state)),
        ("state",),
    ),
    _Figure(
        "kquota_applied_factor_ratio",
        "The throttle factor the plug-in applies.",
        _of_applied(lambda applied: _value(applied.factor)),
    ),
    _Figure(
        "kquota_applied_sequence",
        "Sequence of the decision in force.",
        _of_applied(lambda applied: _value(applied.sequence)),
    ),
    _Figure(
        "kquota_applied_mechanism",
        "The mechanism that holds producers.",
        _of_applied(lambda applied: _one_of(Mechanism, applied.mechanism)),
        ("mechanism",),
    ),
    _Figure(
        "kquota_applied_mode",
        "The mode in force at the plug-in: observe holds no producer, whatever the decision.",
        _of_applied(lambda applied: _one_of(Mode, applied.mode)),
        ("mode",),
    ),
    _Figure(
        "kquota_applied_errors",
        "Errors of the plug-in since it started.",
        _of_applied(
            lambda applied: [((kind,), float(count)) for kind, count in sorted(applied.errors.items())]
        ),
        ("kind",),
        "counter",
    ),
)
PRESENT_NAMES = frozenset(figure.series for figure in _FIGURES)
