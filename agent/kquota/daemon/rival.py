"""Another agent that claims our broker: a cloned host, or a wrong node id."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kquota.core.usage import UsageRecord

# Another agent that claims our broker is a rival until it has not reported for so many of our intervals.
RIVAL_INTERVALS = 4


@dataclass(slots=True)
class RivalWatch:
    """Remembers what the other one says, as long as it goes on saying it."""

    _heard: tuple[UsageRecord, float] | None = None

    def look(
        self, heard_now: UsageRecord | None, now_seconds: float, interval_seconds: float
    ) -> UsageRecord | None:
        """Take in its record, if one has just come; return the one that counts."""
        if heard_now is not None:
            self._heard = heard_now, now_seconds
        if self._heard is not None and now_seconds - self._heard[1] > RIVAL_INTERVALS * interval_seconds:
            self._heard = None
        return None if self._heard is None else self._heard[0]


def worse_of(own: UsageRecord | None, rival: UsageRecord | None) -> UsageRecord | None:
    """Return a look at the own disks as bad as the worse of two: who is right is not for us to say."""
    if own is None or rival is None:
        return own
    return replace(own, volumes=own.volumes + rival.volumes)
