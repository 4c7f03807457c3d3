"""How fast each volume fills, learnt from one observation after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kquota.core.fill import FillRate
from kquota.core.usage import VolumeStatus
from kquota.observe.observation import VolumeObservation


class FillRates:
    """Remembers the observations of each volume, by volume id."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._seen: dict[str, FillRate] = {}

    def observe(self, volumes: Iterable[VolumeObservation]) -> Mapping[str, float]:
        """Learn from a look at all volumes; return bytes per second by volume id, where it is known.

        A volume that no longer exists is forgotten. One that can't be observed now keeps its earlier
        observations, and has no rate.
        """
        seen: dict[str, FillRate] = {}
        rates: dict[str, float] = {}
        for volume in volumes:
            before = self._seen.get(volume.volume_id)
            capacity, consumed, at = volume.capacity_bytes, volume.consumed_bytes, volume.sampled_at_monotonic
            if volume.status is not VolumeStatus.OK or capacity is None or consumed is None:
                if before is not None:
                    seen[volume.volume_id] = before
                continue
            if at is None:
                continue
            figures = capacity, consumed, at
            fill = FillRate.begin(*figures) if before is None else before.after(*figures)
            seen[volume.volume_id] = fill
            if fill.bytes_per_second is not None:
                rates[volume.volume_id] = fill.bytes_per_second
        self._seen = seen
        return rates
