"""History records: every transition and order at once, and a sample of usage and decision now and then.

Every agent reads an order, and the lowest that lives writes it.
Source: docs/adr/0012-orders.md.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kquota.formats.usage_format import usage_to_document
from kquota.guard.applied_clients import clients_body
from kquota.guard.applied_state import AppliedState
from kquota.guard.orders import OrderNews
from kquota.guard.report import CycleReport
from kquota.policy.decision import MAX_LISTED, Decision, Mode, State, written_factor
from kquota.policy.timestamps import format_utc
from kquota.policy.topic_scope import TopicScope
from kquota.retention.topic_sizes import Contents, expiry_body, topics_body

# An agent that was heard within this time counts as alive, and has a turn before those with higher ids.
ALIVE_SECONDS = 60.0
# Longer than the time between two reports of an agent, in a cluster of any size.
TURN_SECONDS = 20.0
# By then the Kafka client has written a record that the agent passed to it.
WRITTEN_SECONDS = 3.0
MAX_WAITING = 1000
# Readers of a part of the history find the names of topics in its first hour.
NAMES_SECONDS = 3600.0
SCHEMA_VERSION = 1


@dataclass(slots=True)
class HistoryRecorder:
    """Makes the documents of one agent's history (``schemas/history.schema.json``)."""

    broker_id: int
    instance_id: str
    sample_interval_seconds: float
    _sampled_at_seconds: float | None = None
    _state: State | None = None
    _applied: AppliedState | None = None
    _sequences: Counter[str] = field(default_factory=Counter)
    _names: NamedTopics = field(init=False)
    _turns: OrderTurns = field(init=False)

    def __post_init__(self) -> None:
        self._names = NamedTopics()
        self._turns = OrderTurns(self.broker_id)

    def record(self, report: CycleReport, contents: Contents | None = None) -> Iterator[dict[str, object]]:
        """Yield the records of a cycle, and of a look at the segments that has ended meanwhile; none while
        cluster or decision are not known.
        """
        self._turns.take(report)
        cluster_id = report.news.cluster_id
        if cluster_id is None:
            return
        for order in self._turns.due(report.moment.monotonic_seconds):
            yield self._envelope("operator", cluster_id, order.at or report.moment.wall, order.body)
        if contents is not None and contents.volumes:
            yield self._envelope("topics", cluster_id, contents.at, topics_body(contents))
            yield self._envelope("expiry", cluster_id, contents.at, expiry_body(contents))
        decision = report.decision
        if decision is None:
            return
        now = report.moment.monotonic_seconds
        due = (
            self._sampled_at_seconds is None or now - self._sampled_at_seconds >= self.sample_interval_seconds
        )
        before, self._state = self._state, decision.state
        changed = before is not None and before is not decision.state
        if not (due or changed):
            return
        if due:
            self._sampled_at_seconds = now
        if report.own is not None:
            body = usage_to_document(report.own)
            self._names.shorten(body, self._sequences["usage"] + 1, now)
            yield self._envelope("usage", cluster_id, report.own.snapshot_at, body)
        if due:
            yield from self._clients(report, cluster_id)
        body = _decision_body(decision, report.enforcement.mode, report.sentence)
        if changed and before is not None:
            body["PreviousState"] = before.value
        yield self._envelope("decision", cluster_id, decision.decided_at, body)

    def _clients(self, report: CycleReport, cluster_id: str) -> Iterator[dict[str, object]]:
        """The clients' activity since the sample before, if the same plug-in has reported both."""
        now = report.applied if isinstance(report.applied, AppliedState) else None
        before, self._applied = self._applied, now
        if now is None or now.clients is None or before is None or before.clients is None:
            return
        window_seconds = (now.written_uptime_ms - before.written_uptime_ms) / 1000
        if (now.boot_id, now.started_uptime_ms) == (
            before.boot_id,
            before.started_uptime_ms,
        ) and window_seconds > 0:
            body = clients_body(before.clients, now.clients, window_seconds)
            yield self._envelope("clients", cluster_id, report.moment.wall, body)

    def _envelope(
        self, kind: str, cluster_id: str, at: datetime, body: Mapping[str, object]
    ) -> dict[str, object]:
        self._sequences[kind] += 1
        return {
            "SchemaVersion": SCHEMA_VERSION,
            "Kind": kind,
            "ClusterId": cluster_id,
            "BrokerId": self.broker_id,
            "InstanceId": self.instance_id,
            "Sequence": self._sequences[kind],
            "At": format_utc(at),
            "Body": dict(body),
        }


