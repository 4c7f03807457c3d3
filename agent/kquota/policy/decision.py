"""The decision: state, factor, and why; and its JSON form (``schemas/decision.schema.json``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction

from kquota.policy.events import Hold, OrderTerms
from kquota.policy.limit_breaches import Resource
from kquota.policy.timestamps import format_utc
from kquota.policy.topic_scope import NoScope, TopicScope

SCHEMA_VERSION = 1
FACTOR_DECIMALS = 6
# A cluster of thousands of volumes must not make the file too large for its reader.
MAX_LISTED = 64
_UNIT = 10**FACTOR_DECIMALS


class State(StrEnum):
    """The permission of producers; there are exactly these three."""

    OPEN = "OPEN"
    THROTTLE = "THROTTLE"
    PAUSE = "PAUSE"

    @staticmethod
    def of_headroom(headroom: Fraction) -> State:
        """Return the state for an exact headroom."""
        if headroom >= 1:
            return State.OPEN
        return State.THROTTLE if headroom > 0 else State.PAUSE


class FallbackAction(StrEnum):
    """The action while the state of a known broker can't be determined."""

    PAUSE = "pause"
    OPEN = "open"
    # A silent broker counts with its last figures and the most that it may have filled since; else as PAUSE.
    BOUNDED = "bounded"


class Scope(StrEnum):
    """The producers that are held while a volume is over a limit."""

    CLUSTER = "cluster"
    VOLUME = "volume"  # those that write to a topic with a partition on it


class Mode(StrEnum):
    """Whether a decision is carried out or only reported."""

    OBSERVE = "observe"
    ENFORCE = "enforce"


class Cause(StrEnum):
    """Why producers are held back; of equal headrooms the earlier cause comes first."""

    HOLD = "hold"
    HARD = "hard"
    LATCHED = "latched"
    OWN = "own"
    FALLBACK = "fallback"
    SOFT = "soft"
    BOUNDED = "bounded"  # a silent broker's volume may have come that far


class UndeterminedCause(StrEnum):
    """Why the state of a broker, or (broker id None) of the cluster, is not known."""

    MISSING = "missing"
    STALE = "stale"
    CLOCK = "clock"  # stale by its own clock alone
    TOMBSTONE = "tombstone"
    MALFORMED = "malformed"
    FUTURE = "future"
    FAILED = "failed"
    INVALID_LIMIT = "invalid-limit"
    REVOKED = "revoked"
    TOPIC_REFUSED = "topic-refused"
    NOT_READ = "not-read"
    NO_BROKER_LIST = "no-broker-list"


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that holds producers back."""

    cause: Cause
    headroom: Fraction
    broker_id: int | None = None
    volume: str | None = None
    resource: Resource = Resource.BYTES

    def to_document(self) -> dict[str, object]:
        """Return the JSON form; bytes are the resource where it has none."""
        document: dict[str, object] = {
            "broker_id": self.broker_id,
            "volume": self.volume,
            "cause": self.cause.value,
            "headroom": written_factor(self.headroom),
        }
        if self.resource is not Resource.BYTES:
            document["resource"] = self.resource.value
        return document


@dataclass(frozen=True, slots=True)
class Undetermined:
    """A broker (or, with None, the cluster) whose state is not known.

    ``clock_behind_seconds`` is given with the cause ``clock``. It differs a little from record to record,
    which makes no other entry.
    """

    broker_id: int | None
    cause: UndeterminedCause
    clock_behind_seconds: int | None = field(default=None, compare=False)

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        document: dict[str, object] = {"broker_id": self.broker_id, "cause": self.cause.value}
        if self.clock_behind_seconds is not None:
            document["clock_behind_seconds"] = self.clock_behind_seconds
        return document


@dataclass(frozen=True, slots=True)
class Covered:
    """A silent broker that is taken at its last figures and a bound on its growth, and until when.

    ``until`` is when its first volume would reach its hard limit at that rate; None for a rate of 0.
    """

    silence: Undetermined
    until: datetime | None

    @property
    def broker_id(self) -> int | None:
        """The broker's id."""
        return self.silence.broker_id

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        until = None if self.until is None else format_utc(self.until)
        return {**self.silence.to_document(), "until": until}


