"""Whether enforcing is safe: an agent held by its own pause could never end it."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.guard.applied_state import AppliedState, AppliedUnknown
from kquota.host.boot_clock import BootMoment

# The agent asks its own broker for something far more often than this.
SEEN_WITHIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether enforcing is proven safe by the applied state, or disproven, and the sentence for people.

    Neither: the broker's applied state is not known. ``cause`` is why it is not verified, as a word.
    """

    verified: bool
    contradicted: bool
    sentence: str
    cause: str = "unknown"


def verify(
    applied: AppliedState | AppliedUnknown,
    client_id_prefix: str,
    now: BootMoment,
    seen_within_seconds: float = SEEN_WITHIN_SECONDS,
) -> Verification:
    """Judge whether the broker's plug-in exempts this agent.

    It does if it lately saw an exempt principal under one of the agent's own client ids, which begin
    with ``client_id_prefix`` (``kquota-<node id>-``). Client ids can be forged, but here that gains
    nothing: the principal is authenticated, and the plug-in lists exempt ones only.
    """
    if isinstance(applied, AppliedUnknown):
        return Verification(False, False, applied.reason, applied.cause.value)
    ours = [
        seen
        for seen in applied.exempt
        if any(client_id.startswith(client_id_prefix) for client_id in seen.client_ids)
    ]
    if not ours:
        return Verification(
            False,
            True,
            f"the broker's plug-in has not seen a client {client_id_prefix}… as exempt:"
            " is the agent's principal among kquota.exempt.principals?",
            "never-exempt",
        )
    latest = max(ours, key=lambda seen: seen.last_seen_uptime_ms)
    age_seconds = (now.uptime_ms - latest.last_seen_uptime_ms) / 1000
    if age_seconds > seen_within_seconds:
        sentence = f"the broker's plug-in saw {latest.principal} last {age_seconds:.0f} s ago"
        return Verification(False, True, sentence, "long-ago")
    return Verification(True, False, f"{latest.principal} is exempt on this broker")
