"""Why producers are held back, and what would end it: two sentences for ``kquota explain``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kquota.core.decision import Cause, Decision, Reason
from kquota.core.sentences import decision_sentence

# The owner's release margin is not part of its record; this is the default.
_RELEASE_MARGIN_RATIO = 0.1
_GB = 1_000_000_000


def explain(decision: Decision, brokers: list[Mapping[str, Any]]) -> tuple[str, str]:
    """Return why the state is what it is, and what would end it.

    Args:
        decision: what was decided.
        brokers: the ``brokers`` of the status document it was decided from.
    """
    return f"{decision_sentence(decision)}.", _what_ends_it(decision, brokers)


def _what_ends_it(decision: Decision, brokers: list[Mapping[str, Any]]) -> str:
    if not decision.reasons:
        return "Producers have the quotas they always had; there is nothing to end."
    first = decision.reasons[0]
    if first.cause is Cause.HOLD:
        return "It ends at the time said, or at once with: kquota hold release."
    if first.cause is Cause.FALLBACK:
        return _what_ends_fallback(first)
    volume = f"volume {first.volume} of broker {first.broker_id}"
    means = "delete data, shorten retention, or move replicas away"
    if first.headroom > 0:
        return f"It ends when {volume} is back at its soft limit{_to_free(first, brokers, 1.0)}: {means}."
    free = _to_free(first, brokers, _RELEASE_MARGIN_RATIO)
    return f"Producers flow again when {volume} is back above the release margin{free}: {means}."


def _what_ends_fallback(reason: Reason) -> str:
    if reason.broker_id is None:
        return "It ends when this agent can read the usage topic and the list of brokers again."
    return (
        f"It ends when the agent of broker {reason.broker_id} reports again (systemctl status kquota-agent"
        f" there); if that broker is gone for good: kquota decommission {reason.broker_id}."
    )


def _to_free(reason: Reason, brokers: list[Mapping[str, Any]], headroom: float) -> str:
    """Say how much has to be freed until the volume has that headroom."""
    for broker in brokers:
        for volume in broker["volumes"]:
            known = volume["soft_bytes"] is not None
            if broker["broker_id"] == reason.broker_id and volume["volume"] == reason.volume and known:
                zone_bytes = max(volume["hard_bytes"] - volume["soft_bytes"], 0)
                surplus_bytes = volume["consumed_bytes"] - (volume["hard_bytes"] - headroom * zone_bytes)
                return f" (about {max(surplus_bytes, 0) / _GB:.3g} GB to free)"
    return ""
