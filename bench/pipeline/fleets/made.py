"""A made-up volume: all its hours, and the hour at which a forecast is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kquota_pipeline.forecast.history import DAY_HOURS, Floats, Looks, Series


@dataclass(frozen=True, slots=True)
class MadeVolume:
    """One volume from its first hour to weeks after `cut`, the epoch hour of the forecast.

    `looks` is None where agents have not looked at segments. Methods may use `known` and `known_looks` alone.
    `calm` is the same volume if nothing began after the cut that had not been before; None where that is not
    known.
    """

    family: str
    name: str
    series: Series
    looks: Looks | None
    cut: int
    soft_bytes: float
    hard_bytes: float
    calm: Series | None = None

    @property
    def known(self) -> Series:
        """The hours until the cut."""
        return self.series.until(self.cut)

    @property
    def known_looks(self) -> Looks | None:
        """The looks until the cut."""
        return None if self.looks is None else self.looks.until(self.cut)

    def crests_to_come(self, days: int, of: Series | None = None) -> Floats:
        """Return the crest of each day after the cut, in bytes, or of the volume as it might have been; NaN
        where it has no sample.
        """
        return _crests(self.series if of is None else of, self.cut, days)

    def is_foreseeable(self, days: int) -> bool:
        """Whether the soft limit is reached within these days by what had begun before the cut."""
        return bool((self.crests_to_come(days, self.calm) >= self.soft_bytes).any())

    def without_looks(self) -> MadeVolume:
        """Return the same volume of agents that do not look at segments."""
        return replace(self, looks=None)


def _crests(series: Series, cut: int, days: int) -> Floats:
    day = (series.hours - cut - 1) // DAY_HOURS
    found = np.full(days, np.nan)
    for ahead in range(days):
        if (inside := series.crest_bytes[day == ahead]).size:
            found[ahead] = inside.max()
    return found
