"""Metrics of the present: the last cycle, and what is known of the agent itself, rendered at a scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from kquota.disks.observation import VolumeObservation
from kquota.formats.signature_headers import SigningMode
from kquota.guard.applied_state import AppliedScope, AppliedState, Mechanism, exempt_principals
from kquota.guard.report import CycleReport
from kquota.policy.decision import Decision, Mode, State, written_factor
from kquota.policy.events import HoldAction
from kquota.policy.ranking import volumes_of
from kquota.policy.volume import Volume, VolumeStatus
from kquota.retention.topic_sizes import Contents
from kquota.service.inodes_metrics import INODES_FIGURES, inodes_figures
from kquota.service.topic_sizes_metrics import of_contents

_VOLUME_FIGURES = {
    "capacity_bytes": "Size of the volume.",
    "consumed_bytes": "Space that is not available to the broker's user, reserved blocks included.",
    "soft_limit_bytes": "Consumption beyond which producers are slowed, whatever the type of the limit.",
    "hard_limit_bytes": "Consumption at which producers are paused, whatever the type of the limit.",
    "fill_bytes_per_second": (
        "How fast the volume filled in the last minutes; negative where it emptied, absent while not known."
    ),
    "seconds_to_soft": (
        "When the soft limit is reached if that goes on; absent for a volume that does not fill."
    ),
    "seconds_to_hard": (
        "When the hard limit is reached if that goes on; absent for a volume that does not fill."
    ),
    "headroom_ratio": "Share left between soft (1) and hard limit (0) of bytes or inodes, latch included.",
    "latched": "Whether a hard breach holds on until the release margin.",
    "cordoned": "Whether the agent has cordoned a log dir of it: Kafka places no new partition there.",
    "growing_in_pause": (
        "Whether the volume goes on filling in a PAUSE that is enforced: by replication, not by producers."
    ),
}
_MAX_LABEL = 120
_MAX_ORDERS = 64
_VOLUME_LABELS = ("volume", "mount_point", "role")


@dataclass(slots=True)
class Figures:
    """The results of the last cycle's followers.

    ``identity`` is the broker's id and the cluster's, ``growing`` the names of volumes that grow in PAUSE.
    """

    identity: tuple[str, str] | None = None
    growing: frozenset[str] = frozenset()
    contents: Contents | None = None
    cordoned: frozenset[str] = frozenset()
    connected: bool = False
    certificate_expiry_seconds: float | None = None
    signing: SigningMode | None = None
    certificate_revoked: bool | None = None
    authority_expiry_seconds: float | None = None
    revoked_certificates: int | None = None


class StateCollector(Collector):
    """The present, rendered at a scrape; each attribute is replaced whole."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.shown: tuple[CycleReport | None, Figures] = (None, Figures())
        self.last_good = False
        self.last_cycle_seconds: float | None = None

    def describe(self) -> Iterable[Metric]:
        """Return the names, so that no other metric can take one of them."""
        return [Metric(name, "", "unknown") for name in sorted(PRESENT_NAMES)]

    def collect(self) -> Iterator[Metric]:
        """Render the present; a metric whose value is not known has no series."""
        report, figures = self.shown  # one cycle, although another one may end meanwhile
        yield _info("kquota_build", "The agent's version.", ("version",), (self.version,))
        yield _info(
            "kquota_broker", "The broker this agent is for.", ("broker", "cluster_id"), figures.identity
        )
        yield _gauge(
            "kquota_connected", "Whether the publisher is connected to the cluster.", figures.connected
        )
        yield _gauge(
            "kquota_client_certificate_expiry_timestamp_seconds",
            "When the client certificate on disk expires.",
            figures.certificate_expiry_seconds,
        )
        yield _gauge(
            "kquota_signing_certificate_revoked",
            "Whether the certificate that signs the agent's records is revoked, so that none of them counts.",
            figures.certificate_revoked,
        )
        yield _gauge(
            "kquota_signing_authority_expiry_timestamp_seconds",
            "When the authority of the agent's certificate ends: after that no signature counts.",
            figures.authority_expiry_seconds,
        )
        yield _gauge(
            "kquota_signing_revoked_certificates",
            "How many certificates the list that is in force revokes.",
            figures.revoked_certificates,
        )
        yield _gauge(
            "kquota_config_last_good",
            "Whether the configuration in force is the last good one because the present one is bad.",
            self.last_good,
        )
        yield _gauge(
            "kquota_rival_agent",
            "Whether another agent claims to be this broker's.",
            report is not None and report.fold.rival is not None,
        )
        yield _gauge(
            "kquota_last_cycle_timestamp_seconds", "When the last cycle ended.", self.last_cycle_seconds
        )
        yield _one_of(
            "kquota_signing",
            "1 for the signing mode: off does not prove who has written a report or an order.",
            ("mode", SigningMode, figures.signing),
            figures.signing is not None,
        )
        yield from _of_decision(report)
        yield from _of_orders(report)
        yield from _of_volumes(report, figures)
        yield from of_contents(figures.contents)
        yield from _of_plug_in(report)


