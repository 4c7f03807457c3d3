"""The sentences of a decision: the same words in the journal, the status, the metrics and the CLI.

They name its causes, its end (``kquota explain``), and brokers that observe although it is to be enforced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from math import ceil
from typing import Any

from kquota.formats.strict_json import printable
from kquota.policy.decision import (
    Cause,
    Covered,
    Decision,
    Mode,
    Reason,
    State,
    Undetermined,
    UndeterminedCause,
    written_factor,
)
from kquota.policy.events import Hold, MalformedEvent, Refusal, RefusedEvent
from kquota.policy.limit_breaches import Resource
from kquota.policy.limits import Bounds
from kquota.policy.ranking import volumes_of
from kquota.policy.timestamps import format_utc
from kquota.policy.topic_scope import NoScope
from kquota.policy.view import MAX_UNLISTED_BROKERS

_MOST_NAMED = 5
_CLOCK_IS_RIGHT = "the clock of broker {}'s host is right again: repair its time synchronization"
_REVOKED = "its signer's certificate is revoked"
# If the agent reports, restarting it will not help.
_REPORTING: Mapping[UndeterminedCause, str] = {
    UndeterminedCause.CLOCK: _CLOCK_IS_RIGHT,
    UndeterminedCause.FUTURE: _CLOCK_IS_RIGHT,
    UndeterminedCause.FAILED: "all volumes of broker {} can be read again: replace the disk, or mount it",
    UndeterminedCause.INVALID_LIMIT: "the limits of broker {} can be used again: kquota config check there",
    UndeterminedCause.REVOKED: "the agent of broker {} signs with another certificate: issue one for it",
}
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_BROKER_CAUSES = {
    UndeterminedCause.MISSING: "it has never reported",
    UndeterminedCause.STALE: "its last report is too old",
    UndeterminedCause.CLOCK: "its clock is {} s behind",
    UndeterminedCause.TOMBSTONE: "its report was removed",
    UndeterminedCause.MALFORMED: "its report can't be read",
    UndeterminedCause.FUTURE: "its report is from the future",
    UndeterminedCause.FAILED: "a volume of it has failed",
    UndeterminedCause.INVALID_LIMIT: "its limits are invalid",
    UndeterminedCause.REVOKED: _REVOKED,
}
_REFUSALS = {
    Refusal.UNSIGNED: "it is not signed",
    Refusal.WRONG_SIGNATURE: "its signature is wrong",
    Refusal.UNKNOWN_AUTHORITY: "its signer's certificate is of an unknown authority",
    Refusal.EXPIRED: "its signer's certificate was not valid when it was written",
    Refusal.REVOKED: _REVOKED,
    Refusal.NOT_FOR_KEY: "its signer may not write this key",
    Refusal.REPLAYED: "it is a copy of an older record, or its signer's clock is behind the brokers'",
    Refusal.AHEAD: "its signer's clock is ahead of the brokers'",
}
_CLUSTER_CAUSES = {
    UndeterminedCause.TOPIC_REFUSED: "the usage topic is refused",
    UndeterminedCause.NOT_READ: "the usage topic has not been read to its end yet",
    UndeterminedCause.NO_BROKER_LIST: "the list of active brokers is not known",
}


def revoked_sentence(fingerprint: str) -> str:
    """Return that an agent's own certificate is revoked, and what to do."""
    return (
        "the own certificate is revoked, so that no record of this agent counts: issue another one for it"
        f" (fingerprint {fingerprint})"
    )


def authority_end_sentence(end: datetime) -> str:
    """Return that the authority of the own certificate ends soon, or has ended, and what follows."""
    return (
        f"the authority that signs the agents' certificates ends at {format_utc(end)}: nothing that they sign"
        " after that counts; replace it before"
    )


def refused_sentence(refused: RefusedEvent) -> str:
    """Return which record does not count, and why."""
    return f"the record of key {refused.key} is refused: {_REFUSALS[refused.cause]}"


def malformed_sentence(malformed: MalformedEvent) -> str:
    """Return which record can't be used, and why."""
    return f"the record of key {malformed.key} can't be used: {malformed.problem}"


def decision_sentence(decision: Decision, cluster_topics: int | None = None) -> str:
    """Return one sentence: the state, and what causes it.

    Args:
        decision: the decision to put into words.
        cluster_topics: how many topics the cluster has; None where that is not known.
    """
    return f"{_head(decision, cluster_topics)}: {_because(decision)}"


