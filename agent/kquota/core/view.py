"""The cluster view: the state of every broker by the records read so far (the fold).

Per key the order of records is the topic's; the order of records of different brokers never matters.
The view is a plain value in memory; the time is only used to forget what can't matter any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from kquota.core.records import (
    BrokerOrder,
    BrokerOrderEvent,
    Event,
    Hold,
    HoldEvent,
    IgnoredEvent,
    MalformedEvent,
    Note,
    RefusedEvent,
    TombstoneEvent,
    UsageEvent,
)
from kquota.core.strict_json import printable
from kquota.core.usage import UsageRecord

# Records from the future that are kept for a broker until their time has come.
MAX_PENDING_RECORDS = 32
# Brokers that the cluster does not list (stopped ones, and invented ids), and orders about
# single brokers, that are kept. Far more than a cluster has; a key costs a stranger nothing.
MAX_UNLISTED_BROKERS = 4096
MAX_BROKER_ORDERS = 4096
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
    EXCESS = "excess"  # about a broker beyond the number that is kept
    REFUSED = "refused"  # for its signature, or for the lack of one
    SUPERSEDED = "superseded"  # of a backlog, and settled by a later one: not even parsed


class NoRecord(StrEnum):
    """Why there is no usable record of a broker."""

    MISSING = "missing"
    TOMBSTONE = "tombstone"
    MALFORMED = "malformed"
    FUTURE = "future"


def excess_sentence(key: bytes | str | None) -> str:
    """Return which record was not kept, and why."""
    return (
        f"{_record_of(key)} is not kept: the topic names more than"
        f" {MAX_UNLISTED_BROKERS} brokers that the cluster does not list, or as many orders"
    )


def foreign_sentence(key: bytes | str | None, cluster_id: str | None) -> str:
    """Return why a well-formed usage record of another cluster can't be used."""
    return f"{_record_of(key)} can't be used: ClusterId: {printable(cluster_id or '')} is another cluster's"


def _record_of(key: bytes | str | None) -> str:
    text = key.decode("ascii", "replace") if isinstance(key, bytes) else key or ""
    return f"the record of key {printable(text)}"


@dataclass(slots=True)
class BrokerHistory:
    """The records of one broker that may still count, in offset order.

    Only records newer (by offset) than the last one that is not from the future can ever count again,
    so everything before it is dropped. Of other instances that report for the same broker, the last record
    that is not from the future is in ``rivals``.
    """

    records: list[UsageRecord] = field(default_factory=list)
    # the last observation of a broker that has no record
    last_event: NoRecord = NoRecord.MISSING
    rivals: dict[str, UsageRecord] = field(default_factory=dict)

    def add(self, record: UsageRecord, now: datetime, tolerance: timedelta) -> bool:
        """Append a record; return whether it is from the future."""
        is_future = record.snapshot_at - now > tolerance
        former = list(self.records)
        # A later record that is no newer replaces all that are only "more in the future".
        while self.records and self.records[-1].snapshot_at >= record.snapshot_at:
            self.records.pop()
        self.records.append(record)
        self._forget(now, tolerance)
        if not is_future:
            self._keep_rivals((one for one in former if one.snapshot_at - now <= tolerance), record)
        return is_future

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

    def _keep_rivals(self, former: Iterable[UsageRecord], record: UsageRecord) -> None:
        """Keep the records of other instances that a new one displaces, unless it reports that they ended."""
        for one in former:
            if one.instance_id is not None:
                self.rivals[one.instance_id] = one
        if record.instance_id is not None:
            self.rivals.pop(record.instance_id, None)
        if record.replaces is not None:
            instance_id, sequence = record.replaces
            ended = self.rivals.get(instance_id)
            if ended is not None and ended.sequence is not None and ended.sequence <= sequence:
                del self.rivals[instance_id]
        while len(self.rivals) > MAX_RIVALS:
            del self.rivals[min(self.rivals, key=lambda one: self.rivals[one].snapshot_at)]

    def precede_by(self, former: BrokerHistory, horizon: datetime) -> None:
        """Where no record counts yet, let the one that counted in a former history do so until then."""
        known = former.current(horizon)
        for one in former.others(horizon):
            if one.instance_id is not None and one.instance_id not in self.rivals:
                self.rivals[one.instance_id] = one
        if known is not None and self.current(horizon) is None:
            self.records.insert(0, known)

    def _forget(self, now: datetime, tolerance: timedelta) -> None:
        present = [i for i, record in enumerate(self.records) if record.snapshot_at - now <= tolerance]
        if present:
            del self.records[: present[-1]]
        # Of too many from the future the middle ones go: the one that counts today is kept.
        while len(self.records) > MAX_PENDING_RECORDS + 1:
            del self.records[1]


