"""Applying a plan of moves, all of its replicas at a time, and undoing it; both can be interrupted.

The brokers copy and go on without this command. So a plan that is found half-way is compared with where the
replicas are: what has arrived is not moved again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from kquota.cli.plan_run import LATE_RATIO, LOOK_SECONDS, PlanRun, ReliefStopped
from kquota.core.relief_plan import PlannedStep, PlanState, ReplacedValue
from kquota.display.figures import size_text
from kquota.kafka.reassign_tool import ToolFailed

PATIENCE = timedelta(minutes=1)
"""The time in which the cluster has to answer."""


@dataclass(frozen=True, slots=True)
class Replica:
    """Where a replica is, in the form of a plan's steps, and where it is copied to, None for nowhere.

    ``removed_bytes`` are on this broker's disks until it has removed what was copied.
    """

    at: str
    copied_to: str | None
    size_bytes: int
    copied_bytes: int = 0
    removed_bytes: int = 0


Replicas = Mapping[str, Replica]


class Mover(Protocol):
    """Moves of this broker's replicas."""

    stalled: timedelta
    """Copies that have not got on for this time have stopped."""

    def reassigned(self) -> Collection[str]:
        """Return the partitions that are being reassigned between brokers.

        Raises:
            ToolFailed: the cluster can't be asked.
        """

    def obstacle(self) -> str | None:
        """Return why no move may begin; None if one may.

        Raises:
            ToolFailed: the cluster can't be asked.
        """

    def look(self, steps: Collection[PlannedStep]) -> Replicas:
        """Return the replicas of these steps, by their partitions.

        Raises:
            ToolFailed: the cluster can't be asked, or a log dir can't be listed.
        """

    def target(self, goal: str, other: str) -> str:
        """Return the place, in words, that a replica comes to with `goal`, from `other`."""

    def missing_bytes(self, target: str) -> int:
        """Return the bytes that the fullest volume there is over its soft limit; negative below it."""

    def start(self, moves: Mapping[str, str]) -> None:
        """Have replicas copied; with the place where a replica is, its copying ends.

        Raises:
            ToolFailed: not all of them have begun.
        """

    def finish(self, moves: Mapping[str, str]) -> None:
        """Take back what the moves needed, once they are over.

        Raises:
            ToolFailed: it is still there.
        """


