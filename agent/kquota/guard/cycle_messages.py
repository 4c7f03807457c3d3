"""The messages of a cycle that matter to people: changes, once, and all problems."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kquota.formats.sentences import (
    broken_glass_sentence,
    refused_sentence,
    starving_sentence,
    undetermined_sentence,
)
from kquota.formats.warnings import held_open_sentence, unvouched_sentence
from kquota.guard.applied_state import AppliedState, AppliedUnknown
from kquota.guard.enforcement import Enforcement
from kquota.guard.report import CycleReport
from kquota.journal.active_problems import MAX_OF_SUBJECT, ActiveProblem
from kquota.journal.journal import Entry, MessageId
from kquota.policy.decision import Decision, Mode, State
from kquota.policy.events import RefusedEvent
from kquota.policy.volume import VolumeStatus

# In a cluster whose volumes are filled evenly, each report makes another one the fullest. This many changes
# of the decisive volume within a state are logged at once, and then one each minute.
MOST_CAUSES = 5
CAUSE_SECONDS = 60.0
# Refused records are one problem until none has come for this long.
REFUSED_SECONDS = 60.0
_STATE_LEVELS = {State.OPEN: logging.INFO, State.THROTTLE: logging.WARNING, State.PAUSE: logging.WARNING}


@dataclass(slots=True)
class CycleMessages:
    """Compares each cycle with the one before."""

    broker_id: int
    _logged: Decision | None = None
    _causes_left: float = MOST_CAUSES
    _counted_at_seconds: float = 0.0
    _enforcement: Enforcement | None = None
    _refused: dict[RefusedEvent, float] = field(default_factory=dict)

    def follow(self, report: CycleReport) -> Iterator[Entry | ActiveProblem]:
        """Yield the journal entries of a cycle, and all that is wrong in it."""
        yield from self.changes(report)
        yield from self.problems(report)

    def changes(self, report: CycleReport) -> list[Entry]:
        """Return the journal entries of what a cycle changed or read, the state first."""
        return [*self._transition(report), *self._enforced(report), *_read(report)]

    def problems(self, report: CycleReport) -> Iterator[ActiveProblem]:
        """Yield all that is wrong in a cycle."""
        decision, fields, own_broker = report.decision, _fields(report), str(self.broker_id)
        for entry in () if decision is None else decision.undetermined:
            broker = "" if entry.broker_id is None else str(entry.broker_id)
            sentence = undetermined_sentence(entry)
            yield ActiveProblem(
                MessageId.UNDETERMINED, f"state {broker}", entry.cause, sentence, broker, fields
            )
        if decision is not None:
            yield from _warnings(decision)
        if report.write_error is not None:
            yield ActiveProblem(MessageId.DECISION_NOT_WRITTEN, "write", "", report.write_error)
        applied, enforces = report.applied, report.enforcement.mode is Mode.ENFORCE
        # A report a second: the mode in force follows the decision later, the broker's own does not.
        observes = isinstance(applied, AppliedState) and applied.broker_mode is Mode.OBSERVE
        holds_no_producer = [self.broker_id] if decision is not None and enforces and observes else []
        if (glass := broken_glass_sentence(holds_no_producer)) is not None:
            yield ActiveProblem(MessageId.MODE_CHANGED, "glass", "", glass, own_broker)
        starving = applied.starving if isinstance(applied, AppliedState) else 0
        if (starved := starving_sentence(self.broker_id, starving)) is not None:
            yield ActiveProblem(MessageId.PRODUCERS_STARVE, "starving", "", starved, own_broker)
        if (rival := report.fold.rival_instance) is not None:
            sentence = f"another agent (instance {rival}) also reports as broker {self.broker_id}"
            yield ActiveProblem(MessageId.RIVAL_AGENT, "rival", rival, sentence, own_broker)
        yield from self._refused_records(report)
        yield from _volume_problems(report)
        if isinstance(applied, AppliedUnknown):
            yield ActiveProblem(MessageId.APPLIED_UNKNOWN, "applied", applied.cause, applied.reason)

    def _refused_records(self, report: CycleReport) -> Iterator[ActiveProblem]:
        """Yield one problem for each key and cause; strangers may invent many keys, and some are named."""
        now_seconds = report.moment.monotonic_seconds
        lasting = {
            refused: at for refused, at in self._refused.items() if now_seconds - at <= REFUSED_SECONDS
        }
        for refused in report.fold.refused:
            if refused in lasting or len(lasting) < MAX_OF_SUBJECT:
                lasting[refused] = now_seconds
        self._refused = lasting
        for refused in lasting:
            sentence = refused_sentence(refused)
            yield ActiveProblem(MessageId.RECORD_REFUSED, "signatures", refused.cause, sentence, refused.key)

    def _transition(self, report: CycleReport) -> list[Entry]:
        decision, before = report.decision, self._logged
        if decision is None:
            return []
        fields = _fields(report)
        if (
            before is not None
            and _news(before) == _news(decision)
            and (_cause(before) == _cause(decision) or not self._logs_cause(report))
        ):
            return [Entry(logging.DEBUG, report.sentence, MessageId.CYCLE, fields)]
        self._logged = decision
        level = _STATE_LEVELS[decision.state]
        if before is not None and before.state is decision.state:
            level = min(level, logging.INFO)
        return [Entry(level, report.sentence, MessageId.STATE_CHANGED, fields)]

    def _logs_cause(self, report: CycleReport) -> bool:
        """Whether to log another cause of the same state now."""
        now_seconds = report.moment.monotonic_seconds
        earned = (now_seconds - self._counted_at_seconds) / CAUSE_SECONDS
        self._causes_left = min(MOST_CAUSES, self._causes_left + earned)
        self._counted_at_seconds = now_seconds
        if self._causes_left < 1:
            return False
        self._causes_left -= 1
        return True

    def _enforced(self, report: CycleReport) -> list[Entry]:
        now, before = report.enforcement, self._enforcement
        if report.decision is None:
            return []
        self._enforcement = now
        if before is not None and (before.mode, before.cause) == (now.mode, now.cause):
            return []
        level = logging.WARNING if now.cause else logging.INFO
        return [Entry(level, f"mode: {now.sentence}", MessageId.MODE_CHANGED)]


def _warnings(decision: Decision) -> Iterator[ActiveProblem]:
    if (held_open := held_open_sentence(decision)) is not None:
        yield ActiveProblem(MessageId.OPERATOR_ORDER, "held open", "", held_open)
    for broker_id in decision.unvouched:
        sentence = unvouched_sentence(broker_id)
        yield ActiveProblem(MessageId.RECORD_REFUSED, "never listed", "", sentence, str(broker_id))


def _fields(report: CycleReport) -> Mapping[str, str]:
    decision = report.decision
    if decision is None:
        return {}
    return {
        "KQUOTA_STATE": decision.state.value,
        "KQUOTA_FACTOR": f"{decision.factor:.6f}",
        "KQUOTA_REASON": report.sentence,
    }


def _read(report: CycleReport) -> Iterator[Entry]:
    for sentence in report.fold.malformed[:5]:
        yield Entry.of(MessageId.RECORD_MALFORMED, sentence)
    for order in report.fold.orders:
        kind = MessageId.BROKER_DECOMMISSIONED if order.decommission else MessageId.OPERATOR_ORDER
        yield Entry.of(kind, order.sentence)


def _volume_problems(report: CycleReport) -> Iterator[ActiveProblem]:
    for volume in report.observation.volumes:
        if volume.status is not VolumeStatus.OK and volume.reason is not None:
            sentence = f"volume {volume.name} is {volume.status}: {volume.reason}"
            yield ActiveProblem(MessageId.VOLUME_TROUBLE, f"volume {volume.name}", volume.status, sentence)
    for warning in report.observation.warnings:
        yield ActiveProblem(MessageId.VOLUME_TROUBLE, f"volumes: {warning}", "", warning)
    for own in () if report.own is None else report.own.volumes:
        bounds = None if own.limits is None else own.limits.bounds(own.capacity_bytes)
        if bounds and own.votes and own.capacity_bytes > 0 and not bounds.has_throttle_zone:
            sentence = (
                f"{own.name}: the soft limit is not below the hard one there;"
                " producers are paused without a throttle"
            )
            yield ActiveProblem(MessageId.CONFIGURATION_WARNING, f"zone of {own.name}", "", sentence)


def _news(decision: Decision) -> tuple[object, ...]:
    """Return what makes a decision news at once."""
    return (decision.state, decision.undetermined, decision.hold, decision.fallback)


def _cause(decision: Decision) -> tuple[object, ...] | None:
    """Return what decides first: not each step of the factor."""
    first = decision.reasons[0] if decision.reasons else None
    return None if first is None else (first.cause, first.broker_id, first.volume, first.resource)
