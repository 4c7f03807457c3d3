"""Whether this agent's decisions are enforced, or only observed, and why."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.core.decision import Mode


@dataclass(frozen=True, slots=True)
class Enforcement:
    """The mode to write, the reason for people, and whether a first grant is to be remembered.

    ``cause`` is the obstacle, as a word; empty if there is none.
    """

    mode: Mode
    sentence: str
    cause: str = ""
    newly_granted: bool = False


def enforcement(
    wanted: Mode, *, granted: bool, verified: bool, contradicted: bool, sentence: str, cause: str = "unknown"
) -> Enforcement:
    """Decide the mode.

    An agent that is not exempt from quotas would be held by its own pause and could never end it, so
    enforcing begins only once the broker's plug-in was seen to exempt this agent's principal. The
    grant outlives restarts and reboots: the agent starts before its broker. It is suspended while the
    plug-in, freshly heard, shows the opposite.

    Args:
        wanted: the mode that is configured.
        granted: whether this broker was ever verified (the persisted grant).
        verified: whether the plug-in's applied state proves it now.
        contradicted: whether a fresh applied state shows that this agent is not exempt.
        sentence: why it is or is not verified; ``cause`` is the same as a word.
    """
    if wanted is Mode.OBSERVE:
        return Enforcement(Mode.OBSERVE, "observing, as configured")
    if verified:
        return Enforcement(Mode.ENFORCE, "enforcing", newly_granted=not granted)
    if granted and not contradicted:
        return Enforcement(Mode.ENFORCE, f"enforcing, enforcement unverified: {sentence}", cause)
    return Enforcement(Mode.OBSERVE, f"observing, enforce is refused: {sentence}", cause)
