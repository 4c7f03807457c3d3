"""How fast each volume fills, and its fastest minute, learnt from one observation after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kquota.disks.fill_ceiling import FastestMinute
from kquota.disks.observation import VolumeObservation
from kquota.policy.fill import FillRate
from kquota.policy.volume import Volume, VolumeStatus


class Fill(NamedTuple):
    """A volume's present rate, and that of its fastest minute."""

    rate: FillRate
    fastest: FastestMinute


class FillRates:
    """Remembers the observations of each volume, by volume id."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._seen: dict[str, Fill] = {}
        self._former: dict[str, int] = {}

    def recall(self, volumes: Iterable[Volume]) -> None:
        """Take over the fastest minutes that this broker's former agent reported, for a day."""
        self._former = {
            volume.volume_id: volume.fill_ceiling_bytes_per_second
            for volume in volumes
            if volume.volume_id is not None and volume.fill_ceiling_bytes_per_second is not None
        }
        for volume_id, former in self._former.items():
            if volume_id in self._seen:
                fill = self._seen[volume_id]
                self._seen[volume_id] = fill._replace(fastest=fill.fastest.recalling(former))

    def observe(self, volumes: Iterable[VolumeObservation]) -> Mapping[str, Fill]:
        """Learn from a look at all volumes; return the rates by volume id of those that can be judged now.

        A volume that no longer exists is forgotten. One that can't be observed now keeps its earlier
        observations.
        """
        seen: dict[str, Fill] = {}
        now: dict[str, Fill] = {}
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
            if before is None:
                former = self._former.get(volume.volume_id, 0)
                fill = Fill(FillRate.begin(*figures), FastestMinute.begin(*figures).recalling(former))
            else:
                fill = Fill(before.rate.after(*figures), before.fastest.after(*figures))
            seen[volume.volume_id] = now[volume.volume_id] = fill
        self._seen = seen
        return now