@dataclass
class MoveRun(PlanRun):
    """A plan that moves replicas, at work. The broker removes a directory ``removal_delay`` after its replica
    is gone.
    """

    mover: Mover
    removal_delay: timedelta

    def check(self) -> None:
        """See that the plan may be applied, without changing anything.

        Raises:
            ReliefStopped: it is undone, a replica is elsewhere or is moved by others, or there is no room.
        """
        self._refuse_an_undone_plan()
        try:
            busy = self.mover.reassigned()
            is_new = all(step.state is PlanState.PROPOSED for step in self.plan.steps)
            if is_new and (problem := self.mover.obstacle()) is not None:
                raise ReliefStopped(f"nothing was changed: {problem}")
        except ToolFailed as error:
            raise ReliefStopped(f"nothing was changed: {error}") from None
        needed_bytes: dict[str, int] = {}
        replicas = self._look(self.plan.steps)
        for step in self.plan.steps:
            replica, to = replicas[step.target], str(step.to)
            problem = _obstacle(step, replica, busy)
            if problem is not None:
                raise ReliefStopped(f"nothing was changed: {problem}: make another plan")
            target = self.mover.target(to, str(step.was))
            missing_bytes = 0 if replica.at == to else max(replica.size_bytes - replica.copied_bytes, 0)
            needed_bytes[target] = needed_bytes.get(target, 0) + missing_bytes
        for target, size_bytes in needed_bytes.items():
            room_bytes = max(-self.mover.missing_bytes(target), 0)
            if size_bytes > room_bytes:
                raise ReliefStopped(
                    f"nothing was changed: {target} has room for {size_text(room_bytes)} until a soft limit,"
                    f" and {size_text(size_bytes)} would be copied there: make another plan"
                )

    def apply(self) -> bool:
        """Move the replicas; return whether the volume is below its soft limit.

        Raises:
            ReliefStopped: a move failed; the plan has what was done.
        """
        self._note(self.plan.with_state(PlanState.APPLYING))
        numbers = [n for n, step in enumerate(self.plan.steps) if step.state is not PlanState.APPLIED]
        is_running = any(self.plan.steps[n].state is PlanState.APPLYING for n in numbers)
        if numbers and (is_running or self.room().missing_bytes > 0):
            plan = self.plan
            for number in numbers:
                step = plan.steps[number]
                plan = plan.recorded(ReplacedValue(step.target, str(step.setting), step.was))
                plan = plan.with_step(number, PlanState.APPLYING)
            self._note(plan)
            self._move({number: str(self.plan.steps[number].to) for number in numbers}, PlanState.APPLIED)
        self._finish()
        self._await_removal(lambda: self.room().missing_bytes <= 0)
        self._note(self.plan.with_state(PlanState.APPLIED))
        is_enough = self.room().missing_bytes <= 0
        if is_enough:
            self.say("the volume is below its soft limit")
        return is_enough

    def undo(self, keep: Mapping[str, str] | None = None) -> bool:
        """End what still runs, and move back what was moved; return whether all replicas are where they were.

        ``keep`` are partitions that stay, with the reason. One stays, too, that others have moved since, and
        one that would bring its former volume over the soft limit.

        Raises:
            ReliefStopped: a move failed; the plan has what was done.
        """
        kept = dict(keep or {})
        self._note(self.plan.with_state(PlanState.RESTORING))
        self._await_removal(lambda: False)
        replicas = self._look(self.plan.steps)
        goals: dict[int, str] = {}
        rooms: dict[str, int] = {}
        for value in reversed(self.plan.values):
            number, source = self._number_of(value), str(value.value)
            step = self.plan.steps[number]
            if step.state is PlanState.RESTORED:
                continue
            target = self.mover.target(source, str(step.to))
            rooms.setdefault(target, -self.mover.missing_bytes(target))
            problem = kept.get(step.target) or _reason_to_stay(
                step, source, replicas[step.target], target, rooms[target]
            )
            if problem is None:
                goals[number] = source
                rooms[target] -= 0 if replicas[step.target].at == source else replicas[step.target].size_bytes
            else:
                kept[step.target] = problem
                self._note(self.plan.with_step(number, PlanState.APPLIED, problem))
                self.say(problem)
        if goals:
            self._move(goals, PlanState.RESTORED)
            self._finish()
            self._await_removal(lambda: False)
        self._note(self.plan.with_state(PlanState.APPLIED if kept else PlanState.RESTORED))
        return not kept

    def _move(self, goals: Mapping[int, str], done: PlanState) -> None:
        """Have replicas copied, and wait until all of them are where they go."""
        steps = [self.plan.steps[number] for number in goals]
        sizes = {name: one.size_bytes for name, one in self._look(steps).items()}
        try:
            self.mover.start({self.plan.steps[number].target: goal for number, goal in goals.items()})
        except ToolFailed as error:
            self._fail(min(goals), str(error))
        left, said, copied_bytes, copied_at, begun = dict(goals), "", -1, self.now(), self.now()
        while True:
            replicas = self._look(steps)
            for number in [n for n, goal in left.items() if _has_arrived(replicas[self._name(n)], goal)]:
                goal = left.pop(number)
                self._note(self.plan.with_step(number, done))
                self.say(f"partition {self._name(number)} is on {goal}")
            if not left:
                return
            now_copied = sum(
                replicas[self._name(n)].copied_bytes if n in left else sizes[self._name(n)] for n in goals
            )
            if now_copied != copied_bytes:
                copied_bytes, copied_at = now_copied, self.now()
            seconds = (self.now() - begun).total_seconds()
            text = f"{size_text(copied_bytes)} of {size_text(sum(sizes.values()))} copied"
            if text != said:
                said = text
                self.say(text + (f", {size_text(copied_bytes / seconds)}/s" if seconds >= 1 else ""))
            self._stop_at_an_obstacle(left, is_stalled=self.now() - copied_at >= self.mover.stalled)
            self.sleep(LOOK_SECONDS)

    def _stop_at_an_obstacle(self, left: Mapping[int, str], *, is_stalled: bool) -> None:
        targets = {self.mover.target(goal, self._other_end(n, goal)) for n, goal in left.items()}
        full = sorted(target for target in targets if self.mover.missing_bytes(target) > 0)
        if full:
            problem = f"{full[0]} has come over a soft limit: the copying was ended"
            try:
                self.mover.start({self._name(n): self._other_end(n, goal) for n, goal in left.items()})
                self._finish()
            except ToolFailed as error:
                problem = f"{full[0]} has come over a soft limit, and the copying goes on: {error}"
            self._fail(min(left), problem)
        if is_stalled:
            seconds = self.mover.stalled.total_seconds()
            self._fail(min(left), f"nothing was copied for {seconds:.0f} s: see the broker's log")

    def _finish(self) -> None:
        ends = {step.target: str(step.to) for step in self.plan.steps}
        ends |= {one.target: str(one.value) for one in self.plan.values if self._is_back(one)}
        try:
            self.mover.finish(ends)
        except ToolFailed as error:
            self.say(f"warning: {error}")

    def _is_back(self, value: ReplacedValue) -> bool:
        return self.plan.steps[self._number_of(value)].state is PlanState.RESTORED

    def _look(self, steps: Collection[PlannedStep]) -> Replicas:
        """Return the replicas; a cluster that does not answer is asked again for a while."""
        begun = self.now()
        while True:
            try:
                return self.mover.look(steps)
            except ToolFailed as error:
                if self.now() - begun >= PATIENCE:
                    raise ReliefStopped(str(error)) from None
            self.sleep(LOOK_SECONDS)

    def _name(self, number: int) -> str:
        return self.plan.steps[number].target

    def _other_end(self, number: int, goal: str) -> str:
        step = self.plan.steps[number]
        return str(step.was if goal == step.to else step.to)

    def _await_removal(self, is_enough: Callable[[], bool]) -> None:
        """Wait until the broker has removed what was copied elsewhere, or until that is enough."""
        begun = {value.target for value in self.plan.values}
        steps = [step for step in self.plan.steps if step.target in begun]
        latest, is_said = self.now() + (1 + LATE_RATIO) * self.removal_delay, False
        while not is_enough() and self.now() < latest:
            removed_bytes = sum(one.removed_bytes for one in self._look(steps).values())
            if not removed_bytes:
                return
            if not is_said:
                seconds = self.removal_delay.total_seconds()
                self.say(f"the broker removes {size_text(removed_bytes)} within {seconds:.0f} s")
                is_said = True
            self.sleep(LOOK_SECONDS)


def _obstacle(step: PlannedStep, replica: Replica, busy: Collection[str]) -> str | None:
    """Return why a move can't begin, or go on."""
    name, is_ours = step.target, step.state is not PlanState.PROPOSED and replica.copied_to == step.to
    if name in busy and not is_ours:
        return f"partition {name} is being reassigned between brokers"
    if replica.at not in (step.was, step.to):
        return f"partition {name} is neither on {step.was} nor on {step.to}"
    if replica.copied_to is not None and not is_ours:
        return f"partition {name} is being copied to {replica.copied_to} already"
    return None


def _reason_to_stay(
    step: PlannedStep, source: str, replica: Replica, target: str, room_bytes: int
) -> str | None:
    """Return why a replica does not go back; None if it does."""
    if replica.at == source:
        return None
    if replica.at != step.to:
        return f"partition {step.target} is on {replica.at or 'no log dir'} by now: it stays"
    if replica.size_bytes > room_bytes:
        return (
            f"partition {step.target} stays on {step.to}: its {size_text(replica.size_bytes)} would bring"
            f" {target} over a soft limit again"
        )
    return None


def _has_arrived(replica: Replica, goal: str) -> bool:
    return replica.at == goal and replica.copied_to is None