def _of_decision(report: CycleReport | None) -> Iterator[Metric]:
    decision = None if report is None else report.decision
    is_known = decision is not None
    yield _one_of(
        "kquota_state",
        "The decided state: 1 for the one in force.",
        ("state", State, decision.state if decision else None),
        is_known,
    )
    yield _gauge(
        "kquota_throttle_factor_ratio",
        "Share of their rate that producers keep: 1 all, 0 nothing.",
        decision.factor if decision else None,
    )
    scope = decision.scope if decision else None
    yield _gauges(
        "kquota_topics_held",
        "Topics that are held by a factor of their own; absent while all topics are held alike.",
        ("state",),
        [(("PAUSE",), scope.paused), (("THROTTLE",), len(scope.topics) - scope.paused)] if scope else [],
    )
    yield _gauge(
        "kquota_other_topics_factor_ratio",
        "Share of their rate that producers keep to topics without a factor of their own.",
        None if decision is None else written_factor(scope.others) if scope else decision.factor,
    )
    widened = None if decision is None else _widened(decision)
    yield _gauges(
        "kquota_scope_widened",
        "1 while the scope of the volume holds producers to topics that may be on no volume over a limit, and"
        " why: no-list where the topics on such a volume are not known, too-many where they can't be named.",
        ("cause",),
        [] if widened is None else [((widened,), 1)],
    )
    yield _gauge(
        "kquota_fallback",
        "Whether producers are held because a state is not known; 0 where the fallback action is open.",
        decision.fallback and decision.state is not State.OPEN if decision else None,
    )
    unknown = decision.undetermined if decision else ()
    covered = decision.covered if decision else ()
    yield _gauges(
        "kquota_undetermined",
        "1 for each broker whose state is not known, and why; an empty broker is the whole cluster.",
        ("broker", "cause"),
        [(("" if one.broker_id is None else str(one.broker_id), one.cause.value), 1) for one in unknown],
    )
    yield _gauges(
        "kquota_clock_behind_seconds",
        "How far the clock of a broker's host is behind, for each whose reports are too old because of it.",
        ("broker",),
        [
            ((str(one.broker_id),), one.clock_behind_seconds)
            for one in (*unknown, *(entry.silence for entry in covered))
        ],
    )
    yield _gauges(
        "kquota_covered_until_timestamp_seconds",
        "When a silent broker's first volume could be at its hard limit, for each that counts with a bound;"
        " +Inf where its volumes do not fill.",
        ("broker",),
        [((str(one.broker_id),), inf if one.until is None else one.until.timestamp()) for one in covered],
    )
    yield _one_of(
        "kquota_hold_active",
        "1 for the hold an operator has set.",
        ("action", HoldAction, decision.hold.action if decision and decision.hold else None),
        is_known,
    )
    yield _gauge(
        "kquota_decision_sequence",
        "Sequence of the decision written last.",
        report.sequence if report and is_known else None,
    )
    yield _gauge(
        "kquota_enforcing",
        "Whether decisions are enforced, not only observed.",
        report.enforcement.mode is Mode.ENFORCE if report and is_known else None,
    )


