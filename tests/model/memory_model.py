"""A cluster that goes on after one of its brokers has died full: its agents forget, and others remember.

The hosts of the other brokers fail, come back and are reinstalled, in any order; their volumes stay low.
Nothing of that may release the PAUSE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kquota.policy.decide import PolicySettings, Situation
from kquota.policy.decision import Decision
from kquota.policy.known_brokers import ListedBrokers
from kquota.policy.view import ClusterView
from tests.model.cluster_model import (
    FULL,
    NOW,
    STALE_TICKS,
    TICK,
    TOLERANCE,
    Broker,
    Cluster,
    Known,
    Model,
    history_of,
)

_STOPPED = {
    "agent_ticks": -1, "latched": False, "has_read": False, "active": None, "joined": (), "hold": None,
}  # fmt: skip


@dataclass(frozen=True)
class MemoryModel(Model):
    """The model with the agents' memories of the cluster's list; the last broker has died full.

    ``asks_others`` is whether a new agent takes over what others remember; a test may turn it off.
    """

    brokers: int = 3
    max_faults: int = 2
    asks_others: bool = True

    def start(self) -> Cluster:
        """Return the cluster with the last broker dead, and known to all to be full."""
        calm = super().start()
        everybody = frozenset(range(self.brokers))
        brokers = [broker._replace(listed=everybody) for broker in calm.brokers]
        brokers[-1] = brokers[-1]._replace(level=FULL)
        full = self.tick(calm._replace(brokers=tuple(brokers)))
        dead = full.brokers[-1]._replace(running=False, known=self._nothing(), **_STOPPED)
        return self.tick(full._replace(brokers=(*full.brokers[:-1], dead)))

    def decision(self, broker: Broker, i: int, *, own: bool = True) -> Decision:
        """Return what the core decides for an agent with its memory."""
        known = broker.listed if broker.new_ticks == 0 else None

        def decide(
            view: ClusterView, situation: Situation, settings: PolicySettings, now: object
        ) -> Decision:
            return self.decide(view, replace(situation, known_brokers=known), settings, now)

        return Model(self.brokers, decide=decide).decision(broker, i, own=own)

    def _nothing(self) -> tuple[Known, ...]:
        return tuple(Known() for _ in range(self.brokers))

    def _events(self, cluster: Cluster) -> Iterator[tuple[str, Cluster]]:
        if cluster.faults >= self.max_faults:
            return
        for i, broker in enumerate(cluster.brokers[:-1]):
            for name, changes in (
                (f"host {i} fails", {"running": False, "known": self._nothing(), **_STOPPED}),
                (f"host {i} comes back", {"running": True, "agent_ticks": 0}),
                (f"agent {i} is cut off", {"cut_off": True}),
                (f"agent {i} is connected", {"cut_off": False}),
                (
                    f"host {i} is reinstalled",
                    {**_STOPPED, "known": self._nothing(), "agent_ticks": 0, "running": True}
                    | {"listed": frozenset(), "new_ticks": STALE_TICKS + 1},
                ),
            ):
                changed = broker._replace(**changes)
                if changed != broker and (broker.running or "back" in name or "reinstalled" in name):
                    brokers = list(cluster.brokers)
                    brokers[i] = changed
                    yield name, cluster._replace(brokers=tuple(brokers), faults=cluster.faults + 1)

    def _read(self, broker: Broker, cluster: Cluster, active: frozenset[int]) -> Broker:
        """Take in the cluster's list, too; reports name who is away."""
        broker = super()._read(broker, cluster, active)
        view, fresh_since = _view(broker), NOW - STALE_TICKS * TICK
        memory = ListedBrokers("c", broker.listed, is_complete=False)
        memory.update("c", active, view, NOW, fresh_since)
        if broker.new_ticks == 1 and self.asks_others:
            memory.complete(active, view, NOW, fresh_since)
        return broker._replace(listed=memory.ids)

    def _publish(self, cluster: Cluster, i: int, active: frozenset[int]) -> Cluster:
        before, cluster = cluster, super()._publish(cluster, i, active)
        broker, topic = cluster.brokers[i], list(cluster.topic)
        if topic[i] is not before.topic[i] and broker.new_ticks == 0:
            memory = ListedBrokers("c", broker.listed, is_complete=True)
            (report,) = topic[i].reports
            listed = memory.to_report(active, _view(broker), NOW)
            topic[i] = Known((report._replace(listed=listed),))
        return cluster._replace(topic=tuple(topic))


def _view(broker: Broker) -> ClusterView:
    return ClusterView(TOLERANCE, brokers={j: history_of(one) for j, one in enumerate(broker.known)})
