"""The cluster view: the state of every broker by the records read so far (the fold).

Per key the order of records is the topic's; the order of records of different brokers never matters.
The view is a plain value in memory; the time is only used to forget what can't matter any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from kquota.policy.events import (
    BrokerOrder,
    BrokerOrderEvent,
    DecommissionEvent,
    Event,
    Hold,
    HoldEvent,
    IgnoredEvent,
    MalformedEvent,
    OrderEvent,
    OrderTerms,
    Refusal,
    RefusedEvent,
    ReliefEvent,
    TombstoneEvent,
    UsageEvent,
    WrongTopicEvent,
)
from kquota.policy.orders import Orders
from kquota.policy.usage import UsageRecord

# Records from the future that are kept for a broker until their time has come.
MAX_PENDING_RECORDS = 32
# Their values' bytes together: a client with WRITE needs one key to have all agents keep them.
MAX_PENDING_BYTES = 1_048_576
# Brokers that the cluster does not list (stopped ones, and invented ids) that are kept. Far more than a
# cluster has; a key costs a stranger nothing.
MAX_UNLISTED_BROKERS = 4096
# Other instances that are kept of one broker: agents that claim the same id, or that were started again.
MAX_RIVALS = 8


class FoldResult(StrEnum):
    """The fate of a record; the label of the metric ``kquota_records_total``."""

    USAGE = "usage"
    FUTURE = "future"
    TOMBSTONE = "tombstone"
    OPERATOR = "operator"
    MALFORMED = "malformed"
    IGNORED = "ignored"
    WRONG_TOPIC = "wrong_topic"  # an order on the usage topic, where none counts
    EXCESS = "excess"  # about a broker beyond the number that is kept
    REFUSED = "refused"  # for its signature, or for the lack of one
    SUPERSEDED = "superseded"  # of a backlog, and settled by a later one: not even parsed


class NoRecord(StrEnum):
    """Why there is no usable record of a broker."""

    MISSING = "missing"
    TOMBSTONE = "tombstone"
    MALFORMED = "malformed"
    FUTURE = "future"
    REVOKED = "revoked"


@dataclass(slots=True)
class BrokerHistory:
    """The records of one broker that may still count, in offset order.

    Only records newer (by offset) than the last one that is not from the future can ever count again,
    so everything before it is dropped. Of other instances that report for the same broker, the last record
    that is not from the future is in ``rivals``. ``removed_at`` is when the last tombstone was appended.
    ``withdrawn`` is whether a report was found that must not count: it is another cluster's, or its
    certificate is revoked.
    """

    records: list[UsageRecord] = field(default_factory=list)
    # the last observation of a broker that has no record
    last_event: NoRecord = NoRecord.MISSING
    rivals: dict[str, UsageRecord] = field(default_factory=dict)
    removed_at: datetime | None = None
    withdrawn: bool = False

    def add(self, record: UsageRecord, now: datetime, tolerance: timedelta) -> bool:
        """Append a record; return whether it is from the future."""
        horizon = now + tolerance
        # Records whose time has come displace those before them in the order in which they were appended.
        while len(self.records) > 1 and self.records[1].snapshot_at <= horizon:
            displaced = self.records.pop(0)
            self._displace(displaced, self.records[0])
        if record.snapshot_at <= horizon:
            # It is no older than any that came due, and newer by offset than those that are still to come.
            self._displace(self.current(horizon), record)
            self.records = [record]
            return False
        # A later record that is no newer replaces all that are only "more in the future".
        while self.records and self.records[-1].snapshot_at >= record.snapshot_at:
            self.records.pop()
        self.records.append(record)
        # Of too many from the future the middle ones go: the one that counts today is kept.
        pending_bytes = sum(one.size_bytes for one in self.records[1:])
        while len(self.records) > MAX_PENDING_RECORDS + 1 or (
            len(self.records) > 2 and pending_bytes > MAX_PENDING_BYTES
        ):
            pending_bytes -= self.records.pop(1).size_bytes
        return True

    def current(self, horizon: datetime) -> UsageRecord | None:
        """Return the record with the highest offset that is not from beyond the horizon."""
        for record in reversed(self.records):
            if record.snapshot_at <= horizon:
                return record
        return None

    def others(self, horizon: datetime) -> list[UsageRecord]:
        """Return the last records of the instances that the current one is not of."""
        current = self.current(horizon)
        latest = dict(self.rivals)
        for record in self.records:
            if record.instance_id is not None and record.snapshot_at <= horizon:
                latest[record.instance_id] = record
        if current is not None and current.instance_id is not None:
            latest.pop(current.instance_id, None)
        return [record for record in latest.values() if record.snapshot_at <= horizon]

    def _displace(self, former: UsageRecord | None, record: UsageRecord) -> None:
        """Keep the record of another instance that a new one displaces, unless it reports that it ended."""
        if former is not None and former.instance_id is not None:
            self.rivals[former.instance_id] = former
        self.rivals = {key: one for key, one in self.rivals.items() if _is_rival(one, record)}
        while len(self.rivals) > MAX_RIVALS:
            del self.rivals[min(self.rivals, key=lambda one: self.rivals[one].snapshot_at)]

    def precede_by(self, former: BrokerHistory, horizon: datetime) -> None:
        """Where no record counts yet, let the one that counted in a former history do so until then.

        Where one does, the one before is that of a rival if another instance wrote it: it may have been
        compacted away meanwhile.
        """
        known, mine, rivals = former.current(horizon), self.current(horizon), former.others(horizon)
        if known is not None and mine is None:
            self.records.insert(0, known)
        elif known is not None:
            rivals.append(known)
        for one in rivals:
            if one.instance_id is not None and (mine is None or _is_rival(one, mine)):
                self.rivals.setdefault(one.instance_id, one)


def _is_rival(one: UsageRecord, record: UsageRecord) -> bool:
    """Whether an earlier record is another instance's, which the later one does not report to have ended."""
    if one.instance_id == record.instance_id:
        return False
    if record.replaces is None or one.sequence is None:
        return True
    instance_id, sequence = record.replaces
    return one.instance_id != instance_id or one.sequence > sequence


