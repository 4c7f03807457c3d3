"""Limits of many volumes under many policies as whole bytes: arrays decide with them as the core does. Pure.

The core judges whole numbers of bytes with exact fractions. A whole number is over a fraction where it is
over the next whole number, so each bound is rounded once, by the core's own arithmetic, and compared as often
as is wanted.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kquota.policy.limits import LimitPair

Floats = NDArray[np.float64]
NO_PAIR = -1
_LEAST = np.finfo(float).tiny
_MOST = 1 - np.finfo(float).epsneg


class Bound(NamedTuple):
    """A pair of limits on a volume of one capacity, in bytes consumed.

    Above `soft` the volume has a vote; from `hard` on its headroom is 0; one that is latched stays so from
    `kept` on. `low` is where the first of them begins. `slack` is how far the exact hard limit is below
    `hard`, and `zone` the distance of the exact limits, 1 where there is no throttle zone.
    """

    low: float
    soft: float
    hard: float
    kept: float
    slack: float
    zone: float


_NEVER = Bound(math.inf, math.inf, math.inf, math.inf, 0.0, 1.0)


@lru_cache(maxsize=200_000)
def bound_of(pair: LimitPair | None, release_margin: Fraction, capacity_bytes: int) -> Bound:
    """Return the bound of limits on a volume; None are limits that can't be judged: nothing is over them."""
    if pair is None:
        return _NEVER
    bounds = pair.bounds(capacity_bytes)
    soft, hard = math.floor(bounds.soft_bytes), math.ceil(bounds.hard_bytes)
    kept = math.ceil(bounds.released_below_bytes(release_margin))
    if bounds.has_throttle_zone:  # being back at the soft limit always releases
        kept = max(kept, soft + 1)
    zone = bounds.hard_bytes - bounds.soft_bytes
    return Bound(
        low=float(min(soft + 1, hard)),
        soft=float(soft),
        hard=float(hard),
        kept=float(kept),
        slack=float(hard - bounds.hard_bytes),
        zone=float(zone) if zone > 0 else 1.0,
    )


class Thresholds:
    """The bounds of all volumes under all policies: arrays [volume, policy], None before they are set."""

    def __init__(self, volumes: int, policies: int) -> None:
        self._bounds = np.empty((len(Bound._fields), volumes, policies))
        self._bounds[:] = np.array(_NEVER)[:, None, None]

    @property
    def low(self) -> Floats:
        """From where on a volume has a vote."""
        return np.asarray(self._bounds[0])

    def set(self, volume: int, bounds: list[Bound]) -> None:
        """Set a volume's bounds, one for each policy."""
        self._bounds[:, volume, :] = np.array(bounds).T

    def at(self, volumes: NDArray[np.int64], policies: NDArray[np.int64]) -> Bounds:
        """Return the bounds of some volumes, each under one policy."""
        return Bounds(*self._bounds[1:, volumes, policies])

    def of(self, volumes: NDArray[np.int64]) -> Bounds:
        """Return the bounds of some volumes under all policies."""
        return Bounds(*self._bounds[1:, volumes])


class Bounds(NamedTuple):
    """The fields of `Bound` but the first, as arrays of one shape."""

    soft: Floats
    hard: Floats
    kept: Floats
    slack: Floats
    zone: Floats

    def headroom(self, consumed_bytes: Floats) -> Floats:
        """Return the headroom of whole numbers of bytes consumed; only 0 and 1 where the core has 0 and 1."""
        # the whole numbers first: their difference is exact, however large they are
        between = np.clip((self.hard - consumed_bytes - self.slack) / self.zone, _LEAST, _MOST)
        voting = np.where(consumed_bytes > self.soft, between, 1.0)
        return np.asarray(np.where(consumed_bytes >= self.hard, 0.0, voting))
