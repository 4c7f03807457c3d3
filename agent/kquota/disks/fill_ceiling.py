"""The fastest minute of a volume's last day: a bound on how fast it may fill while its agent is silent.

The growth of a minute is measured from the least consumption within it, so a deletion does not hide what was
written after it. Rates are kept by hour, the fastest of each, and forgotten after a day.
"""

from __future__ import annotations

from dataclasses import dataclass

from kquota.policy.fill import MAX_GAP_SECONDS

WINDOW_SECONDS = 60.0
DAY_SECONDS = 86_400.0
_HOUR_SECONDS = 3_600.0
# Thirty samples a minute: finer ones would find the same minute, a few bytes more exactly.
_SAMPLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class FastestMinute:
    """The observations of one volume's consumption; times are seconds of one monotonic clock.

    ``samples`` are (time, consumed bytes) of the last minute, the oldest first; ``hours`` are (hour, bytes in
    its fastest minute) of the last day, the oldest first.
    """

    capacity_bytes: int
    samples: tuple[tuple[float, int], ...]
    hours: tuple[tuple[int, int], ...] = ()

    @classmethod
    def begin(cls, capacity_bytes: int, consumed_bytes: int, at_seconds: float) -> FastestMinute:
        """Return the state after a first observation."""
        return cls(capacity_bytes, ((at_seconds, consumed_bytes),))

    def recalling(self, bytes_per_second: int) -> FastestMinute:
        """Return the state with the rate of an earlier observer, which counts for a day from now."""
        hour, grown = int(self.samples[-1][0] // _HOUR_SECONDS), round(bytes_per_second * WINDOW_SECONDS)
        return self._growing(hour, grown, self.samples, self.capacity_bytes)

    def after(self, capacity_bytes: int, consumed_bytes: int, at_seconds: float) -> FastestMinute:
        """Return the state after another observation.

        A volume that changed its size keeps its rates and begins another minute. An observation within two
        seconds of the last sample changes nothing.
        """
        if at_seconds - self.samples[-1][0] < _SAMPLE_SECONDS:
            return self
        hour = int(at_seconds // _HOUR_SECONDS)
        kept = self.samples if capacity_bytes == self.capacity_bytes else ()
        inside = tuple(s for s in kept if s[0] >= at_seconds - WINDOW_SECONDS)
        # After a gap the last sample before it stays: all that was written meanwhile counts as one minute's.
        recent = inside or tuple(s for s in kept[-1:] if s[0] >= at_seconds - MAX_GAP_SECONDS)
        samples = (*recent, (at_seconds, consumed_bytes))
        grown = consumed_bytes - min(consumed for _, consumed in samples)
        return self._growing(hour, grown, samples, capacity_bytes)

    def _growing(
        self, hour: int, grown: int, samples: tuple[tuple[float, int], ...], capacity_bytes: int
    ) -> FastestMinute:
        oldest_hour = hour - int(DAY_SECONDS // _HOUR_SECONDS)
        hours = {at: most for at, most in self.hours if at >= oldest_hour}
        hours[hour] = max(hours.get(hour, 0), grown)
        return FastestMinute(capacity_bytes, samples, tuple(hours.items()))

    @property
    def bytes_per_second(self) -> int:
        """The rate of the fastest minute, rounded up; 0 where the volume never grew."""
        fastest = max((grown for _, grown in self.hours), default=0)
        return -(-fastest // int(WINDOW_SECONDS))