@dataclass(frozen=True, slots=True)
class Decision:
    """The policy's decision, with everything that led to it.

    ``headroom`` is exact; ``reasons`` are sorted, the one that determines the factor first, and the
    ``MAX_LISTED`` worst at most; ``unlisted_volumes`` more volumes are over a limit.
    ``fallback`` is true if the fallback action decides: some state is not known, and nothing known is
    worse than the action. With the action open and a known breach it is False, though
    ``undetermined`` names the brokers that are not known. ``covered`` are the silent brokers that need no
    fallback, in order of their ids. ``scope`` has the headroom of each topic, None where all are held alike;
    ``no_scope`` is the reason for that, where the policy's scope is the volume. ``unvouched`` are the brokers
    whose reports do not count (:mod:`kquota.policy.known_brokers`). ``overridden`` are volumes over a hard
    limit, the worst ``MAX_LISTED`` at most, although which a hold is open.
    """

    headroom: Fraction
    reasons: tuple[Reason, ...]
    undetermined: tuple[Undetermined, ...]
    fallback: bool
    hold: Hold | None
    decided_at: datetime
    unlisted_volumes: int = 0
    covered: tuple[Covered, ...] = ()
    scope: TopicScope | None = None
    no_scope: NoScope | None = None
    unvouched: tuple[int, ...] = ()
    overridden: tuple[Reason, ...] = ()

    @property
    def state(self) -> State:
        """The state, from the exact headroom."""
        return State.of_headroom(self.headroom)

    @property
    def factor(self) -> float:
        """The share of their rate that producers keep, as written: 6 decimals."""
        return written_factor(self.headroom)


def written_factor(headroom: Fraction) -> float:
    """Round to 6 decimals, but never so that the state would read otherwise.

    A factor that is neither 0 nor 1 is written within 0.000001 … 0.999999.
    """
    if headroom <= 0:
        return 0.0
    if headroom >= 1:
        return 1.0
    millionths = min(max(round(headroom * _UNIT), 1), _UNIT - 1)
    return float(Fraction(millionths, _UNIT))


MAX_MAINTENANCE_LEASE = timedelta(days=1)
"""However long a maintenance is announced for: a decision that no agent renews must end some day."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Until when a written decision holds; judged by the boot-time clock of one boot."""

    valid_until: datetime
    boot_id: str
    valid_until_uptime_ms: int


def decision_document(
    decision: Decision,
    *,
    cluster_id: str | None = None,
    broker_id: int | None = None,
    sequence: int | None = None,
    mode: Mode | None = None,
    lease: Lease | None = None,
    own_log_dirs: Sequence[Mapping[str, object]] | None = None,
) -> dict[str, object]:
    """Return the decision file's JSON form; values that only the agent knows are null without it.

    ``own_log_dirs`` are those of :func:`kquota.disks.band.own_log_dirs`; absent where they are None.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "cluster_id": cluster_id,
        "broker_id": broker_id,
        "sequence": sequence,
        "mode": None if mode is None else mode.value,
        "state": decision.state.value,
        "factor": decision.factor,
        "fallback": decision.fallback,
        "hold": _hold_document(decision.hold),
        "reasons": [reason.to_document() for reason in decision.reasons[:MAX_LISTED]],
        "undetermined": [entry.to_document() for entry in decision.undetermined[:MAX_LISTED]],
        **_covered_document(decision.covered),
        **_scope_document(decision.scope),
        **({} if own_log_dirs is None else {"own_log_dirs": list(own_log_dirs)}),
        "decided_at": format_utc(decision.decided_at),
        "valid_until": None if lease is None else format_utc(lease.valid_until),
        "boot_id": None if lease is None else lease.boot_id,
        "valid_until_uptime_ms": None if lease is None else lease.valid_until_uptime_ms,
    }


def _covered_document(covered: tuple[Covered, ...]) -> Mapping[str, object]:
    return {"covered": [entry.to_document() for entry in covered[:MAX_LISTED]]} if covered else {}


def _scope_document(scope: TopicScope | None) -> Mapping[str, object]:
    if scope is None:
        return {}
    return {
        "scope": "topics",
        "topics": {topic: written_factor(headroom) for topic, headroom in sorted(scope.topics.items())},
        "other_topics_factor": written_factor(scope.others),
    }


def _hold_document(hold: Hold | None) -> Mapping[str, object] | None:
    if hold is None:
        return None
    return {"action": hold.action.value, **note_document(hold.note)}


def note_document(note: OrderTerms) -> dict[str, object]:
    """Return the JSON form of an order's note in files of ours; records have keys of another spelling."""
    return {"until": format_utc(note.until), "reason": note.reason, "actor": note.actor}
