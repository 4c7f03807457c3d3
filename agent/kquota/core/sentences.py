"""The sentences of a decision: the same words in the journal, the status, the metrics and the CLI."""

from __future__ import annotations

from kquota.core.decision import Cause, Decision, Reason, State, Undetermined, UndeterminedCause
from kquota.core.ranking import volumes_of
from kquota.core.records import Hold
from kquota.core.timestamps import format_utc

_BROKER_CAUSES = {
    UndeterminedCause.MISSING: "it has never reported",
    UndeterminedCause.STALE: "its last report is too old",
    UndeterminedCause.CLOCK: "its clock is {} s behind",
    UndeterminedCause.TOMBSTONE: "its report was removed",
    UndeterminedCause.MALFORMED: "its report can't be read",
    UndeterminedCause.FUTURE: "its report is from the future",
    UndeterminedCause.FAILED: "a volume of it has failed",
    UndeterminedCause.INVALID_LIMIT: "its limits are invalid",
}
_CLUSTER_CAUSES = {
    UndeterminedCause.TOPIC_REFUSED: "the usage topic is refused",
    UndeterminedCause.NOT_READ: "the usage topic has not been read to its end yet",
    UndeterminedCause.NO_BROKER_LIST: "the list of active brokers is not known",
}


def decision_sentence(decision: Decision) -> str:
    """Return one sentence: the state, and what causes it."""
    return f"{_head(decision)}: {_because(decision)}"


def _head(decision: Decision) -> str:
    if decision.state is State.THROTTLE:
        return f"THROTTLE to {decision.factor:.6f}".rstrip("0")
    return decision.state.value


def _because(decision: Decision) -> str:
    if not decision.reasons:
        if decision.fallback:
            return f"the fallback action is open although {_undetermined(decision.undetermined)}"
        return "no volume is over its soft limit"
    first = decision.reasons[0]
    if first.cause is Cause.FALLBACK:
        return f"fallback, because {_undetermined(decision.undetermined)}"
    text = (
        hold_sentence(decision.hold)
        if decision.hold and first.cause is Cause.HOLD
        else reason_sentence(first)
    )
    others = len(volumes_of(decision.reasons) - volumes_of((first,))) + decision.unlisted_volumes
    if others:
        text += f", and {others} more volume{'s' if others > 1 else ''} over a limit"
    if decision.hold and first.cause is not Cause.HOLD:
        text += f", although {hold_sentence(decision.hold)}"
    if decision.undetermined:
        text += f"; besides, {_undetermined(decision.undetermined)}"
    return text


def reason_sentence(reason: Reason) -> str:
    """Return one reason in words."""
    where = f"volume {reason.volume} of broker {reason.broker_id}"
    if reason.cause is Cause.FALLBACK:
        return "fallback, because the state of " + (
            "the cluster is not known"
            if reason.broker_id is None
            else f"broker {reason.broker_id} is not known"
        )
    if reason.cause is Cause.HOLD:
        return "held by an operator"
    if reason.cause is Cause.LATCHED:
        return f"{where} was over its hard limit and is not yet back above the release margin"
    own = " (this broker's own fresh look)" if reason.cause is Cause.OWN else ""
    if reason.headroom <= 0:
        return f"{where} is over its hard limit{own}"
    return f"{where} has {percent(reason)} of the way from soft to hard limit left{own}"


def percent(reason: Reason) -> str:
    """Return a headroom in percent, never shown as 0 % or 100 % while it is between."""
    value = min(max(float(reason.headroom) * 100, 0.1), 99.9)
    return f"{value:.0f} %" if 1 <= value <= 99 else f"{value:.1f} %"


def hold_sentence(hold: Hold) -> str:
    """Return who holds what, why and until when."""
    by = f" by {hold.note.actor}" if hold.note.actor else ""
    why = f" ({hold.note.reason})" if hold.note.reason else ""
    return f"held at {hold.action.value}{by} until {format_utc(hold.note.until)}{why}"


def undetermined_sentence(entry: Undetermined) -> str:
    """Return why the state of a broker, or of the cluster, is not known."""
    if entry.broker_id is None:
        return _CLUSTER_CAUSES[entry.cause]
    behind = entry.clock_behind_seconds
    why = _BROKER_CAUSES[entry.cause].format("some" if behind is None else behind)
    return f"the state of broker {entry.broker_id} is not known ({why})"


def _undetermined(entries: tuple[Undetermined, ...]) -> str:
    text = undetermined_sentence(entries[0])
    more = len(entries) - 1
    return text + (f" and {more} more" if more else "")
