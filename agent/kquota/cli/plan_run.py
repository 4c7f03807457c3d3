"""The part of applying and undoing a relief plan that is the same for settings and for moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from kquota.core.relief_plan import Plan, PlanState, ReplacedValue

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


@dataclass
class PlanRun:
    """One plan at work. ``save`` writes its file, ``room`` looks at the volume, ``say`` informs the user."""

    plan: Plan
    save: Callable[[Plan], None]
    room: Callable[[], Room]
    say: Callable[[str], None]
    sleep: Callable[[float], None]
    now: Callable[[], datetime]

    def await_calm(self, after: timedelta) -> None:
        """Wait until the volume has been below its soft limit for as long as that."""
        since: datetime | None = None
        while True:
            now, is_calm = self.now(), self.room().missing_bytes <= 0
            since = (since or now) if is_calm else None
            if since is not None and now - since >= after:
                return
            self.sleep(LOOK_SECONDS)

    def _refuse_an_undone_plan(self) -> None:
        plan = self.plan
        if plan.state in (PlanState.RESTORED, PlanState.RESTORING):
            raise ReliefStopped(
                f"plan {plan.id} is {plan.state}: finish that with --undo, and make another plan"
            )

    def _number_of(self, value: ReplacedValue) -> int:
        places = [(step.target, step.setting) for step in self.plan.steps]
        return places.index((value.target, value.setting))

    def _fail(self, number: int, problem: str) -> NoReturn:
        self._note(self.plan.with_step(number, PlanState.FAILED, problem).with_state(PlanState.FAILED))
        raise ReliefStopped(problem)

    def _note(self, plan: Plan) -> None:
        self.save(plan)
        self.plan = plan
