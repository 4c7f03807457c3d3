"""A made-up volume: all its hours, and the hour at which a forecast is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kquota_pipeline.forecast.history import DAY_HOURS, Floats, Looks, Series


@dataclass(frozen=True, slots=True)
class MadeVolume:
    """One volume from its first hour to weeks after `cut`, the epoch hour of the forecast.

    `looks` is None where agents have not looked at segments. Methods may use `known` and `known_looks` alone.
    """

    family: str
    name: str
    series: Series
    looks: Looks | None
    cut: int
    soft_bytes: float
    hard_bytes: float

    @property
    def known(self) -> Series:
        """The hours until the cut."""
        return self.series.until(self.cut)

    @property
    def known_looks(self) -> Looks | None:
        """The looks until the cut."""
        return None if self.looks is None else self.looks.until(self.cut)

    def crests_to_come(self, days: int) -> Floats:
        """Return the crest of each day after the cut, in bytes; NaN where the volume has no sample."""
        day = (self.series.hours - self.cut - 1) // DAY_HOURS
        found = np.full(days, np.nan)
        for ahead in range(days):
            if (inside := self.series.crest_bytes[day == ahead]).size:
                found[ahead] = inside.max()
        return found

    def without_looks(self) -> MadeVolume:
        """Return the same volume of agents that do not look at segments."""
        return MadeVolume(
            self.family, self.name, self.series, None, self.cut, self.soft_bytes, self.hard_bytes
        )