def topic_sentence(topic: str, decision: Decision) -> str:
    """Return one sentence about a topic, from the decision about it: the cluster's where that is for all."""
    if decision.reasons or decision.fallback:
        return f"Topic {topic}: {decision_sentence(decision)}"
    return f"Topic {topic}: OPEN: no volume that is over its soft limit holds a partition of it"


def _head(decision: Decision, cluster_topics: int | None) -> str:
    throttled = _throttled_to(decision.headroom)
    if decision.scope is None:
        return throttled if decision.state is State.THROTTLE else decision.state.value
    scope = decision.scope
    slowed = len(scope.topics) - scope.paused
    # The broker may not have passed on yet that a topic is there.
    known = None if cluster_topics is None or cluster_topics < len(scope.topics) else cluster_topics
    if decision.state is State.PAUSE:
        head = f"PAUSE for {topics_in_words(scope.paused, known)}" + (
            f", THROTTLE for {slowed:,} more" if slowed else ""
        )
    else:
        several = len(set(scope.topics.values())) > 1
        head = f"{throttled}{' at worst' if several else ''} for {topics_in_words(slowed, known)}"
    return head + (f", {_throttled_to(scope.others)} for all others" if scope.others < 1 else "")


def _throttled_to(headroom: Fraction) -> str:
    return f"THROTTLE to {written_factor(headroom):.6f}".rstrip("0")


def topics_in_words(count: int, of_all: int | None = None) -> str:
    """Return how many topics, as ``no topic``, ``1 topic`` or, of a known number, ``37 of 4,212 topics``."""
    if not count:
        return "no topic"
    share = "" if of_all is None else f" of {of_all:,}"
    return f"{count:,}{share} topic{'s' if (of_all or count) > 1 else ''}"


def _because(decision: Decision) -> str:
    if not decision.reasons:
        if decision.fallback:
            return f"the fallback action is open although {_undetermined(decision.undetermined)}"
        return "no volume is over its soft limit" + _besides(decision)
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
    return text + _unscoped(decision.no_scope) + _besides(decision)


def _unscoped(no_scope: NoScope | None) -> str:
    if no_scope is None:
        return ""
    if no_scope.volume is None:
        return "; every topic is held: more are at stake than can be named"
    broker_id, volume = no_scope.volume
    return f"; every topic is held: those on volume {volume} of broker {broker_id} are not known"


def _besides(decision: Decision) -> str:
    text = f"; besides, {_undetermined(decision.undetermined)}" if decision.undetermined else ""
    if decision.covered:
        soonest = min(
            decision.covered, key=lambda entry: (entry.until is None, entry.until or entry.broker_id)
        )
        more = len(decision.covered) - 1
        text += f"; {covered_sentence(soonest)}" + (f", and {more} more" if more else "")
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
    if reason.cause is Cause.BOUNDED:
        by_now = (
            "be over its hard limit"
            if reason.headroom <= 0
            else f"have only {percent(reason)} of the way from soft to hard limit left"
        )
        return f"{where}, which is silent, may {by_now} by now"
    limit = "hard limit of inodes" if reason.resource is Resource.INODES else "hard limit"
    if reason.cause is Cause.LATCHED:
        return f"{where} was over its {limit} and is not yet back above the release margin"
    own = " (this broker's own fresh look)" if reason.cause is Cause.OWN else ""
    if reason.headroom <= 0:
        return f"{where} is over its {limit}{own}"
    return f"{where} has {percent(reason)} of the way from soft to {limit} left{own}"


def percent(reason: Reason) -> str:
    """Return a headroom in percent, never shown as 0 % or 100 % while it is between."""
    value = min(max(float(reason.headroom) * 100, 0.1), 99.9)
    return f"{value:.0f} %" if 1 <= value <= 99 else f"{value:.1f} %"


def hold_sentence(hold: Hold) -> str:
    """Return who holds what, why and until when."""
    by = f" by {hold.note.author}" if hold.note.actor else ""
    why = f" ({hold.note.reason})" if hold.note.reason else ""
    return f"held at {hold.action.value}{by} until {format_utc(hold.note.until)}{why}"


def undetermined_sentence(entry: Undetermined) -> str:
    """Return why the state of a broker, or of the cluster, is not known."""
    if entry.broker_id is None:
        return _CLUSTER_CAUSES[entry.cause]
    behind = entry.clock_behind_seconds
    why = _BROKER_CAUSES[entry.cause].format("some" if behind is None else behind)
    return f"the state of broker {entry.broker_id} is not known ({why})"


