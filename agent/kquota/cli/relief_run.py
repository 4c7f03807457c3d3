"""Applying a relief plan, one step after the other, and undoing it: both can be interrupted at any moment.

Each value is noted in the plan's file before it is replaced. So a plan that is found half-way goes on where
it was, or goes back to the values that were there before its first change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn, Protocol

from kquota.display.figures import size_text
from kquota.kafka.errors import KafkaFailure
from kquota.policy.timestamps import format_utc
from kquota.retention.inflow import THROTTLED_RATE
from kquota.retention.operator_admin import TopicSetting
from kquota.retention.relief_plan import Plan, PlannedStep, PlanState, ReplacedValue

LOOK_SECONDS = 1.0
LATE_RATIO = 0.2
"""How much later than promised bytes may leave before the next step is taken."""


class ReliefStopped(Exception):
    """A plan that can't go on; the text has the reason, and what to do."""


@dataclass(frozen=True, slots=True)
class Room:
    """The bytes that a volume has consumed, and those at its soft limit."""

    consumed_bytes: int
    soft_bytes: int

    @property
    def missing_bytes(self) -> int:
        """The bytes missing to the soft limit; negative below it."""
        return self.consumed_bytes - self.soft_bytes


def soft_room(consumed_bytes: int, soft_bytes: float) -> Room:
    """Return the room of a volume; the soft limit itself is still OPEN."""
    return Room(consumed_bytes, math.floor(soft_bytes))


class TopicSettings(Protocol):
    """The settings of topics, and changes of them."""

    def read(self, topic: str, name: str) -> TopicSetting | KafkaFailure:
        """Return a setting."""

    def change(
        self, topic: str, name: str, value: str | None, *, validate_only: bool = False
    ) -> KafkaFailure | None:
        """Set it, or with None take it back to the brokers' default; return why that failed."""


