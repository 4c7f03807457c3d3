"""How long bytes stay once they have flowed in: learned from how the buckets of expiry filled.

Bytes with the lifetime L that flowed in `a` hours ago leave within B hours where L - B <= a < L. So with a
share w of the inflow for each lifetime, all buckets of all looks are sums of known inflow:

    leaving within B at t = sum over L of w(L) * (inflow until t - max(0, L - B)  -  inflow until t - L)

The shares are those that fit best, none of them negative. Lifetimes that the looks cannot distinguish yet get
shares by how common such a retention is.
"""

from __future__ import annotations

import numpy as np

from kquota_pipeline.forecast.history import BOUND_HOURS, DAY_HOURS, Floats, Looks
from kquota_pipeline.forecast.inflow import Flow

LIFETIME_HOURS = np.concatenate(
    [
        [1, 3, 6, 9, 12, 18],
        np.arange(24, 97, 6),
        np.arange(108, 265, 12),
        [288, 312, 336, 343, 360, 384, 432, 504, 600, 720, 730, 840, 1080, 1440, 2160],
    ]
).astype(float)
# Usual retentions, in hours, and how much more common than others they are. Kafka's own default is a week.
_COMMON = {1: 3, 6: 3, 12: 4, 24: 10, 48: 8, 72: 10, 96: 2, 120: 3, 168: 30, 240: 2, 336: 6, 720: 4}
_PASSES = 300
# Longer steps than those of plain multiplicative ones come to the same end sooner.
_STRIDE = 1.6
_LOOKS = 64
_NOTHING = 1e-6
_RULED_OUT = 1e-3
BEFORE_HOURS = 2200


def summed(flow: Flow) -> Floats:
    """Return the sums of inflow, [class, hour]: index BEFORE_HOURS is the first look.

    Before it, each class flowed in as in its first week, for as long as it had.
    """
    back = np.arange(BEFORE_HOURS, 0, -1)
    found = []
    for own, filled in zip(flow.inflow_bytes, flow.filled_hours, strict=True):
        usual = float(np.mean(own[1 : 1 + 7 * DAY_HOURS])) if filled and len(own) > 1 else 0.0
        share = np.clip(filled + 1 - back, 0.0, 1.0) if np.isfinite(filled) else 1.0
        found.append(np.cumsum(np.concatenate([max(usual, 0.0) * share * np.ones(BEFORE_HOURS), own])))
    return np.array(found)


def at(sums: Floats, hours: Floats) -> Floats:
    """Return sums, [class, ...], at whole hours since the first look."""
    place = np.clip(hours + BEFORE_HOURS, 0, sums.shape[1] - 1).astype(np.int64)
    return np.asarray(sums[:, place])


def shares_of(looks: Looks, flow: Flow, sums: Floats) -> Floats:
    """Return the share of each class's inflow that has each lifetime, [class, lifetime]."""
    chosen = _moments(len(looks.hours))
    now = (looks.hours[chosen] - flow.first_hour).astype(float)
    bounds = np.concatenate([BOUND_HOURS[1:], [np.inf]])
    born = now[:, None, None] - np.maximum(LIFETIME_HOURS[None, None] - bounds[None, :, None], 0.0)
    gone = now[:, None, None] - LIFETIME_HOURS[None, None] + np.zeros((1, len(bounds), 1))
    features = at(sums, born) - at(sums, gone)
    classes, looked, bound, lifetimes = features.shape
    matrix = features.transpose(1, 2, 0, 3).reshape(looked * bound, classes * lifetimes)
    wanted = np.cumsum(looks.leaving_bytes[chosen], axis=1)[:, 1:].reshape(-1)
    scale = max(float(wanted.max()), 1.0)
    return _fitted(matrix / scale, wanted / scale, _common(looks, flow)).reshape(classes, lifetimes)


def _moments(count: int) -> np.ndarray:
    """Return the looks to learn from: many of the last day, some of the last weeks."""
    back = np.unique(np.concatenate([np.arange(0, 24, 3), np.arange(24, 24 * 24, 9)]))
    back = back[back < count][:_LOOKS]
    return np.asarray(count - 1 - back)


def _common(looks: Looks, flow: Flow) -> Floats:
    """Return how common each lifetime is, [class, lifetime], less those that the looks rule out.

    Bytes with a retention of a bucket's bound are in the next bucket until the first check after they have
    come. So if that one is always empty, the retention is a shorter one; and if it is empty until a class
    begins, and not from then on, it is no shorter one.
    """
    common = np.full(len(LIFETIME_HOURS), 1.0)
    for hours, times in _COMMON.items():
        common[np.argmin(np.abs(LIFETIME_HOURS - hours))] = times
    found = np.tile(common / common.sum(), (len(flow.began), 1))
    within = np.cumsum(looks.leaving_bytes, axis=1)
    since = looks.hours - flow.first_hour
    for number, bound in enumerate(BOUND_HOURS):
        above = within[:, -1] - within[:, number] > _NOTHING * max(float(within[-1, -1]), 1.0)
        for row, began in enumerate(flow.began):
            before, after = above[since <= began], above[since > began]
            if not after.any():
                found[row, bound <= LIFETIME_HOURS] *= _RULED_OUT
            elif row and len(before) > DAY_HOURS and not before.any() and after.mean() > 0.5:
                found[row, bound > LIFETIME_HOURS] *= _RULED_OUT
    return found


def _fitted(matrix: Floats, wanted: Floats, common: Floats) -> Floats:
    """Return factors of the columns, none negative, by multiplicative steps from what is common."""
    factors = common.ravel()
    gram = np.maximum(matrix.T @ matrix, 0.0)
    aim = np.maximum(matrix.T @ wanted, 0.0)
    for _ in range(_PASSES):
        factors = factors * ((aim + 1e-12) / (gram @ factors + 1e-12)) ** _STRIDE
    return factors