def covered_sentence(entry: Covered) -> str:
    """Return why a broker counts with old figures, and until when they keep producers from a PAUSE."""
    behind = entry.silence.clock_behind_seconds
    why = _BROKER_CAUSES[entry.silence.cause].format("some" if behind is None else behind)
    until = "its volumes do not fill" if entry.until is None else f"covered until {format_utc(entry.until)}"
    return f"broker {entry.broker_id} is silent ({why}): {until}"


def _undetermined(entries: tuple[Undetermined, ...]) -> str:
    text = undetermined_sentence(entries[0])
    more = len(entries) - 1
    return text + (f" and {more} more" if more else "")


def what_ends_it(decision: Decision, brokers: Sequence[Mapping[str, Any]], release_margin: Fraction) -> str:
    """Return one sentence that names what would end the THROTTLE or PAUSE.

    Args:
        decision: the decision to explain.
        brokers: the ``brokers`` of the status document it was decided from.
        release_margin: headroom (0..1) above which a latch is released. It is not part of a broker's record;
            all agents of a cluster are meant to have the same.
    """
    if not decision.reasons:
        return "Producers have the quotas they always had; there is nothing to end."
    first = decision.reasons[0]
    if first.cause is Cause.HOLD:
        return "It ends at that time, or at once with: kquota hold release."
    if first.cause is Cause.FALLBACK:
        return _what_ends_fallback(first, decision.undetermined)
    if first.cause is Cause.BOUNDED:
        return _what_ends_fallback(first, [entry.silence for entry in decision.covered])
    volume = f"volume {first.volume} of broker {first.broker_id}"
    means = "delete data, shorten retention, or move replicas away"
    if first.resource is Resource.INODES:
        means = "delete topics, move replicas away, or have fewer and larger segments"
    if first.headroom > 0:
        return f"It ends when {volume} is back at its soft limit{_to_free(first, brokers, None)}: {means}."
    free = _to_free(first, brokers, release_margin)
    return f"Producers flow again when {volume} is back above the release margin{free}: {means}."


def _what_ends_fallback(reason: Reason, undetermined: Sequence[Undetermined]) -> str:
    causes = {entry.cause for entry in undetermined if entry.broker_id == reason.broker_id}
    if UndeterminedCause.TOPIC_REFUSED in causes:
        return "It ends when the usage topic is repaired: the agent's journal names the defect."
    for cause, end in _REPORTING.items():
        if cause in causes:
            return f"It ends when {end.format(reason.broker_id)}."
    if reason.broker_id is None:
        return "It ends when this agent can read the usage topic and the list of brokers again."
    return (
        f"It ends when the agent of broker {reason.broker_id} reports again (systemctl status kquota-agent"
        f" there); if that broker is gone for good: kquota decommission {reason.broker_id}."
    )


def _to_free(reason: Reason, brokers: Sequence[Mapping[str, Any]], release_margin: Fraction | None) -> str:
    if reason.resource is Resource.INODES:
        files = _files_to_remove((reason.broker_id, reason.volume), brokers, release_margin)
        return "" if files is None else f" (about {files:,} files to remove)"
    size = bytes_to_free((reason.broker_id, reason.volume), brokers, release_margin)
    return "" if size is None else f" (about {amount(size)} to free)"


def bytes_to_free(
    where: tuple[int | None, str | None],
    brokers: Sequence[Mapping[str, Any]],
    release_margin: Fraction | None,
) -> float | None:
    """Return how much to free until a latch is released; without a margin, until the soft limit.

    Args:
        where: the broker and the volume.
        brokers: the ``brokers`` of a status document.
        release_margin: as in `what_ends_it`.
    """
    for broker in brokers:
        for volume in broker["volumes"]:
            known = volume["soft_bytes"] is not None
            if (broker["broker_id"], volume["volume"]) == where and known:
                soft, hard = Fraction(volume["soft_bytes"]), Fraction(volume["hard_bytes"])
                bounds = Bounds(soft, hard, volume["capacity_bytes"])
                aim = soft if release_margin is None else bounds.released_below_bytes(release_margin)
                return float(max(volume["consumed_bytes"] - float(aim), 0))
    return None


