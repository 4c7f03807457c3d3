"""The agent's memory of the brokers that its cluster has listed, from cycle to cycle and over restarts."""

from __future__ import annotations

from datetime import timedelta

from kquota.guard.agent_state import AgentState
from kquota.guard.broker_host import BrokerHost
from kquota.guard.inputs import ClusterNews, Moment
from kquota.policy.known_brokers import ListedBrokers
from kquota.policy.view import ClusterView
from kquota.settings.model import Settings


def listed_brokers(state: AgentState) -> ListedBrokers:
    """Return what earlier instances of the agent have seen in the cluster's list."""
    ever = state.ever_listed
    if ever is None:
        return ListedBrokers()
    return ListedBrokers(ever.cluster_id, frozenset(ever.broker_ids), is_complete=True)


class ListedMemory:
    """Keeps the memory, and the state file up to date with it."""

    def __init__(self, brokers: ListedBrokers | None, started: Moment) -> None:
        """Begin with what earlier instances have seen."""
        self.brokers = ListedBrokers() if brokers is None else brokers
        self._started = started
        self._saved: frozenset[int] | None = None

    def take(
        self,
        news: ClusterNews,
        view: ClusterView,
        moment: Moment,
        settings: Settings,
        local: BrokerHost,
        *,
        was_read: bool,
    ) -> None:
        """Take in the cluster's list, and save what changed; ``was_read`` is whether the topic was."""
        if news.cluster_id is None or news.active_brokers is None:
            return
        brokers, now = self.brokers, moment.wall
        fresh_since = now - timedelta(seconds=settings.staleness_seconds)
        brokers.update(news.cluster_id, news.active_brokers, view, now, fresh_since)
        # By then every agent that runs has reported.
        running_seconds = moment.monotonic_seconds - self._started.monotonic_seconds
        if was_read and running_seconds >= settings.staleness_seconds:
            brokers.complete(news.active_brokers, view, now, fresh_since)
        if brokers.known is not None and brokers.known is not self._saved:
            self._saved = brokers.known
            local.remember_listed(news.cluster_id, brokers.known)
