"""Whose reports count: those of brokers that the cluster has listed once, and those with a signature.

A report of an inactive broker counts however old it is, so that a full broker that died goes on counting. A
stranger must not be able to invent such a broker. Agents remember which brokers they have seen in the
cluster's list, and name those of them that are away in their own reports, for agents that were installed
later.
Source: docs/adr/0004-stale-and-inactive-reports.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from kquota.policy.events import BrokerOrder
from kquota.policy.usage import UsageRecord
from kquota.policy.view import MAX_UNLISTED_BROKERS, ClusterView, NoRecord


def vouched_in_reports(
    view: ClusterView, active: frozenset[int], now: datetime, fresh_since: datetime
) -> frozenset[int] | None:
    """Return the brokers that fresh reports of active brokers name as once listed; None without any."""
    lists = [
        record.listed for record in _witnesses(view, active, now, fresh_since) if record.listed is not None
    ]
    return frozenset[int]().union(*lists) if lists else None


def _witnesses(
    view: ClusterView, active: frozenset[int], now: datetime, fresh_since: datetime
) -> Iterator[UsageRecord]:
    record_of, quarantined = view.records_at(now), view.brokers_under(BrokerOrder.QUARANTINE, now)
    for broker_id in active - quarantined:
        record = record_of(broker_id)
        if not isinstance(record, NoRecord) and record.dated_at(now - fresh_since) >= fresh_since:
            yield record


def unvouched(
    view: ClusterView,
    active: frozenset[int] | None,
    known: frozenset[int] | None,
    now: datetime,
    fresh_since: datetime,
) -> frozenset[int]:
    """Return the brokers whose reports do not count because nothing shows that the cluster ever had them.

    ``known`` are the brokers that the judge itself knows of; None if it can't judge: all reports count.
    """
    if active is None or known is None:
        return frozenset()
    record_of = view.records_at(now)
    found = (view.brokers.keys() - active) - known
    strangers = {one for one in found if _is_unsigned(record_of(one))}
    if not strangers:
        return frozenset()
    return frozenset(strangers - (vouched_in_reports(view, active, now, fresh_since) or frozenset()))


def _is_unsigned(record: UsageRecord | NoRecord) -> bool:
    return not isinstance(record, NoRecord) and record.signer is None


@dataclass(slots=True)
class ListedBrokers:
    """An agent's memory of the brokers that the list of a cluster has named.

    ``is_complete`` is whether the agent may conclude from it: one that has just been installed can't know the
    brokers that were listed before. After its first full minute it takes over what the other agents' reports
    name; if none names any, it takes all brokers on the topic for once listed.
    """

    cluster_id: str | None = None
    ids: frozenset[int] = frozenset()
    is_complete: bool = False

    def update(
        self, cluster_id: str, active: frozenset[int], view: ClusterView, now: datetime, fresh_since: datetime
    ) -> None:
        """Take in a list of active brokers. Those that were decommissioned are forgotten.

        A decommission is taken for right once the broker's agent had the time to report again. Before, and
        by a tombstone that a stranger may have written, no broker is forgotten.
        """
        if cluster_id != self.cluster_id:
            self.cluster_id, self.ids, self.is_complete = cluster_id, frozenset(), False
        away, decommissions = self.ids - active, view.orders.decommissions
        gone = {
            one
            for one in away & decommissions.keys()
            if decommissions[one].at <= fresh_since and view.is_decommissioned(one, now)
        }
        if gone or len(away) > MAX_UNLISTED_BROKERS or not active <= self.ids:
            self.ids = active.union(sorted(away - gone)[:MAX_UNLISTED_BROKERS])

    def complete(
        self, active: frozenset[int], view: ClusterView, now: datetime, fresh_since: datetime
    ) -> None:
        """Take in that the topic was read, and that all agents had the time to report."""
        if self.is_complete:
            return
        vouched = vouched_in_reports(view, active, now, fresh_since)
        if vouched is None:
            record_of = view.records_at(now)
            vouched = frozenset(one for one in view.brokers if not isinstance(record_of(one), NoRecord))
        self.ids |= vouched
        self.is_complete = True

    @property
    def known(self) -> frozenset[int] | None:
        """The brokers that the cluster has listed once; None as long as that is not known of all."""
        return self.ids if self.is_complete else None

    def to_report(
        self, active: frozenset[int] | None, view: ClusterView, now: datetime
    ) -> frozenset[int] | None:
        """Return those that our reports name: the ones that are away, and have left a report."""
        if active is None or not self.is_complete:
            return None
        record_of = view.records_at(now)
        return frozenset(one for one in self.ids - active if not isinstance(record_of(one), NoRecord))
