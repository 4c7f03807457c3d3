"""Usage to come as a sum: what is there, less what expires until then, and what flows in and is still there.

    used(t + h) = leaving(t) - leaving within h + inflow(t .. t + h) that lives longer + what never leaves

Bytes that expire within the retention are on the disk already, with their date; only inflow is forecast.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kquota_pipeline.forecast.history import BOUND_HOURS, DAY_HOURS, Floats, Looks
from kquota_pipeline.forecast.inflow import Flow, flow_of, has_ended, inflow_to_come
from kquota_pipeline.forecast.lifetimes import BEFORE_HOURS, LIFETIME_HOURS, at, shares_of, summed

MIN_LOOKS = 20


@dataclass(frozen=True, slots=True)
class Learned:
    """The inflow, and the share of it that has each lifetime, [class, lifetime]."""

    flow: Flow
    shares: Floats


def learned(looks: Looks) -> Learned | None:
    """Learn lifetimes from looks, None where there are too few."""
    if len(looks.hours) < MIN_LOOKS:
        return None
    flow = flow_of(looks)
    return Learned(flow, shares_of(looks, flow, summed(flow)))


def leaving_to_come(learnt: Learned, looks: Looks, now: int, days: int) -> Floats:
    """Return the bytes that leave some day, [hour to come], as known at the look with index `now`."""
    flow = learnt.flow
    until = int(looks.hours[now] - flow.first_hour)
    inflow = flow.inflow_bytes[:, : until + 1].copy()
    # Nothing is left of topics that were deleted.
    inflow[[topic is not None and looks.topic_bytes[now, topic] <= 0 for topic in flow.topics]] = 0.0
    known = replace(flow, inflow_bytes=inflow)
    hours = days * DAY_HOURS
    ahead = np.arange(1, hours + 1, dtype=float)
    come = inflow_to_come(known, hours)
    come[[began > until - 2 for began in flow.began]] = 0.0
    kept = _kept(learnt.shares, summed(known), until, looks.leaving_bytes[now], ahead)
    later = np.concatenate([np.zeros((len(come), 1)), np.cumsum(come, axis=1)], axis=1)
    old = np.maximum(ahead[:, None] - LIFETIME_HOURS[None], 0.0).astype(np.int64)
    expired = (later[:, old] * learnt.shares[:, None, :]).sum(axis=(0, 2))
    arrived = learnt.shares.sum(axis=1) @ later[:, 1:]
    return np.asarray(kept + arrived - expired)


def _kept(shares: Floats, past: Floats, until: int, leaving: Floats, ahead: Floats) -> Floats:
    """Return what is there now and still is after each of these hours: the bytes of each bucket as the look
    has them, in the order in which lifetimes have them leave.
    """
    grid = np.concatenate([[0.0], ahead])
    # The first bucket is shorter than an hour, and the last one ends with the longest lifetime.
    bounds = np.concatenate([[0.0], BOUND_HOURS[1:]])
    gone = at(past, until - LIFETIME_HOURS)
    born = at(past, until - np.maximum(LIFETIME_HOURS[None] - grid[:, None], 0.0))
    modelled = np.einsum("chl,cl->h", born, shares) - float((gone * shares).sum())
    modelled = np.maximum.accumulate(modelled)
    exact = np.concatenate([[0.0], np.cumsum(leaving)[1:]])
    at_bounds = np.interp(bounds, grid, modelled)
    all_of_them = float((past[:, until + BEFORE_HOURS] @ shares).sum()) - float((gone * shares).sum())
    at_bounds = np.append(at_bounds, max(all_of_them, float(at_bounds[-1])))
    low = np.clip(np.searchsorted(bounds, grid, "right") - 1, 0, len(bounds) - 1)
    width = at_bounds[low + 1] - at_bounds[low]
    flat = (grid - bounds[low]) / (np.append(bounds, LIFETIME_HOURS[-1])[low + 1] - bounds[low])
    share = np.where(width > 0, (modelled - at_bounds[low]) / np.where(width > 0, width, 1.0), flat)
    within = exact[low] + np.clip(share, 0.0, 1.0) * (exact[low + 1] - exact[low])
    return np.asarray(exact[-1] - within[1:])


def unseen_bytes(learnt: Learned, looks: Looks, hours: int) -> float:
    """Return what no back-test has seen: what new topics, which still fill up, take in within these hours at
    the rate of now, and what is left of those that have ended.
    """
    flow = learnt.flow
    found = 0.0
    if any(flow.is_new):
        found += float(inflow_to_come(flow, hours).sum(axis=1)[list(flow.is_new)].sum())
    for topic, own, began in zip(flow.topics[1:], flow.inflow_bytes[1:], flow.began[1:], strict=True):
        if topic is not None and has_ended(own[began + 1 :]):
            found += float(looks.topic_bytes[-1, topic])
    return found
