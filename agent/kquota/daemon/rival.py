"""Another agent that claims our broker: a cloned host, a wrong node id, or the instance before this one."""

from __future__ import annotations

from dataclasses import dataclass

from kquota.core.usage import UsageRecord

# A rival stops counting after it has been silent for this many of our report intervals.
RIVAL_INTERVALS = 4


@dataclass(slots=True)
class RivalWatch:
    """Remembers the other instance's reports, as long as it keeps reporting.

    ``replaced`` is the last other instance that has fallen silent, and the number of its last record: our
    records name it, and no reader waits for it any longer. One that is heard of again counts again.
    """

    replaced: tuple[str, int] | None = None
    _heard: tuple[UsageRecord, float] | None = None
    _is_rival: bool = False

    def precede(self, record: UsageRecord, now_seconds: float) -> None:
        """Take in the record of the instance before this one: no rival, unless it is heard of again."""
        self._heard, self._is_rival = (record, now_seconds), False

    def look(
        self, heard_now: UsageRecord | None, now_seconds: float, interval_seconds: float
    ) -> UsageRecord | None:
        """Take in its record, if one has just come; return the one of a rival."""
        if heard_now is not None:
            self._heard, self._is_rival = (heard_now, now_seconds), True
        if self._heard is not None and now_seconds - self._heard[1] > RIVAL_INTERVALS * interval_seconds:
            ended, self._heard = self._heard[0], None
            if ended.instance_id is not None and ended.sequence is not None:
                self.replaced = ended.instance_id, ended.sequence
        return self._heard[0] if self._heard is not None and self._is_rival else None
