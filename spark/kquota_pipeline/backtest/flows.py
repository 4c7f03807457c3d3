"""Flows in and out of the disks, recovered from a history. Pure: arrays in, arrays out.

A usage record has the content of a disk, not its arrivals and deletions. The records of clients have the
producers' rates; each byte of them lands once per replica, spread over the disks as their content is. A
disk's further gain came by replication (a broker that was away, a disk that was replaced, partitions moved):
no quota holds it, so it continues in PAUSE. Missing bytes were deleted. Retention deletes by age: the oldest
bytes first, whichever client sent them and however late.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_TICKS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Observed:
    """A cluster's history on an even grid: arrays [tick, volume], or [tick].

    `consumed_bytes` is nan where the volume's broker did not report; rates are those of the whole cluster.
    `produced_bytes` are the bytes accepted in each tick, `offered_bytes` the bytes that would have come
    without a quota.
    """

    consumed_bytes: Floats
    capacity_bytes: Floats
    produced_bytes: Floats
    offered_bytes: Floats


@dataclass(frozen=True, slots=True)
class Flows:
    """The causes of each disk's changes: arrays [tick, volume], or [tick]. `share` turns a produced byte into
    bytes landed.

    `deleted_until` is how far retention has come: the position in the disk's own order of bytes, where its
    first content ends at `first_bytes`. `arrived` is that order: the bytes that had come by each tick.
    `held_bytes` are those of the offered that the brokers held back in the history.
    """

    first_bytes: Floats
    share: Floats
    beyond_bytes: Floats
    arrived: Floats
    deleted_until: Floats
    offered_bytes: Floats
    held_bytes: Floats
    capacity_bytes: Floats
    present: NDArray[np.bool_]


def flows_of(observed: Observed, replication_factor: float) -> Flows:
    """Return the flows behind a history, for topics of the given mean replication factor."""
    present = ~np.isnan(observed.consumed_bytes)
    consumed, capacity = _carried_on(observed.consumed_bytes), _carried_on(observed.capacity_bytes)
    returns = _ever_again(present)
    share, beyond, arrived, deleted = (np.empty_like(consumed) for _ in range(4))
    # Values on the way would take as much memory as these, so there are only those of a part of the time.
    for first in range(0, len(consumed), _TICKS_AT_ONCE):
        some = slice(first, first + _TICKS_AT_ONCE)
        changes = np.diff(consumed[some], axis=0, prepend=consumed[[max(0, first - 1)]])
        weight = np.where(returns[some], consumed[some], 0.0)
        spread = replication_factor * weight / np.maximum(weight.sum(axis=1, keepdims=True), 1.0)
        # While a broker is away nothing lands on it; the missed data comes by replication when it is back.
        share[some] = np.where(present[some], spread, 0.0)
        landed = share[some] * observed.produced_bytes[some, None]
        if first == 0:
            landed[0] = 0.0
        beyond[some] = np.where(present[some], np.maximum(0.0, changes - landed), 0.0)
        arrived[some] = landed + beyond[some]
        deleted[some] = np.maximum(0.0, arrived[some] - changes)
    for tick in range(1, len(consumed)):
        arrived[tick] += arrived[tick - 1]
        deleted[tick] += deleted[tick - 1]
    return Flows(
        first_bytes=consumed[0].copy(),
        share=share,
        beyond_bytes=beyond,
        arrived=arrived,
        deleted_until=deleted,
        offered_bytes=observed.offered_bytes,
        held_bytes=np.maximum(0.0, observed.offered_bytes - observed.produced_bytes),
        capacity_bytes=capacity,
        present=present,
    )


def retention_ticks(flows: Flows) -> tuple[NDArray[np.int64], Floats]:
    """Return for each tick and volume where in time retention has come: a tick, and the share of the next
    one.

    -1 is the disk's first content. Bytes that arrived by that moment have been deleted, whenever that is in
    another course of events.
    """
    reached = flows.deleted_until - flows.first_bytes
    ticks = np.full(reached.shape, -1, dtype=np.int64)
    shares = np.zeros(reached.shape)
    present = np.arange(len(reached))
    for volume in range(reached.shape[1]):
        arrived = flows.arrived[:, volume]
        found = np.searchsorted(arrived, reached[:, volume], side="right") - 1
        # A disk that has run empty, and to which nothing comes, is not ahead of its time.
        found = np.where(reached[:, volume] < 0, -1, np.clip(found, 0, present))
        following = np.minimum(found + 1, len(arrived) - 1)
        gained = arrived[following] - arrived[np.maximum(found, 0)]
        part = np.where(
            gained > 0, (reached[:, volume] - arrived[np.maximum(found, 0)]) / np.maximum(gained, 1.0), 0.0
        )
        ticks[:, volume] = found
        shares[:, volume] = np.where(found >= 0, np.clip(part, 0.0, 1.0), 0.0)
    return ticks, shares


def _carried_on(values: Floats) -> Floats:
    """Return the values with gaps filled by the last known value, and by the first one before it."""
    filled = values.copy()
    for tick in range(1, len(filled)):
        filled[tick] = np.where(np.isnan(filled[tick]), filled[tick - 1], filled[tick])
    for tick in range(len(filled) - 2, -1, -1):
        filled[tick] = np.where(np.isnan(filled[tick]), filled[tick + 1], filled[tick])
    return np.nan_to_num(filled, copy=False)


def _ever_again(present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return where a volume is there or will be: a broker that is away for good gets no share."""
    return np.asarray(np.flip(np.maximum.accumulate(np.flip(present, axis=0), axis=0), axis=0))
