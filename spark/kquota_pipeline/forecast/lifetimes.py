"""How long bytes stay once they have flowed in: learned from how the buckets of expiry filled.

Bytes with the lifetime L that flowed in `a` hours ago leave within B hours where L - B <= a < L. So with a
share w of the inflow for each lifetime, all buckets of all looks are sums of known inflow:

    leaving within B at t = sum over L of w(L) * (inflow until t - max(0, L - B)  -  inflow until t - L)

The shares are those that fit best, none of them negative. Lifetimes that the looks cannot distinguish yet get
shares by the retention of the topics, where looks have it, and otherwise by how common such a retention is.
"""

from __future__ import annotations

import numpy as np

from kquota_pipeline.forecast.history import BOUND_HOURS, DAY_HOURS, Floats, Looks
from kquota_pipeline.forecast.inflow import Flow, usual_inflow

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
# A record leaves with its segment: some hours after its retention, the fewer the likelier.
_LATER_HOURS, _LATER_RATIO = 3.0, 0.03
# Retentions do not say it all: a bound in bytes ends the lives of some topics sooner.
_NOT_BY_RETENTION, _NEW_NOT_BY_RETENTION = 0.2, 1e-4
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
    longer = looks.kept_longer()[chosen]
    if (longer > 0).any():
        # Bytes that the shorter retention has deleted are missing in each bucket since then.
        known = _by_retention(looks, flow, _usual(), 0.0)
        return np.asarray(known / known.sum(axis=1, keepdims=True))
    # Looks of a longer retention say how long bytes stayed then, and others have bytes that are deleted now.
    deleted = [topic for topic in flow.topics if topic is not None and looks.topic_bytes[-1, topic] <= 0]
    before = (looks.topic_bytes[chosen][:, deleted] > 0).any(axis=1)
    chosen = chosen[~((longer < 0).any(axis=1) | before)]
    sums = sums * np.array([topic not in deleted for topic in flow.topics])[:, None]
    common = _common(looks, flow)
    now = (looks.hours[chosen] - flow.first_hour).astype(float)
    bounds = np.concatenate([BOUND_HOURS[1:], [np.inf]])
    born = now[:, None, None] - np.maximum(LIFETIME_HOURS[None, None] - bounds[None, :, None], 0.0)
    gone = now[:, None, None] - LIFETIME_HOURS[None, None] + np.zeros((1, len(bounds), 1))
    features = at(sums, born) - at(sums, gone)
    for row, topic in enumerate(flow.topics):
        if topic is not None:
            # A copy has flowed in elsewhere before it came here.
            features[row, looks.topic_bytes[chosen, topic] <= 0] = 0.0
    classes, looked, bound, lifetimes = features.shape
    matrix = features.transpose(1, 2, 0, 3).reshape(looked * bound, classes * lifetimes)
    wanted = np.cumsum(looks.leaving_bytes[chosen], axis=1)[:, 1:].reshape(-1)
    scale = max(float(wanted.max()), 1.0)
    found = _fitted(matrix / scale, wanted / scale, common).reshape(classes, lifetimes)
    for row, topic in enumerate(flow.topics):
        if topic is not None and looks.keep_hours[topic] > 0:
            # Each byte of a topic stays for one lifetime. Few looks may say otherwise.
            found[row] /= found[row].sum()
    return found


def _moments(count: int) -> np.ndarray:
    """Return the looks to learn from: many of the last day, some of the last weeks."""
    back = np.unique(np.concatenate([np.arange(0, 24, 3), np.arange(24, 24 * 24, 9)]))
    back = back[back < count][:_LOOKS]
    return np.asarray(count - 1 - back)


def _common(looks: Looks, flow: Flow) -> Floats:
    """Return how likely each lifetime is, [class, lifetime], before buckets are looked at, less those that
    the looks rule out.

    Bytes with a retention of a bucket's bound are in the next bucket until the first check after they have
    come. So if that one is always empty, the retention is a shorter one; and if it is empty until a class
    begins, and not from then on, it is no shorter one.
    """
    found = _by_retention(looks, flow, _usual(), _NOT_BY_RETENTION)
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


def _usual() -> Floats:
    """Return how common each lifetime is."""
    common = np.full(len(LIFETIME_HOURS), 1.0)
    for hours, times in _COMMON.items():
        common[np.argmin(np.abs(LIFETIME_HOURS - hours))] = times
    return np.asarray(common / common.sum())


def _by_retention(looks: Looks, flow: Flow, common: Floats, other: float) -> Floats:
    """Return how likely each lifetime is by the retention of topics, [class, lifetime].

    That of all other topics is a mixture by what flowed into each; the share `other` of it is what is common.
    """
    kept, inflow = looks.keep_hours, usual_inflow(looks)
    found = np.tile(common, (len(flow.topics), 1))
    own = [topic for topic in flow.topics if topic is not None]
    for row, topic in enumerate(flow.topics):
        if topic is not None and kept[topic] > 0:
            found[row] = _about(float(kept[topic])) + _NEW_NOT_BY_RETENTION * common
    others = (kept > 0) & (inflow > 0)
    others[own] = False
    if others.any():
        mixed = inflow[others] @ np.array([_about(float(hours)) for hours in kept[others]])
        mixed = mixed / inflow[others].sum()
        found[0] = (1 - other) * mixed + other * common
    return found


def _about(hours: float) -> Floats:
    """Return how likely each lifetime is with this retention; the longest one stands for all beyond."""
    later = LIFETIME_HOURS - min(hours, float(LIFETIME_HOURS[-1]))
    found = np.exp(-np.maximum(later, 0.0) / (_LATER_HOURS + _LATER_RATIO * hours))
    found = np.where(later >= -_LATER_RATIO * hours, found, 0.0)
    return np.asarray(found / found.sum())


def _fitted(matrix: Floats, wanted: Floats, common: Floats) -> Floats:
    """Return factors of the columns, none negative, by multiplicative steps from what is common."""
    factors = common.ravel()
    gram = np.maximum(matrix.T @ matrix, 0.0)
    aim = np.maximum(matrix.T @ wanted, 0.0)
    for _ in range(_PASSES):
        factors = factors * ((aim + 1e-12) / (gram @ factors + 1e-12)) ** _STRIDE
    return factors
