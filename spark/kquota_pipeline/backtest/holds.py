"""How long policies hold each producer. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kquota_pipeline.backtest.producers import Name

Floats = NDArray[np.float64]


class Holds:
    """In how many ticks each producer is paused and slowed, by policy."""

    def __init__(self, policies: int) -> None:
        self._policies = policies
        self._ticks: dict[Name, NDArray[np.int32]] = {}

    def add(self, names: Iterable[Name], policies: NDArray[np.int64], factors: Floats) -> None:
        """Count a tick for producers that have these factors under these policies."""
        places, factors = policies[factors < 1], factors[factors < 1]
        if places.size:
            for name in names:
                held = self._ticks.setdefault(name, np.zeros((2, self._policies), dtype=np.int32))
                held[np.where(factors == 0, 0, 1), places] += 1

    def of(self, policy: int) -> dict[Name, tuple[int, int]]:
        """Return the ticks in which a policy pauses and slows producers; those that it never holds are left
        out.
        """
        found = {name: (int(held[0, policy]), int(held[1, policy])) for name, held in self._ticks.items()}
        return {name: ticks for name, ticks in found.items() if any(ticks)}
