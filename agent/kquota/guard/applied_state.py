"""The applied-state file: the state of the broker's plug-in (``schemas/applied.schema.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, TypeAdapter

from kquota.formats.strict_json import printable
from kquota.guard.applied_clients import ClientFigures
from kquota.guard.applied_fields import Count, Positive, Ratio, Shown, Text
from kquota.host.boot_clock import BootMoment
from kquota.host.documents import MalformedDocument, read_as
from kquota.host.safe_read import Refusal, Refused, read_json_object
from kquota.policy.decision import Mode, State

# The plug-in writes it once a second; a broker in a long garbage collection is not lost at once.
MAX_AGE_SECONDS = 10.0
_WHAT = "applied-state file"


class Mechanism(StrEnum):
    """The mechanism that holds producers on a broker."""

    NONE = "none"
    GOVERNOR = "governor"
    FENCE = "fence"


class AppliedScope(StrEnum):
    """Whether all topics are held alike."""

    CLUSTER = "cluster"
    TOPICS = "topics"


class UnknownCause(StrEnum):
    """Why it is not known what the broker applies."""

    MISSING = "missing"
    REFUSED = "refused"
    MALFORMED = "malformed"
    OTHER_BOOT = "other-boot"
    STALE = "stale"
    OTHER_BROKER = "other-broker"


@dataclass(frozen=True, slots=True)
class AppliedUnknown:
    """The applied state of the broker is not known; the reason is a sentence."""

    cause: UnknownCause
    reason: str


@dataclass(frozen=True, slots=True)
class ExemptSeen:
    """An exempt principal that the plug-in has seen lately, with the client ids it used."""

    principal: Annotated[Shown, Field(pattern=":")]
    client_ids: tuple[str, ...]
    last_seen_uptime_ms: Count


@dataclass(frozen=True, slots=True)
class LeadersUsed:
    """Whose leaders of partitions the plug-in divides by (agent, broker or none), and when they were seen."""

    source: Text
    seen_uptime_ms: Count | None = None


@dataclass(frozen=True, slots=True)
class LogDirUsed:
    """A log dir that the broker runs with: its path, and the device and inode that it leads to there.

    Both are None where the broker could not look at it.
    """

    path: Text
    device: Count | None = None
    inode: Count | None = None


def _by_kind(entries: object) -> object:
    try:
        return {entry["kind"]: entry["count"] for entry in entries}  # type: ignore[attr-defined]
    except (TypeError, KeyError):
        raise ValueError("each entry must be an object with kind and count") from None


def _known_scope(scope: object) -> object:
    """Take a scope of a newer version for the widest."""
    return scope if scope == AppliedScope.TOPICS else AppliedScope.CLUSTER


@dataclass(frozen=True, slots=True)
class AppliedState:
    """The state of the plug-in of one broker when it wrote the file.

    ``mode`` is the one in force: enforce only where decision and broker agree on it. ``broker_mode`` is the
    broker's own, its property kquota.mode. ``sequence`` is the decision's, or None while the plug-in has none
    in force; ``lost`` then has the reason. ``kept`` is why a decision holds on after its lease. ``errors``
    counts each kind since the plug-in started. ``clients`` is None where it does not report them, and so is
    ``cluster_topics``, how many topics the cluster has. ``leaders`` is None where it
    divides nothing by the leaders of partitions. ``log_dirs`` are those that the broker runs with, None in a
    file of a version without them. ``starving`` is how many clients have their turns further apart than
    producers keep a record; a version that does not count them has none.
    """

    schema_version: Positive
    plugin_version: Text
    decision_schema_versions: tuple[Positive, ...]
    boot_id: Text
    written_uptime_ms: Count
    started_uptime_ms: Count
    cluster_id: Text | None
    broker_id: Count
    sequence: Count | None
    lost: Annotated[Shown | None, Field(min_length=1)]
    mode: Mode
    broker_mode: Mode
    state: State
    factor: Ratio
    mechanism: Mechanism
    exempt: tuple[ExemptSeen, ...]
    offline_log_dirs: tuple[Text, ...]
    errors: Annotated[Mapping[Text, Count], BeforeValidator(_by_kind)]
    clients: ClientFigures | None = None
    scope: Annotated[AppliedScope, BeforeValidator(_known_scope)] = AppliedScope.CLUSTER
    cluster_topics: Count | None = None
    kept: Annotated[Shown | None, Field(min_length=1)] = None
    leaders: LeadersUsed | None = None
    log_dirs: tuple[LogDirUsed, ...] | None = None
    starving: Count = 0

    def age_seconds(self, now: BootMoment) -> float:
        """Return how long ago it was written, within this boot."""
        return (now.uptime_ms - self.written_uptime_ms) / 1000

    @property
    def log_dir_places(self) -> dict[str, tuple[int, int] | None]:
        """The device and inode of each log dir that the broker runs with, by path; None where not known."""
        return {
            used.path: None if used.device is None or used.inode is None else (used.device, used.inode)
            for used in self.log_dirs or ()
        }

    def to_usage_document(self) -> dict[str, object]:
        """Return the part of it that a usage record carries, its field ``Applied``."""
        return {
            "State": self.state.value,
            "Factor": self.factor,
            "Sequence": self.sequence,
            "Mechanism": self.mechanism.value,
            "Mode": self.mode.value,
            "Scope": self.scope.value,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written(AppliedState):
    """The whole file: it must have these fields, too, though the agent does not use them."""

    pid: Positive
    governor: Mapping[str, object]


_WRITTEN = TypeAdapter(_Written)


def read_applied_state(
    path: Path,
    now: BootMoment,
    *,
    broker_id: int,
    cluster_id: str | None = None,
    max_age_seconds: float = MAX_AGE_SECONDS,
) -> AppliedState | AppliedUnknown:
    """Read what this broker applies now, or return why that is not known.

    A file of another boot, of another broker or cluster, or older than ``max_age_seconds`` proves nothing
    about now. A cluster id is compared where both sides know one.
    """
    document = read_json_object(path, _WHAT)
    if isinstance(document, Refusal):
        causes = {Refused.MISSING: UnknownCause.MISSING, Refused.MALFORMED: UnknownCause.MALFORMED}
        return AppliedUnknown(causes.get(document.cause, UnknownCause.REFUSED), document.reason)
    try:
        applied = parse_applied_state(document)
    except MalformedDocument as error:
        return AppliedUnknown(UnknownCause.MALFORMED, f"the {_WHAT} {path} is refused: {error}")
    whose = f"broker {applied.broker_id} of cluster {printable(applied.cluster_id or 'unknown')}"
    other_cluster = None not in (cluster_id, applied.cluster_id) and applied.cluster_id != cluster_id
    age_seconds = applied.age_seconds(now)
    for unfit, cause, why in (
        (applied.boot_id != now.boot_id, UnknownCause.OTHER_BOOT, "from another boot of this host"),
        (applied.broker_id != broker_id or other_cluster, UnknownCause.OTHER_BROKER, f"from {whose}"),
        (age_seconds > max_age_seconds, UnknownCause.STALE, f"{age_seconds:.0f} s old"),
    ):
        if unfit:
            return AppliedUnknown(cause, f"the {_WHAT} {path} is {why}")
    return applied


def exempt_principals(applied: AppliedState) -> list[str]:
    """Return the exempt principals that the plug-in has seen in the last ten minutes, by name."""
    return sorted({seen.principal for seen in applied.exempt})


def parse_applied_state(document: Mapping[str, object]) -> AppliedState:
    """Read the content of the file; unknown fields are ignored.

    Raises:
        MalformedDocument: a field is missing, of the wrong type, or contradicts another.
    """
    applied = read_as(_WRITTEN, document)
    _check_consistency(applied)
    return applied


def _check_consistency(applied: AppliedState) -> None:
    if (applied.lost is None) != (applied.sequence is not None):
        raise MalformedDocument("either sequence or lost must be null")
    if applied.lost is not None and applied.state is State.THROTTLE:
        raise MalformedDocument("a lost decision can't throttle")
    if State.of_headroom(Fraction(applied.factor)) is not applied.state:
        raise MalformedDocument(f"factor {applied.factor:g} is not {applied.state}")
    held = applied.mechanism is not Mechanism.NONE
    if held and (applied.state is State.OPEN or applied.mode is Mode.OBSERVE):
        raise MalformedDocument(
            f"mechanism {applied.mechanism} in state {applied.state}, mode {applied.mode}"
        )
    if any((used.device is None) != (used.inode is None) for used in applied.log_dirs or ()):
        raise MalformedDocument("log_dirs: device and inode must both be there, or neither")
    if applied.mode is Mode.ENFORCE and applied.broker_mode is Mode.OBSERVE:
        raise MalformedDocument("mode is enforce although broker_mode is observe")