def _files_to_remove(
    where: tuple[int | None, str | None],
    brokers: Sequence[Mapping[str, Any]],
    release_margin: Fraction | None,
) -> int | None:
    """Return the same in files: each has an inode."""
    for broker in brokers:
        for volume in broker["volumes"]:
            inodes = volume["inodes"]
            if (broker["broker_id"], volume["volume"]) == where and inodes is not None:
                soft, hard = inodes["soft_free"], inodes["hard_free"]
                aim = soft if release_margin is None else ceil(hard + release_margin * (soft - hard))
                return int(max(aim - inodes["free"], 0))
    return None


def amount(size_bytes: float) -> str:
    """Return bytes with three digits and their unit."""
    for unit_bytes, unit in _UNITS:
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:.3g} {unit}"
    return f"{size_bytes:.0f} bytes"


def broken_glass_sentence(broker_ids: Iterable[int]) -> str | None:
    """Return the brokers that hold no producer although enforcing is decided; None if there are none.

    The same words in the status, in ``kquota explain``, in ``kquota check`` and in the journal.
    """
    ids = [str(broker_id) for broker_id in broker_ids]
    if not ids:
        return None
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    who = f"Broker {ids[0]} holds" if len(ids) == 1 else f"Brokers {', '.join(ids[:_MOST_NAMED])}{more} hold"
    return (
        f"{who} no producer although enforcing is decided: mode observe is in force there"
        " (kquota.mode of the broker, or mode of its agent)."
    )


def starving_sentence(broker_id: int, clients: int) -> str | None:
    """Return how many producers of a broker the throttle starves, and what helps; None where it is none.

    The same words in the status, in ``kquota check`` and in the journal.
    """
    if not clients:
        return None
    who = f"{clients} producer{'s' if clients > 1 else ''} of broker {broker_id}"
    return (
        f"The throttle factor starves {who}: turns are more than 120 s apart, and by default producers keep"
        " a record for no longer. Remedies: a higher floor of the factor (the broker's"
        " kquota.produce.factor.min.ratio), fewer connections, or a PAUSE until there is room."
    )


def local_starving(local: Mapping[str, Any]) -> str | None:
    """Return the same for the broker on this host; None where its plug-in counts none."""
    applied = local["applied"]
    return None if applied is None else starving_sentence(local["broker_id"], applied["starving"])


def observing_brokers(brokers: Sequence[Mapping[str, Any]], local: Mapping[str, Any]) -> list[int]:
    """Return the active brokers that observe, by id, where enforcing is decided.

    Enforcing is decided if this host's agent enforces under a running lease, or some broker enforces. No
    better source exists: a record has the mode in force at its broker, not the decision of its agent.

    Args:
        brokers: the ``brokers`` of a status document.
        local: the contents of the files on this host; they are newer than the record of this host's broker.
    """
    modes = {broker["broker_id"]: broker["mode"] for broker in brokers if broker["active"] is not False}
    if local["applied"] is not None:
        modes[local["broker_id"]] = local["applied"]["mode"]
    if not decides_to_enforce(local) and Mode.ENFORCE not in modes.values():
        return []
    return sorted(broker_id for broker_id, mode in modes.items() if mode == Mode.OBSERVE)


def decides_to_enforce(local: Mapping[str, Any]) -> bool:
    """Return whether this host's decision is to be enforced, and its lease runs."""
    decision = local["decision"]
    return decision is not None and decision["mode"] == Mode.ENFORCE and bool(local["lease_seconds_left"])


def local_broken_glass(local: Mapping[str, Any]) -> str | None:
    """Return the sentence for the broker on this host alone; None where its glass is whole or not known."""
    applied = local["applied"]
    observes = applied is not None and applied["mode"] == Mode.OBSERVE
    return broken_glass_sentence([local["broker_id"]] if observes and decides_to_enforce(local) else [])


def excess_sentence(key: bytes | str | None) -> str:
    """Return which record was not kept, and why."""
    return (
        f"{_record_of(key)} is not kept: the topic names more than"
        f" {MAX_UNLISTED_BROKERS} brokers that the cluster does not list, or as many orders"
    )


def wrong_topic_sentence(key: bytes | str | None) -> str:
    """Return why an order on the usage topic does not count."""
    return f"{_record_of(key)} on the usage topic does not count: orders have a topic of their own"


def foreign_sentence(key: bytes | str | None, cluster_id: str | None) -> str:
    """Return why a well-formed usage record of another cluster can't be used."""
    return f"{_record_of(key)} can't be used: ClusterId: {printable(cluster_id or '')} is another cluster's"


def _record_of(key: bytes | str | None) -> str:
    text = key.decode("ascii", "replace") if isinstance(key, bytes) else key or ""
    return f"the record of key {printable(text)}"
