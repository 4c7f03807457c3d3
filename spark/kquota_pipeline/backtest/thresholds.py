"""Limits of many volumes under many policies as whole bytes, so that arrays know what is over them. Pure.

The core judges whole numbers of bytes with exact fractions. A whole number is over a fraction where it is
over the next whole number, so each bound is rounded once, by the core's own arithmetic, and compared as often
as is wanted.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kquota.policy.limits import LimitPair

Floats = NDArray[np.float64]
_ROUNDING = 1e-9


class Bound(NamedTuple):
    """From how many bytes consumed on a volume of one capacity has a vote, and is over its hard limit."""

    low: float
    hard: float


@lru_cache(maxsize=200_000)
def bound_of(pair: LimitPair | None, capacity_bytes: int) -> Bound:
    """Return the bound of limits on a volume; None are limits that can't be judged: nothing is over them."""
    if pair is None:
        return Bound(math.inf, math.inf)
    bounds = pair.bounds(capacity_bytes)
    soft, hard = math.floor(bounds.soft_bytes), math.ceil(bounds.hard_bytes)
    return Bound(float(min(soft + 1, hard)), float(hard))


class Thresholds:
    """The bounds of all volumes under all policies: arrays [volume, policy], out of reach before they are
    set.
    """

    def __init__(self, volumes: int, policies: int) -> None:
        self.low: Floats = np.full((volumes, policies), np.inf)
        self.hard: Floats = np.full((volumes, policies), np.inf)

    def set(self, volume: int, bounds: list[Bound]) -> None:
        """Set a volume's bounds, one for each policy."""
        self.low[volume], self.hard[volume] = np.array(bounds).T

    def worst(self, soft: NDArray[np.bool_], hard: NDArray[np.bool_], consumed: Floats) -> NDArray[np.bool_]:
        """Return where volumes are over their hard limit, or may have the least headroom of all under a
        policy: the exact limits of those that are over their soft limit are less than a byte away.
        """
        found = hard.copy()
        rows, places = np.nonzero(soft & ~hard)
        if rows.size:
            left = self.hard[rows, places] - consumed[rows, places]
            zone = np.maximum(self.hard[rows, places] - self.low[rows, places], 1.0)
            least_most = np.where(hard.any(axis=0), 0.0, np.inf)
            np.minimum.at(least_most, places, left / zone)
            may = (left - 1) / zone <= least_most[places] + _ROUNDING
            found[rows[may], places[may]] = True
        return found
