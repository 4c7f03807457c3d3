"""The applied-state file: the state of the broker's plug-in (``schemas/applied.schema.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

from kquota.applied.clients import ClientFigures, parse_client_figures
from kquota.applied.fields import Fields, MalformedAppliedState
from kquota.core.decision import Mode, State
from kquota.core.strict_json import printable
from kquota.host.boot_clock import BootMoment
from kquota.host.safe_read import Refusal, Refused, read_json_object

# The plug-in writes it once a second; a broker in a long garbage collection is not lost at once.
MAX_AGE_SECONDS = 10.0
_WHAT = "applied-state file"


class Mechanism(StrEnum):
    """The mechanism that holds producers on a broker."""

    NONE = "none"
    GOVERNOR = "governor"
    FENCE = "fence"


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

    principal: str
    client_ids: tuple[str, ...]
    last_seen_uptime_ms: int


@dataclass(frozen=True, slots=True)
class AppliedState:
    """The state of the plug-in of one broker when it wrote the file.

    ``mode`` is the one in force: enforce only where decision and broker agree on it. ``broker_mode`` is the
    broker's own, its property kquota.mode. ``sequence`` is the decision's, or None while the plug-in has none
    in force; ``lost`` then has the reason. ``errors`` counts each kind since the plug-in started. ``clients``
    is None where it does not report them.
    """

    schema_version: int
    plugin_version: str
    decision_schema_versions: tuple[int, ...]
    boot_id: str
    written_uptime_ms: int
    started_uptime_ms: int
    cluster_id: str | None
    broker_id: int
    sequence: int | None
    lost: str | None
    mode: Mode
    broker_mode: Mode
    state: State
    factor: float
    mechanism: Mechanism
    exempt: tuple[ExemptSeen, ...]
    offline_log_dirs: tuple[str, ...]
    errors: Mapping[str, int]
    clients: ClientFigures | None = None

    def age_seconds(self, now: BootMoment) -> float:
        """Return how long ago it was written, within this boot."""
        return (now.uptime_ms - self.written_uptime_ms) / 1000

    def to_usage_document(self) -> dict[str, object]:
        """Return the part of it that a usage record carries, its field ``Applied``."""
        return {
            "State": self.state.value,
            "Factor": self.factor,
            "Sequence": self.sequence,
            "Mechanism": self.mechanism.value,
            "Mode": self.mode.value,
        }


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
    except MalformedAppliedState as error:
        return AppliedUnknown(UnknownCause.MALFORMED, f"the {_WHAT} {path} is refused: {error}")
    if applied.boot_id != now.boot_id:
        return AppliedUnknown(
            UnknownCause.OTHER_BOOT, f"the {_WHAT} {path} is from another boot of this host"
        )
    if applied.broker_id != broker_id or (
        None not in (cluster_id, applied.cluster_id) and applied.cluster_id != cluster_id
    ):
        whose = f"broker {applied.broker_id} of cluster {printable(applied.cluster_id or 'unknown')}"
        return AppliedUnknown(UnknownCause.OTHER_BROKER, f"the {_WHAT} {path} is from {whose}")
    age_seconds = applied.age_seconds(now)
    if age_seconds > max_age_seconds:
        return AppliedUnknown(UnknownCause.STALE, f"the {_WHAT} {path} is {age_seconds:.0f} s old")
    return applied


def parse_applied_state(document: Mapping[str, object]) -> AppliedState:
    """Read the content of the file; unknown fields are ignored.

    Raises:
        MalformedAppliedState: a field is missing, of the wrong type, or contradicts another.
    """
    fields = Fields(document)
    fields.integer("pid", minimum=1)
    fields.mapping("governor")
    applied = AppliedState(
        schema_version=fields.integer("schema_version", minimum=1),
        plugin_version=fields.text("plugin_version"),
        decision_schema_versions=tuple(
            Fields({"version": version}).integer("version", minimum=1)
            for version in fields.entries("decision_schema_versions")
        ),
        boot_id=fields.text("boot_id"),
        written_uptime_ms=fields.integer("written_uptime_ms"),
        started_uptime_ms=fields.integer("started_uptime_ms"),
        cluster_id=None if fields.is_null("cluster_id") else fields.text("cluster_id"),
        broker_id=fields.integer("broker_id"),
        sequence=None if fields.is_null("sequence") else fields.integer("sequence"),
        lost=None if fields.is_null("lost") else printable(fields.text("lost")),
        mode=Mode(fields.one_of("mode", Mode)),
        broker_mode=Mode(fields.one_of("broker_mode", Mode)),
        state=State(fields.one_of("state", State)),
        factor=fields.ratio("factor"),
        mechanism=Mechanism(fields.one_of("mechanism", Mechanism)),
        exempt=tuple(_exempt(Fields.of(entry, "exempt")) for entry in fields.entries("exempt")),
        offline_log_dirs=tuple(
            Fields({"offline_log_dirs": log_dir}).text("offline_log_dirs")
            for log_dir in fields.entries("offline_log_dirs")
        ),
        errors={
            error.text("kind"): error.integer("count")
            for error in (Fields.of(entry, "errors") for entry in fields.entries("errors"))
        },
        clients=None if fields.is_absent("clients") else parse_client_figures(fields.mapping("clients")),
    )
    _check_consistency(applied)
    return applied


def _check_consistency(applied: AppliedState) -> None:
    if (applied.lost is None) != (applied.sequence is not None):
        raise MalformedAppliedState("either sequence or lost must be null")
    if applied.lost is not None and applied.state is State.THROTTLE:
        raise MalformedAppliedState("a lost decision can't throttle")
    if State.of_headroom(Fraction(applied.factor)) is not applied.state:
        raise MalformedAppliedState(f"factor {applied.factor:g} is not {applied.state}")
    held = applied.mechanism is not Mechanism.NONE
    if held and (applied.state is State.OPEN or applied.mode is Mode.OBSERVE):
        raise MalformedAppliedState(
            f"mechanism {applied.mechanism} in state {applied.state}, mode {applied.mode}"
        )
    if applied.mode is Mode.ENFORCE and applied.broker_mode is Mode.OBSERVE:
        raise MalformedAppliedState("mode is enforce although broker_mode is observe")


def _exempt(fields: Fields) -> ExemptSeen:
    principal = fields.text("principal")
    if ":" not in principal:
        raise MalformedAppliedState("exempt.principal is not Type:name")
    return ExemptSeen(
        principal=printable(principal),
        client_ids=tuple(
            client_id for client_id in fields.entries("client_ids") if isinstance(client_id, str)
        ),
        last_seen_uptime_ms=fields.integer("last_seen_uptime_ms"),
    )