def _of_orders(report: CycleReport | None) -> Iterator[Metric]:
    orders = () if report is None else report.orders
    yield _gauges(
        "kquota_order_until_timestamp_seconds",
        "When an order in force ends: a hold (with its action), a quarantine or a maintenance (of a broker),"
        " or a relief plan (with its id as the action)."
        f" Author and reason are cut after {_MAX_LABEL} characters; there are {_MAX_ORDERS} orders at most.",
        ("order", "broker", "action", "actor", "reason"),
        [
            (
                (
                    one.order,
                    "" if one.broker_id is None else str(one.broker_id),
                    one.action,
                    _label(one.note.actor),
                    _label(one.note.reason),
                ),
                one.note.until.timestamp(),
            )
            for one in orders[:_MAX_ORDERS]
        ],
    )
    yield _gauge("kquota_orders", "Orders of operators in force.", None if report is None else len(orders))
    decision = None if report is None else report.decision
    yield _gauge(
        "kquota_held_open_over_hard_limit",
        "Volumes over their hard limit that producers can fill because an operator holds the cluster open.",
        None if decision is None else len(volumes_of(decision.overridden)),
    )
    yield _gauge(
        "kquota_unvouched_brokers",
        "Brokers whose reports do not count: the cluster never listed them, and no signature proves them.",
        None if decision is None else len(decision.unvouched),
    )


def _label(text: str) -> str:
    """Return an author or a reason, short enough for a label."""
    return text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…"


def _widened(decision: Decision) -> str | None:
    """Return why more topics are held than those on volumes over a limit, with the scope of the volume."""
    if decision.no_scope is not None and decision.no_scope.volume is None:
        return "too-many"
    # A hold or the fallback action pauses all topics or none: only a volume without a list slows all others.
    is_partly = decision.scope is not None and decision.scope.others < 1
    return "no-list" if decision.no_scope is not None or is_partly else None


def _of_volumes(report: CycleReport | None, shown: Figures) -> Iterator[Metric]:
    seen = () if report is None else report.observation.volumes
    own = {} if report is None or report.own is None else {one.name: one for one in report.own.volumes}
    labels = [(volume.name, volume.mount_point, volume.role.value) for volume in seen]
    figures = [
        _volume_figures(volume, own.get(volume.name))
        | {
            "growing_in_pause": volume.name in shown.growing,
            "cordoned": not shown.cordoned.isdisjoint(volume.log_dirs),
        }
        for volume in seen
    ]
    for name, documentation in (_VOLUME_FIGURES | INODES_FIGURES).items():
        values = [known.get(name) for known in figures]
        samples = zip(labels, values, strict=True)
        yield _gauges(f"kquota_volume_{name}", documentation, _VOLUME_LABELS, samples)
    yield _gauges(
        "kquota_volume_status",
        "1 for the status of the volume.",
        (*_VOLUME_LABELS, "status"),
        [
            ((*of_volume, choice.value), choice is volume.status)
            for of_volume, volume in zip(labels, seen, strict=True)
            for choice in VolumeStatus
        ],
    )


def _volume_figures(seen: VolumeObservation, volume: Volume | None) -> dict[str, float | None]:
    """Return the figures of a volume that are known, by name; limits as consumption, whatever their type."""
    figures: dict[str, float | None] = {"latched": volume is not None and volume.latched}
    if volume is None or seen.capacity_bytes is None:  # figures that were never known are not made up
        return figures
    headroom = volume.headroom()
    figures["capacity_bytes"] = volume.capacity_bytes
    figures["consumed_bytes"] = volume.consumed_bytes
    figures["fill_bytes_per_second"] = volume.fill_bytes_per_second
    figures["headroom_ratio"] = None if headroom is None else written_factor(headroom)
    figures["seconds_to_soft"], figures["seconds_to_hard"] = volume.seconds_to_limits()
    figures |= inodes_figures(volume)
    if volume.limits is not None:
        bounds = volume.limits.bounds(volume.capacity_bytes)
        figures["soft_limit_bytes"] = float(bounds.soft_bytes)
        figures["hard_limit_bytes"] = float(bounds.hard_bytes)
    return figures


