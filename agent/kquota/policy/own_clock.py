"""Whether the clock of the broker that decides is behind: most others report from its future.

A record from the future counts when its time has come. To an agent whose own clock is behind, all records are
from the future, and it would see every other broker as it was some time ago, as fresh.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kquota.policy.view import ClusterView

# One clock that is ahead may be the wrong one.
FEWEST_AHEAD = 2


def own_clock_behind(view: ClusterView, others: Iterable[int], now: datetime) -> timedelta | None:
    """Return by how much the clock that gives ``now`` is behind; None where it is not, as far as can be seen.

    It is, if the newest reports of at least two ``others``, and of more than half of them, are beyond the
    tolerance for the future, by the clocks of their hosts and by that of the host that stored them.
    """
    asked, ahead = 0, list[timedelta]()
    for broker_id in others:
        asked += 1
        history = view.brokers.get(broker_id)
        if history is None or not history.records:
            continue
        lead = history.records[-1].observed_at - now
        if lead > view.future_tolerance:
            ahead.append(lead)
    if len(ahead) < FEWEST_AHEAD or 2 * len(ahead) <= asked:
        return None
    return sorted(ahead)[(len(ahead) - 1) // 2]
