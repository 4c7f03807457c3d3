"""How soon the agent answers the next event: at once, unless events come all the time."""

from __future__ import annotations

# After a cycle the agent rests for this many times its length: a thousand brokers report two hundred times a
# second, and each report would be a cycle of its own.
REST_RATIO = 40.0
# Rests that were not needed are saved up to this: a breach, and the records that follow it, wait for none.
SAVED_SECONDS = 1.0
# No rest is longer: what moves slowly, as the factor of a throttle, is at most so old.
MAX_REST_SECONDS = 1.0
# News of other brokers wait for no more of it.
REST_FROM_NEWS_SECONDS = 0.1


class Pace:
    """Counts the rests that cycles call for against the time that has passed; times are monotonic seconds."""

    def __init__(self, now_seconds: float) -> None:
        """Begin with all rests saved."""
        self._saved_seconds = SAVED_SECONDS
        self._at_seconds = now_seconds

    def cycle_ended(self, cycle_seconds: float, now_seconds: float) -> None:
        """Take in a cycle of this length."""
        wanted_seconds = REST_RATIO * cycle_seconds
        self._saved_seconds = max(self._saved(now_seconds) - wanted_seconds, -wanted_seconds)
        self._at_seconds = now_seconds

    def rest_seconds(self, now_seconds: float) -> float:
        """Return how long to rest before the next cycle: never longer than the last cycle calls for."""
        return min(max(0.0, -self._saved(now_seconds)), MAX_REST_SECONDS)

    def _saved(self, now_seconds: float) -> float:
        return min(SAVED_SECONDS, self._saved_seconds + now_seconds - self._at_seconds)