def _of_plug_in(report: CycleReport | None) -> Iterator[Metric]:
    applied = report.applied if report and isinstance(report.applied, AppliedState) else None
    is_known = applied is not None
    yield _gauge(
        "kquota_cluster_topics",
        "Topics of the cluster, as the plug-in reports them; absent while it does not.",
        applied.cluster_topics if applied else None,
    )
    yield _gauge(
        "kquota_applied_starving_clients",
        "Clients that THROTTLE gives a turn less than once in 120 s, the time for which producers keep a"
        " record by default.",
        applied.starving if applied else None,
    )
    yield _gauge("kquota_applied_known", "Whether the broker's plug-in reports its state.", is_known)
    yield _gauge(
        "kquota_exempt_principals",
        "Exempt principals that the plug-in has seen in the last ten minutes, the agent's own included.",
        len(exempt_principals(applied)) if applied else None,
    )
    yield _gauge(
        "kquota_applied_verified",
        "Whether the plug-in was seen to exempt this agent, so that enforcing is safe.",
        report is not None and report.verified,
    )
    yield _one_of(
        "kquota_applied_state",
        "The state the plug-in applies.",
        ("state", State, applied.state if applied else None),
        is_known,
    )
    yield _one_of(
        "kquota_applied_scope",
        "The scope in force at the plug-in: topics where each topic has a factor of its own.",
        ("scope", AppliedScope, applied.scope if applied else None),
        is_known,
    )
    yield _gauge(
        "kquota_applied_factor_ratio",
        "The throttle factor the plug-in applies.",
        applied.factor if applied else None,
    )
    yield _gauge(
        "kquota_applied_sequence",
        "Sequence of the decision in force.",
        applied.sequence if applied else None,
    )
    yield _one_of(
        "kquota_applied_mechanism",
        "The mechanism that holds producers.",
        ("mechanism", Mechanism, applied.mechanism if applied else None),
        is_known,
    )
    yield _one_of(
        "kquota_applied_mode",
        "The mode in force at the plug-in: observe holds no producer, whatever the decision.",
        ("mode", Mode, applied.mode if applied else None),
        is_known,
    )
    errors = CounterMetricFamily(
        "kquota_applied_errors", "Errors of the plug-in since it started.", labels=("kind",)
    )
    for kind, count in sorted(applied.errors.items()) if applied else ():
        errors.add_metric((kind,), count)
    yield errors


def _info(name: str, documentation: str, labels: Sequence[str], values: Sequence[str] | None) -> Metric:
    family = InfoMetricFamily(name, documentation, labels=labels)
    if values is not None:
        family.add_metric(values, {})
    return family


def _gauge(name: str, documentation: str, value: float | None) -> Metric:
    return _gauges(name, documentation, (), [((), value)])


def _gauges(
    name: str,
    documentation: str,
    labels: Sequence[str],
    samples: Iterable[tuple[Sequence[str], float | None]],
) -> Metric:
    """Return a metric with one series for each value that is known."""
    family = GaugeMetricFamily(name, documentation, labels=labels)
    for values, value in samples:
        if value is not None:
            family.add_metric(values, float(value))
    return family


def _one_of(
    name: str, documentation: str, choice: tuple[str, type[StrEnum], StrEnum | None], is_known: bool
) -> Metric:
    """Return a metric with 1 for the chosen one; ``choice`` is the label, all values of it, and that one."""
    label, values, chosen = choice
    samples = [((value.value,), value is chosen) for value in values if is_known]
    return _gauges(name, documentation, (label,), samples)


PRESENT_NAMES = frozenset(
    family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
    for family in StateCollector("").collect()
)