@dataclass(slots=True)
class ClusterView:
    """Every broker's records, and the operators' orders.

    With a ``cluster_id``, a usage record that names another cluster is malformed: it was copied here.
    Brokers in ``listed``, those that the cluster lists, are always kept. Of others the lowest ids are, up to
    a bound, so that the order in which records were read does not matter.
    """

    future_tolerance: timedelta
    brokers: dict[int, BrokerHistory] = field(default_factory=dict)
    hold: Hold | None = None
    orders: dict[tuple[BrokerOrder, int], Note] = field(default_factory=dict)
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
                self.brokers.setdefault(broker_id, BrokerHistory()).last_event = NoRecord.MALFORMED
                return FoldResult.MALFORMED
            case UsageEvent(broker_id, record):
                history = self.brokers.setdefault(broker_id, BrokerHistory())
                is_future = history.add(record, now, self.future_tolerance)
                return FoldResult.FUTURE if is_future else FoldResult.USAGE
            case TombstoneEvent(broker_id):
                self.brokers[broker_id] = BrokerHistory(last_event=NoRecord.TOMBSTONE)
                return FoldResult.TOMBSTONE
            case MalformedEvent(broker_id):
                if broker_id is not None:
                    self.brokers.setdefault(broker_id, BrokerHistory()).last_event = NoRecord.MALFORMED
                return FoldResult.MALFORMED
            case HoldEvent(hold):
                self.hold = hold
            case BrokerOrderEvent(order, broker_id, None):
                self.orders.pop((order, broker_id), None)
            case BrokerOrderEvent(order, broker_id, note):
                assert note is not None
                if not self._takes_order(order, broker_id, now):
                    return FoldResult.EXCESS
                self.orders[order, broker_id] = note
            case IgnoredEvent() | RefusedEvent():
                return FoldResult.IGNORED if isinstance(event, IgnoredEvent) else FoldResult.REFUSED
        return FoldResult.OPERATOR

    def settles(self, event: Event, now: datetime) -> bool:
        """Whether no earlier record of its key can count any more."""
        if isinstance(event, UsageEvent):
            from_the_future = event.record.snapshot_at - now > self.future_tolerance
            return not from_the_future and not self._of_another_cluster(event.record)
        return isinstance(event, TombstoneEvent | HoldEvent | BrokerOrderEvent)

    def know_cluster(self, cluster_id: str | None) -> None:
        """Take in the cluster's id, None if it has not been reported yet.

        Records of other clusters that were folded before it was known count no more.
        """
        if cluster_id != self.cluster_id:
            self.cluster_id = cluster_id
            self._drop_foreign_records()

    def _drop_foreign_records(self) -> None:
        for history in self.brokers.values():
            rivals = history.rivals.items()
            history.rivals = {key: one for key, one in rivals if not self._of_another_cluster(one)}
            ours = [record for record in history.records if not self._of_another_cluster(record)]
            if len(ours) < len(history.records):
                history.records = ours
                history.last_event = NoRecord.MALFORMED

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

    def _takes_order(self, order: BrokerOrder, broker_id: int, now: datetime) -> bool:
        """Whether there is room for an order; ended orders, and orders about higher ids, make room."""
        if (order, broker_id) in self.orders or len(self.orders) < MAX_BROKER_ORDERS:
            return True
        self.orders = {key: note for key, note in self.orders.items() if note.in_force(now)}
        if len(self.orders) < MAX_BROKER_ORDERS:
            return True
        highest = max(self.orders, key=lambda key: (key[1], key[0]))
        if (broker_id, order) < (highest[1], highest[0]):
            del self.orders[highest]
            return True
        return False

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

    def others_of(self, broker_id: int, now: datetime) -> list[UsageRecord]:
        """Return the last records of other instances for a broker than the one whose record counts."""
        history = self.brokers.get(broker_id)
        if history is None or (not history.rivals and len(history.records) < 2):
            return []
        return history.others(now + self.future_tolerance)

    def records_at(self, now: datetime) -> Callable[[int], UsageRecord | NoRecord]:
        """Return the result of `record_of` at that moment, for callers that need thousands of brokers."""
        histories, horizon = self.brokers, now + self.future_tolerance

        def record_of(broker_id: int) -> UsageRecord | NoRecord:
            history = histories.get(broker_id)
            if history is None:
                return NoRecord.MISSING
            record = history.current(horizon)
            if record is not None:
                return record
            return NoRecord.FUTURE if history.records else history.last_event

        return record_of

    def joined(self, now: datetime, self_id: int | None = None) -> dict[int, datetime]:
        """Return when brokers became active according to the records, the latest time if they differ.

        A quarantined broker's record counts only for itself; a time from the future does not count yet.
        """
        horizon, joined = now + self.future_tolerance, dict[int, datetime]()
        ignored = self.brokers_under(BrokerOrder.QUARANTINE, now) - {self_id}
        for broker_id, history in self.brokers.items():
            record = history.current(horizon)
            if record is not None and record.joined and broker_id not in ignored:
                for other, at in record.joined.items():
                    if at <= horizon and (other not in joined or joined[other] < at):
                        joined[other] = at
        return joined

    def hold_in_force(self, now: datetime) -> Hold | None:
        """Return the hold that has not yet ended."""
        return self.hold if self.hold is not None and self.hold.note.in_force(now) else None

    def order_in_force(self, order: BrokerOrder, broker_id: int, now: datetime) -> Note | None:
        """Return the order about a broker that has not yet ended."""
        note = self.orders.get((order, broker_id))
        return note if note is not None and note.in_force(now) else None

    def brokers_under(self, order: BrokerOrder, now: datetime) -> set[int]:
        """Return the brokers that an order of this kind is in force for."""
        return {
            broker_id
            for (kind, broker_id), note in self.orders.items()
            if kind is order and note.in_force(now)
        }
