"""The contents of the disks under many policies, while more or less arrives than did in the history. Pure.

Bytes that arrived by a moment are gone once retention has come to it. The sum of those that are gone follows
retention from tick to tick, so that what has arrived needs not be kept for each disk: only what producers
could send, which with the scope of the cluster is one figure for each tick and policy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kquota_pipeline.backtest.flows import Flows, retention_ticks

Floats = NDArray[np.float64]


class Disks:
    """The content of each disk under each policy.

    Args:
        flows: the causes of each disk's changes.
        policies: how many there are.
        by_volume: whether producers may send another amount to each volume.
    """

    def __init__(self, flows: Flows, policies: int, *, by_volume: bool) -> None:
        count, volumes = flows.share.shape
        self._flows = flows
        self._until, self._parts = retention_ticks(flows)
        self._by_volume = by_volume
        self._landed = np.zeros((count, volumes if by_volume else 1, policies))
        self._arrived = np.zeros((volumes, policies))
        self._gone = np.zeros((volumes, policies))
        self._gone_until = np.full(volumes, -1, dtype=np.int64)
        self._columns = np.arange(volumes)

    def take(self, tick: int, landing_bytes: Floats) -> Floats:
        """Let a tick's bytes arrive and age; return what the disks hold, at most what fits: [volume, policy].

        `landing_bytes` are those that producers may send, [policy], or [volume, policy] by the volume whose
        share of them lands.
        """
        flows = self._flows
        if tick:
            self._landed[tick] = landing_bytes
        arriving = flows.share[tick][:, None] * self._landed[tick]
        arriving += flows.beyond_bytes[tick][:, None]
        self._arrived += arriving
        until = self._until[tick]
        self._let_go(until)
        after = np.minimum(until + 1, tick)
        part = np.where((until >= 0) & (after > until), self._parts[tick], 0.0)
        first = np.minimum(flows.deleted_until[tick], flows.first_bytes)
        holds = self._arrived - self._gone
        holds += (flows.first_bytes - first)[:, None]
        if (ageing := np.flatnonzero(part)).size:
            holds[ageing] -= part[ageing, None] * self._arriving(after[ageing], ageing)
        return np.asarray(np.clip(holds, 0.0, flows.capacity_bytes[tick][:, None], out=holds))

    def _let_go(self, until: NDArray[np.int64]) -> None:
        """Add up what arrived up to where retention has come."""
        steps = until - self._gone_until
        behind = np.flatnonzero(steps)
        if not behind.size:
            return
        steps = steps[behind]
        if (steps == 1).all():
            self._gone[behind] += self._arriving(until[behind], behind)
        else:
            columns = np.repeat(behind, steps)
            begins = np.cumsum(steps) - steps
            ticks = np.arange(len(columns)) - np.repeat(begins - self._gone_until[behind] - 1, steps)
            self._gone[behind] += np.add.reduceat(self._arriving(ticks, columns), begins, axis=0)
        self._gone_until = until

    def _arriving(self, ticks: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
        """Return what arrived on disks, each in a tick of its own: [disk, policy]."""
        flows = self._flows
        landed = self._landed[ticks, columns if self._by_volume else 0]
        arrived: Floats = flows.share[ticks, columns][:, None] * landed
        arrived += flows.beyond_bytes[ticks, columns][:, None]
        return arrived
