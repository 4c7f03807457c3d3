"""Whether this agent's decisions are enforced, or only observed, and why."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.guard.applied_verification import Verification
from kquota.guard.inputs import ClusterNews
from kquota.policy.decision import Mode

# A broker that has just started has not heard of us yet: only lasting contradiction suspends enforcing.
CONTRADICTION_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Enforcement:
    """The mode to write, the reason for people, and whether a first grant is to be remembered.

    ``cause`` is the obstacle, as a word; empty if there is none.
    """

    mode: Mode
    sentence: str
    cause: str = ""
    newly_granted: bool = False


@dataclass(slots=True)
class Grant:
    """The cluster that enforcing was granted for, and since when the plug-in shows that we are not exempt.

    An agent that is not exempt from quotas would be held by its own pause and could never end it, so
    enforcing begins only once the broker's plug-in was seen to exempt this agent's principal. The
    grant outlives restarts and reboots: the agent starts before its broker. It is suspended while the
    plug-in, freshly heard, shows the opposite.
    """

    cluster_id: str | None
    _contradicted_since_seconds: float | None = None

    def judge(
        self, wanted: Mode, verification: Verification, news: ClusterNews, now_seconds: float
    ) -> Enforcement:
        """Decide the mode from the configured one and from what the plug-in shows.

        The time is of the monotonic clock, in seconds.
        """
        if not (verification.contradicted and news.asked_own_broker):
            self._contradicted_since_seconds = None
        elif self._contradicted_since_seconds is None:
            self._contradicted_since_seconds = now_seconds
        since_seconds = self._contradicted_since_seconds
        sentence, cause = verification.sentence, verification.cause
        granted = self.cluster_id is not None and news.cluster_id in (None, self.cluster_id)
        suspended = since_seconds is not None and now_seconds - since_seconds >= CONTRADICTION_SECONDS
        if wanted is Mode.OBSERVE:
            return Enforcement(Mode.OBSERVE, "observing, as configured")
        if verification.verified and news.cluster_id is not None:
            return Enforcement(Mode.ENFORCE, "enforcing", newly_granted=not granted)
        if granted and not suspended:
            return Enforcement(Mode.ENFORCE, f"enforcing, enforcement unverified: {sentence}", cause)
        return Enforcement(Mode.OBSERVE, f"observing, enforce is refused: {sentence}", cause)