@dataclass
class ReliefRun:
    """A plan at work. ``save`` writes its file, ``room`` looks at the volume, ``say`` informs the user."""

    plan: Plan
    save: Callable[[Plan], None]
    room: Callable[[], Room]
    say: Callable[[str], None]
    sleep: Callable[[float], None]
    now: Callable[[], datetime]
    settings: TopicSettings

    def check(self) -> None:
        """See that the plan may be applied, without changing anything.

        Raises:
            ReliefStopped: it is undone, or the cluster refuses one of its steps.
        """
        plan = self.plan
        if plan.state in (PlanState.RESTORED, PlanState.RESTORING):
            raise ReliefStopped(
                f"plan {plan.id} is {plan.state}: finish that with --undo, and make another plan"
            )
        for step in self.plan.steps:
            if step.setting is None or step.state is PlanState.APPLIED:
                continue
            failure = self.settings.change(step.target, step.setting, step.to, validate_only=True)
            if failure is not None:
                raise ReliefStopped(f"nothing was changed: {failure.sentence}")

    def await_calm(self, after: timedelta) -> None:
        """Wait until the volume has been below its soft limit for as long as that."""
        since: datetime | None = None
        while True:
            now, is_calm = self.now(), self.room().missing_bytes <= 0
            since = (since or now) if is_calm else None
            if since is not None and now - since >= after:
                return
            self.sleep(LOOK_SECONDS)

    def apply(self) -> bool:
        """Take the steps until the volume is below its soft limit; return whether it is.

        Raises:
            ReliefStopped: a step failed; the plan has what was done.
        """
        self._note(self.plan.with_state(PlanState.APPLYING))
        for number, step in enumerate(self.plan.steps):
            if step.state is not PlanState.APPLIED:
                if self.room().missing_bytes <= 0:
                    break
                self._take(number, step)
            if self._await(step):
                break
        self._note(self.plan.with_state(PlanState.APPLIED))
        return self.room().missing_bytes <= 0

    def undo(self, keep: Mapping[str, str] | None = None) -> bool:
        """Give back the noted values, the last one first; return whether all are back.

        ``keep`` are topics whose values stay, with the reason. A value that others have changed since is left
        as it is.
        """
        kept = dict(keep or {})
        self._note(self.plan.with_state(PlanState.RESTORING))
        for value in reversed(self.plan.values):
            number = self._number_of(value)
            if self.plan.steps[number].state is PlanState.RESTORED:
                continue
            problem = kept.get(value.target) or self._give_back(value, self.plan.steps[number])
            if problem is None:
                self._note(self.plan.with_step(number, PlanState.RESTORED))
                own = "the brokers' default" if value.value is None else value.value
                self.say(f"{_place(value)} is {own} again")
            else:
                kept[value.target] = problem
                self._note(self.plan.with_step(number, PlanState.APPLIED, problem))
                self.say(problem)
        self._note(self.plan.with_state(PlanState.APPLIED if kept else PlanState.RESTORED))
        return not kept

    def _take(self, number: int, step: PlannedStep) -> None:
        if step.setting is None:
            self._note(self.plan.with_step(number, PlanState.APPLIED))
            return
        found = self.settings.read(step.target, step.setting)
        if isinstance(found, KafkaFailure):
            self._fail(number, found.sentence)
        if found.in_force not in (step.was, step.to):
            self._fail(
                number,
                f"{_place(step)} is {found.in_force} now, and was {step.was} when plan"
                f" {self.plan.id} was made: undo it, and make another plan",
            )
        plan = self.plan.recorded(ReplacedValue(step.target, step.setting, found.own))
        self._note(plan.with_step(number, PlanState.APPLYING))
        failure = self.settings.change(step.target, step.setting, step.to)
        if failure is not None:
            self._fail(number, failure.sentence)
        self._note(self.plan.with_step(number, PlanState.APPLIED))
        self.say(
            f"{_place(step)} is {step.to} instead of {step.was or 'empty'}"
            + (
                f": {size_text(step.frees_bytes)} leave by {format_utc(self._promised(step))}"
                if step.frees_bytes
                else ""
            )
        )

    def _await(self, step: PlannedStep) -> bool:
        """Wait for the bytes of a step; return whether the volume is below its soft limit."""
        begun, latest = self.now(), self._promised(step)
        latest += LATE_RATIO * (latest - begun)
        said = None
        while True:
            missing_bytes = self.room().missing_bytes
            if missing_bytes <= 0:
                self.say("the volume is below its soft limit")
                return True
            if self.now() >= latest:
                return False
            if size_text(missing_bytes) != said:
                said = size_text(missing_bytes)
                self.say(f"{said} more to free")
            self.sleep(LOOK_SECONDS)

    def _promised(self, step: PlannedStep) -> datetime:
        """Return when its bytes are gone if it is taken now: as long from now as when the plan was made."""
        return self.now() + max(step.by - self.plan.created, timedelta(0))

    def _give_back(self, value: ReplacedValue, step: PlannedStep) -> str | None:
        place = _place(value)
        found = self.settings.read(value.target, value.setting)
        if isinstance(found, KafkaFailure):
            return f"{place} is not given back: {found.sentence}"
        if found.own == value.value:
            return None
        if found.in_force != step.to:
            return f"{place} is {found.in_force} by now, which is not of this plan: it stays"
        failure = self.settings.change(value.target, value.setting, value.value)
        return None if failure is None else f"{place} is not given back: {failure.sentence}"

    def _number_of(self, value: ReplacedValue) -> int:
        places = [(step.target, step.setting) for step in self.plan.steps]
        return places.index((value.target, value.setting))

    def _fail(self, number: int, problem: str) -> NoReturn:
        self._note(self.plan.with_step(number, PlanState.FAILED, problem).with_state(PlanState.FAILED))
        raise ReliefStopped(problem)

    def _note(self, plan: Plan) -> None:
        self.save(plan)
        self.plan = plan


def _place(one: PlannedStep | ReplacedValue) -> str:
    kind = "broker" if one.setting == THROTTLED_RATE else "topic"
    return f"{one.setting} of {kind} {one.target}"