def _decision_body(decision: Decision, mode: Mode, sentence: str) -> dict[str, object]:
    return {
        "State": decision.state.value,
        "Factor": decision.factor,
        "Fallback": decision.fallback,
        "Mode": mode.value,
        "Reasons": [_capitalised(reason.to_document()) for reason in decision.reasons[:MAX_LISTED]],
        "Undetermined": [_capitalised(entry.to_document()) for entry in decision.undetermined[:MAX_LISTED]],
        **(
            {"Covered": [_capitalised(entry.to_document()) for entry in decision.covered[:MAX_LISTED]]}
            if decision.covered
            else {}
        ),
        **_scope_body(decision.scope),
        "Hold": None if decision.hold is None else decision.hold.to_document(),
        "Sentence": sentence,
    }


def _scope_body(scope: TopicScope | None) -> dict[str, object]:
    """Return the numbers of topics: their names would fill the history."""
    if scope is None:
        return {}
    return {
        "PausedTopics": scope.paused,
        "ThrottledTopics": len(scope.topics) - scope.paused,
        "OtherTopicsFactor": written_factor(scope.others),
    }


def _capitalised(document: Mapping[str, object]) -> dict[str, object]:
    """Return a decision file's entry with the topics' spelling of keys: broker_id → BrokerId."""
    return {"".join(part.capitalize() for part in key.split("_")): value for key, value in document.items()}


@dataclass(slots=True)
class NamedTopics:
    """The topics that usage records have named, so that samples need not repeat thousands of names.

    By volume: the names, the sequence of the record that has them, and its time in monotonic seconds.
    """

    _of: dict[str, tuple[list[str], int, float]] = field(default_factory=dict)

    def shorten(self, body: Mapping[str, Any], sequence: int, now_seconds: float) -> None:
        """Replace names in a usage record by the sequence of a record of the last hour that has the same."""
        before, self._of = self._of, {}
        for volume in body["Volumes"]:
            if (names := volume.get("Topics")) is None:
                continue
            known = before.get(volume["VolumeName"])
            if known is not None and known[0] == names and now_seconds - known[2] < NAMES_SECONDS:
                del volume["Topics"], volume["TopicsComplete"]
                volume["TopicsSequence"] = known[1]
            else:
                known = names, sequence, now_seconds
            self._of[volume["VolumeName"]] = known


@dataclass(frozen=True, slots=True)
class _Waiting:
    order: OrderNews
    read_at_seconds: float
    before_us: dict[int, tuple[str | None, float]]  # by broker: its agent's instance, and when its turn is


@dataclass(slots=True)
class OrderTurns:
    """The orders that this agent may have to write. Times are seconds of the monotonic clock."""

    broker_id: int
    _heard: dict[int, tuple[str | None, float]] = field(default_factory=dict)
    _waiting: deque[_Waiting] = field(default_factory=lambda: deque(maxlen=MAX_WAITING))

    def take(self, report: CycleReport) -> None:
        """Take in the orders that a cycle read, and who reported."""
        now = report.moment.monotonic_seconds
        for order in report.fold.orders:
            self._waiting.append(_Waiting(order, now, self._turns_before_us(now)))
        for broker_id, (instance_id, at) in report.fold.heard.items():
            if broker_id < self.broker_id:
                age_seconds = max((report.moment.wall - at).total_seconds(), 0.0)
                self._heard[broker_id] = instance_id, now - age_seconds

    def due(self, now_seconds: float) -> Iterator[OrderNews]:
        """Yield the orders whose turn has come."""
        for waiting in [self._waiting.popleft() for _ in range(len(self._waiting))]:
            if self._is_written(waiting):
                continue
            if now_seconds - waiting.read_at_seconds >= len(waiting.before_us) * TURN_SECONDS:
                yield waiting.order
            else:
                self._waiting.append(waiting)

    def _turns_before_us(self, now: float) -> dict[int, tuple[str | None, float]]:
        alive = [i for i, (_, at) in sorted(self._heard.items()) if now - at <= ALIVE_SECONDS]
        return {i: (self._heard[i][0], now + rank * TURN_SECONDS) for rank, i in enumerate(alive)}

    def _is_written(self, waiting: _Waiting) -> bool:
        """Whether an agent before us lived on past its turn; one that restarted does not know the order."""
        for broker_id, (instance_id, turn_seconds) in waiting.before_us.items():
            instance_now, alive_seconds = self._heard[broker_id]
            if instance_now == instance_id and alive_seconds >= turn_seconds + WRITTEN_SECONDS:
                return True
        return False