@dataclass(slots=True)
class ClusterView:
    """Every broker's records, and the operators' orders.

    With a ``cluster_id``, a usage record that names another cluster is malformed: it was copied here.
    Brokers in ``listed``, those that the cluster lists, are always kept. Of others the lowest ids are, up to
    a bound, so that the order in which records were read does not matter.
    """

    future_tolerance: timedelta
    brokers: dict[int, BrokerHistory] = field(default_factory=dict)
    orders: Orders = field(default_factory=Orders)
    cluster_id: str | None = None
    listed: frozenset[int] = frozenset()

    def fold(self, event: Event, now: datetime) -> FoldResult:
        """Take in one record; events of one key must come in offset order."""
        match event:
            case UsageEvent(broker_id) | TombstoneEvent(broker_id) if not self._admits(broker_id):
                return FoldResult.EXCESS
            case MalformedEvent(int(broker_id)) if not self._admits(broker_id):
                return FoldResult.EXCESS
            case UsageEvent(broker_id, record) if self._of_another_cluster(record):
                history = self.brokers.setdefault(broker_id, BrokerHistory())
                history.last_event, history.withdrawn = NoRecord.MALFORMED, True
                return FoldResult.MALFORMED
            case UsageEvent(broker_id, record):
                history = self.brokers.setdefault(broker_id, BrokerHistory())
                is_future = history.add(record, now, self.future_tolerance)
                return FoldResult.FUTURE if is_future else FoldResult.USAGE
            case TombstoneEvent(broker_id):
                self.brokers[broker_id] = BrokerHistory(
                    last_event=NoRecord.TOMBSTONE, removed_at=event.appended_at
                )
                return FoldResult.TOMBSTONE
            case MalformedEvent(broker_id):
                if broker_id is not None:
                    self.brokers.setdefault(broker_id, BrokerHistory()).last_event = NoRecord.MALFORMED
                return FoldResult.MALFORMED
            case HoldEvent() | BrokerOrderEvent() | DecommissionEvent() | ReliefEvent():
                if not self.orders.fold(event, now):
                    return FoldResult.EXCESS
            case RefusedEvent(key, Refusal.REVOKED) if key.isdecimal() and int(key) in self.listed:
                revoked = BrokerHistory(last_event=NoRecord.REVOKED, withdrawn=True)
                self.brokers.setdefault(int(key), revoked)
                return FoldResult.REFUSED
            case WrongTopicEvent():
                return FoldResult.WRONG_TOPIC
            case IgnoredEvent() | RefusedEvent():
                return FoldResult.IGNORED if isinstance(event, IgnoredEvent) else FoldResult.REFUSED
        return FoldResult.OPERATOR

    def settles(self, event: Event, now: datetime) -> bool:
        """Whether no earlier record of its key can count any more."""
        if isinstance(event, UsageEvent):
            from_the_future = event.record.snapshot_at - now > self.future_tolerance
            return not from_the_future and not self._of_another_cluster(event.record)
        return isinstance(event, TombstoneEvent | OrderEvent)

    def know_cluster(self, cluster_id: str | None) -> None:
        """Take in the cluster's id, None if it has not been reported yet.

        Records of other clusters that were folded before it was known count no more.
        """
        if cluster_id != self.cluster_id:
            self.cluster_id = cluster_id
            self._drop_foreign_records()

    def revoke(self, certificates: frozenset[str]) -> None:
        """Drop the records that these certificates have signed: brokers with no others have no report."""
        self._drop(lambda record: record.certificate in certificates, NoRecord.REVOKED)

    def _drop_foreign_records(self) -> None:
        self._drop(self._of_another_cluster, NoRecord.MALFORMED)

    def _drop(self, goes: Callable[[UsageRecord], bool], event: NoRecord) -> None:
        for history in self.brokers.values():
            history.rivals = {key: one for key, one in history.rivals.items() if not goes(one)}
            kept = [record for record in history.records if not goes(record)]
            if len(kept) < len(history.records):
                history.records = kept
                history.last_event, history.withdrawn = event, True

    def _of_another_cluster(self, record: UsageRecord) -> bool:
        return None not in (self.cluster_id, record.cluster_id) and self.cluster_id != record.cluster_id

    def _admits(self, broker_id: int) -> bool:
        """Whether there is room for a broker; one with a higher id makes room for it."""
        if broker_id in self.brokers or len(self.brokers) < MAX_UNLISTED_BROKERS or broker_id in self.listed:
            return True
        unlisted = self.brokers.keys() - self.listed
        if len(unlisted) < MAX_UNLISTED_BROKERS:
            return True
        highest = max(unlisted)
        if broker_id < highest:
            del self.brokers[highest]
        return broker_id < highest

    def fold_all(self, events: Iterable[Event], now: datetime) -> None:
        """Take in many records."""
        for event in events:
            self.fold(event, now)

    def take_over(self, former: ClusterView, now: datetime) -> None:
        """Keep what a former view of the same cluster knew of brokers that this one has no word of.

        Of a broker whose records are all from the future, the former one counts until their time has come.
        """
        for broker_id, history in former.brokers.items():
            mine = self.brokers.get(broker_id)
            if mine is None or (not mine.records and mine.last_event is NoRecord.MALFORMED):
                if self._admits(broker_id):
                    self.brokers[broker_id] = history
            elif mine.last_event is not NoRecord.TOMBSTONE:
                mine.precede_by(history, now + self.future_tolerance)
        self._drop_foreign_records()

    def record_of(self, broker_id: int, now: datetime) -> UsageRecord | NoRecord:
        """Return the record that counts for a broker, or why there is none."""
        return self.records_at(now)(broker_id)

    def reports_of(self, broker_id: int) -> list[UsageRecord]:
        """Return the reports of a broker that count, now or when their time comes, the newest last."""
        history = self.brokers.get(broker_id, BrokerHistory())
        return [one for one in history.records if not self.orders.forgets(broker_id, one)]

    def is_decommissioned(self, broker_id: int, now: datetime) -> bool:
        """Return whether the record that counted for a broker is from before its decommission."""
        history = self.brokers.get(broker_id)
        record = None if history is None else history.current(now + self.future_tolerance)
        return record is not None and self.orders.forgets(broker_id, record)

    def others_of(self, broker_id: int, now: datetime) -> list[UsageRecord]:
        """Return the last records of other instances for a broker than the one whose record counts."""
        history = self.brokers.get(broker_id)
        if history is None or (not history.rivals and len(history.records) < 2):
            return []
        others = history.others(now + self.future_tolerance)
        return [record for record in others if not self.orders.forgets(broker_id, record)]

    def records_at(self, now: datetime) -> Callable[[int], UsageRecord | NoRecord]:
        """Return the result of `record_of` at that moment, for callers that need thousands of brokers."""
        histories, horizon, orders = self.brokers, now + self.future_tolerance, self.orders

        def record_of(broker_id: int) -> UsageRecord | NoRecord:
            history = histories.get(broker_id)
            if history is None:
                return NoRecord.MISSING
            record = history.current(horizon)
            if record is not None:
                return NoRecord.TOMBSTONE if orders.forgets(broker_id, record) else record
            return NoRecord.FUTURE if history.records else history.last_event

        return record_of

    def removals(self, now: datetime) -> Callable[[int], datetime | None]:
        """Return a function that says when the report that counted for a broker was removed, or None.

        It says None of a broker that has a report again. One that was withdrawn is removed until then: the
        time of that differs from agent to agent, and is none that a joining broker could come after.
        """
        record_of = self.records_at(now)

        def removed_at(broker_id: int) -> datetime | None:
            history = self.brokers.get(broker_id)
            if history is None or not isinstance(record_of(broker_id), NoRecord):
                return None
            if history.current(now + self.future_tolerance) is None:
                return now if history.withdrawn else history.removed_at
            return self.orders.decommissions[broker_id].at

        return removed_at

    def joined(self, now: datetime, self_id: int | None = None) -> dict[int, list[datetime]]:
        """Return when brokers became active according to each of the records.

        A quarantined broker's record counts only for itself; a time from the future does not count yet.
        """
        horizon, joined = now + self.future_tolerance, dict[int, list[datetime]]()
        ignored = self.brokers_under(BrokerOrder.QUARANTINE, now) - {self_id}
        for broker_id, history in self.brokers.items():
            record = history.current(horizon)
            if record is None or not record.joined or self.orders.forgets(broker_id, record):
                continue
            if broker_id not in ignored:
                for other, at in record.joined.items():
                    if at <= horizon:
                        joined.setdefault(other, []).append(at)
        return joined

    def hold_in_force(self, now: datetime) -> Hold | None:
        """Return the hold that has not yet ended."""
        return self.orders.hold_in_force(now)

    def order_in_force(self, order: BrokerOrder, broker_id: int, now: datetime) -> OrderTerms | None:
        """Return the order about a broker that has not yet ended."""
        return self.orders.in_force(order, broker_id, now)

    def brokers_under(self, order: BrokerOrder, now: datetime) -> set[int]:
        """Return the brokers that an order of this kind is in force for."""
        found = self.orders.all_in_force(now)
        return {broker_id for kind, broker_id, _ in found if kind is order}
