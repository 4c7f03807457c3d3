"""The end of a THROTTLE or PAUSE: the second sentence of ``kquota explain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from kquota.core.decision import Cause, Decision, Reason, Undetermined, UndeterminedCause
from kquota.core.limits import Bounds

_CLOCK_IS_RIGHT = "the clock of broker {}'s host is right again: repair its time synchronization"
# If the agent reports, restarting it will not help.
_REPORTING: Mapping[UndeterminedCause, str] = {
    UndeterminedCause.CLOCK: _CLOCK_IS_RIGHT,
    UndeterminedCause.FUTURE: _CLOCK_IS_RIGHT,
    UndeterminedCause.FAILED: "all volumes of broker {} can be read again: replace the disk, or mount it",
    UndeterminedCause.INVALID_LIMIT: "the limits of broker {} can be used again: kquota config check there",
}
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


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
    volume = f"volume {first.volume} of broker {first.broker_id}"
    means = "delete data, shorten retention, or move replicas away"
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
    """Return how much to free until a latch is released; without a margin, until the soft limit."""
    for broker in brokers:
        for volume in broker["volumes"]:
            known = volume["soft_bytes"] is not None
            if broker["broker_id"] == reason.broker_id and volume["volume"] == reason.volume and known:
                soft, hard = Fraction(volume["soft_bytes"]), Fraction(volume["hard_bytes"])
                bounds = Bounds(soft, hard, volume["capacity_bytes"])
                aim = soft if release_margin is None else bounds.released_below_bytes(release_margin)
                return f" (about {_amount(max(volume['consumed_bytes'] - float(aim), 0))} to free)"
    return ""


def _amount(size_bytes: float) -> str:
    for unit_bytes, unit in _UNITS:
        if size_bytes >= unit_bytes:
            return f"{size_bytes / unit_bytes:.3g} {unit}"
    return f"{size_bytes:.0f} bytes"
