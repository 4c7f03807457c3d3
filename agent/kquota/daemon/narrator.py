"""What is worth telling people about a cycle: transitions and troubles once, sameness only when debugging."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field

from kquota.apply.applied_state import AppliedState, AppliedUnknown
from kquota.core.broken_glass import broken_glass_sentence
from kquota.core.decision import Decision, Mode, State
from kquota.core.sentences import undetermined_sentence
from kquota.daemon.journal import Entry, MessageId
from kquota.daemon.own_record import without_throttle_zone
from kquota.daemon.report import CycleReport

_NUMBERS = re.compile(r"\d+")
_NOT_OK = ("failed", "offline")
# A trouble that looks different for each of a hundred brokers is told for the first few of them.
_MAX_LOOKS = 16
_STATE_LEVELS = {State.OPEN: logging.INFO, State.THROTTLE: logging.WARNING, State.PAUSE: logging.WARNING}


@dataclass(slots=True)
class Narrator:
    """Compares each cycle with what was told last."""

    broker_id: int
    _decision: Decision | None = None
    _enforcement: str = ""
    # by subject what was told of a trouble that lasts, by its look
    _troubles: dict[str, dict[str, str]] = field(default_factory=dict)

    def tell(self, report: CycleReport) -> list[Entry]:
        """Return the journal entries of a cycle, the transition first."""
        entries = [*self._transition(report), *self._enforced(report), *self._folded(report)]
        entries += self.trouble("write", report.write_error, MessageId.DECISION_NOT_WRITTEN)
        entries += self.trouble("topic", report.news.topic_refused, MessageId.TOPIC_REFUSED)
        entries += self.trouble("glass", self._broken_glass(report), MessageId.MODE_CHANGED)
        entries += self._volumes(report)
        return entries

    def trouble(
        self, subject: str, sentence: str | None, message_id: MessageId, level: int = logging.WARNING
    ) -> list[Entry]:
        """Tell a trouble when it begins, when it takes on another look, and when it is over (None).

        What differs only in numbers (an age, an address) looks the same, and each look is told once.
        """
        if sentence is None:
            if (over := self._troubles.pop(subject, None)) is None:
                return []
            return [Entry(logging.INFO, f"over: {[*over.values()][-1]}", message_id)]
        told = self._troubles.setdefault(subject, {})
        if _look(sentence) in told or len(told) >= _MAX_LOOKS:
            return []
        told[_look(sentence)] = sentence
        return [Entry(level, sentence, message_id)]

    def _transition(self, report: CycleReport) -> list[Entry]:
        decision, before = report.decision, self._decision
        if decision is None:
            return []
        self._decision = decision
        fields = {
            "KQUOTA_STATE": decision.state.value,
            "KQUOTA_FACTOR": f"{decision.factor:.6f}",
            "KQUOTA_REASON": report.sentence,
        }
        if before is not None and _told(before) == _told(decision):
            return [Entry(logging.DEBUG, report.sentence, MessageId.CYCLE, fields)]
        level = _STATE_LEVELS[decision.state]
        if before is not None and before.state is decision.state:
            level = min(level, logging.INFO)
        entries = [Entry(level, report.sentence, MessageId.STATE_CHANGED, fields)]
        known = set() if before is None else set(before.undetermined)
        for entry in decision.undetermined:
            if entry not in known:
                sentence = undetermined_sentence(entry)
                entries.append(Entry(logging.WARNING, sentence, MessageId.UNDETERMINED, fields))
        return entries

    def _enforced(self, report: CycleReport) -> list[Entry]:
        sentence = report.enforcement.sentence
        if report.decision is None or _look(sentence) == self._enforcement:
            return []
        self._enforcement = _look(sentence)
        refused = "refused" in sentence or "unverified" in sentence
        level = logging.WARNING if refused else logging.INFO
        return [Entry(level, f"mode: {sentence}", MessageId.MODE_CHANGED)]

    def _broken_glass(self, report: CycleReport) -> str | None:
        """Return what is to say of a broker whose own mode keeps it from what is decided.

        The plug-in reports once a second: the mode in force follows the decision later, the broker's own not.
        """
        applied = report.applied
        decided = report.decision is not None and report.enforcement.mode is Mode.ENFORCE
        observes = isinstance(applied, AppliedState) and applied.broker_mode is Mode.OBSERVE
        return broken_glass_sentence([self.broker_id] if decided and observes else [])

    def _folded(self, report: CycleReport) -> list[Entry]:
        entries = [
            Entry(logging.WARNING, sentence, MessageId.RECORD_MALFORMED) for sentence in report.malformed[:5]
        ]
        for order in report.orders:
            kind = MessageId.BROKER_DECOMMISSIONED if order.decommission else MessageId.OPERATOR_ORDER
            entries.append(Entry(logging.WARNING, order.sentence, kind))
        rival = report.rival_instance
        sentence = f"another agent (instance {rival}) also reports as broker {self.broker_id}"
        entries += self.trouble("rival", None if rival is None else sentence, MessageId.RIVAL_AGENT)
        return entries

    def _volumes(self, report: CycleReport) -> list[Entry]:
        if report.observation is None:
            return []
        entries = []
        for volume in report.observation.volumes:
            for status in _NOT_OK:
                is_so = volume.status == status and volume.reason is not None
                sentence = f"volume {volume.name} is {status}: {volume.reason}" if is_so else None
                entries += self.trouble(f"volume {volume.name} {status}", sentence, MessageId.VOLUME_TROUBLE)
        entries += self.trouble("zone", _zone_sentence(report), MessageId.CONFIGURATION_WARNING)
        warnings = "; ".join(report.observation.warnings) or None
        entries += self.trouble("volumes", warnings, MessageId.VOLUME_TROUBLE)
        unknown = report.applied.reason if isinstance(report.applied, AppliedUnknown) else None
        entries += self.trouble("applied", unknown, MessageId.APPLIED_UNKNOWN, logging.INFO)
        return entries


def _look(sentence: str) -> str:
    return _NUMBERS.sub("0", sentence)


def _zone_sentence(report: CycleReport) -> str | None:
    if report.own is None:
        return None
    names = ", ".join(volume.name for volume in without_throttle_zone(report.own) if volume.votes)
    if not names:
        return None
    return f"{names}: the soft limit is not below the hard one there; producers are paused without a throttle"


def _told(decision: Decision) -> tuple[object, ...]:
    """Return what makes a decision news: not each step of the factor."""
    first = decision.reasons[0] if decision.reasons else None
    cause = None if first is None else (first.cause, first.broker_id, first.volume)
    return (decision.state, cause, decision.undetermined, decision.hold, decision.fallback)
