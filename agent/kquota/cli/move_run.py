"""Applying a plan of moves, all of its replicas at a time, and undoing it; both can be interrupted.

The broker copies and goes on without this command. So a plan that is found half-way is compared with the log
dirs: what is there already is not moved again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from kquota.cli.plan_run import LATE_RATIO, LOOK_SECONDS, PlanRun, ReliefStopped, Room
from kquota.core.relief import StepKind
from kquota.core.relief_moves import LOG_DIRS
from kquota.core.relief_plan import PlannedStep, PlanState, ReplacedValue
from kquota.core.segments import PartitionState
from kquota.display.figures import size_text
from kquota.kafka.reassign_tool import ToolFailed
from kquota.observe.replica_dirs import ReplicaDir

STALLED = timedelta(minutes=5)
"""A copy that gets no byte for so long has stopped."""

Dirs = Mapping[str, Sequence[ReplicaDir]]


class Mover(Protocol):
    """Moves of this broker's replicas between its log dirs."""

    def reassigned(self) -> Collection[str]:
        """Return the partitions that are being reassigned between brokers.

        Raises:
            ToolFailed: the cluster can't be asked.
        """

    def start(self, moves: Mapping[str, str]) -> None:
        """Have replicas copied to log dirs; to the one where a replica is, its copying ends.

        Raises:
            ToolFailed: not all of them have begun.
        """


@dataclass
class MoveRun(PlanRun):
    """A plan that moves replicas, at work. ``look`` finds the directories of partitions, ``room_of`` is that
    of a log dir's volume, and the broker removes a directory ``removal_delay`` after its replica is gone.
    """

    mover: Mover
    look: Callable[[Collection[str]], Dirs]
    room_of: Callable[[str], Room]
    removal_delay: timedelta

    def check(self) -> None:
        """See that the plan may be applied, without changing anything.

        Raises:
            ReliefStopped: it is undone, a replica is elsewhere or is moved by others, or there is no room.
        """
        self._refuse_an_undone_plan()
        try:
            busy = self.mover.reassigned()
        except ToolFailed as error:
            raise ReliefStopped(f"nothing was changed: {error}") from None
        needed_bytes: dict[str, int] = {}
        dirs = self.look([step.target for step in self.plan.steps])
        for step in self.plan.steps:
            problem = self._obstacle(step, dirs[step.target], busy)
            if problem is not None:
                raise ReliefStopped(f"nothing was changed: {problem}: make another plan")
            missing_bytes = _uncopied_bytes(dirs[step.target], str(step.to))
            needed_bytes[str(step.to)] = needed_bytes.get(str(step.to), 0) + missing_bytes
        for log_dir, size_bytes in needed_bytes.items():
            room_bytes = max(-self.room_of(log_dir).missing_bytes, 0)
            if size_bytes > room_bytes:
                raise ReliefStopped(
                    f"nothing was changed: the volume of {log_dir} has room for {size_text(room_bytes)} until"
                    f" its soft limit, and {size_text(size_bytes)} would be copied there: make another plan"
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
                plan = plan.recorded(ReplacedValue(step.target, LOG_DIRS, step.was))
                plan = plan.with_step(number, PlanState.APPLYING)
            self._note(plan)
            self._move({number: str(self.plan.steps[number].to) for number in numbers}, PlanState.APPLIED)
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
        """
        kept = dict(keep or {})
        self._note(self.plan.with_state(PlanState.RESTORING))
        self._await_removal(lambda: False)
        dirs = self.look([step.target for step in self.plan.steps])
        goals: dict[int, str] = {}
        rooms: dict[str, int] = {}
        for value in reversed(self.plan.values):
            number, source = self._number_of(value), str(value.value)
            step = self.plan.steps[number]
            if step.state is PlanState.RESTORED:
                continue
            rooms.setdefault(source, -self.room_of(source).missing_bytes)
            problem = kept.get(step.target) or _reason_to_stay(step, source, dirs[step.target], rooms)
            if problem is None:
                goals[number] = source
            else:
                kept[step.target] = problem
                self._note(self.plan.with_step(number, PlanState.APPLIED, problem))
                self.say(problem)
        if goals:
            self._move(goals, PlanState.RESTORED)
            self._await_removal(lambda: False)
        self._note(self.plan.with_state(PlanState.APPLIED if kept else PlanState.RESTORED))
        return not kept

    def _obstacle(self, step: PlannedStep, dirs: Sequence[ReplicaDir], busy: Collection[str]) -> str | None:
        """Return why a move can't begin, or go on."""
        name = step.target
        if step.kind is not StepKind.LOGDIR_MOVE:
            return f"this version of kquota does not know steps of kind {step.kind}"
        if name in busy:
            return f"partition {name} is being reassigned between brokers"
        if not {one.log_dir for one in dirs if one.state is PartitionState.LOG} & {step.was, step.to}:
            return f"partition {name} is neither in {step.was} nor in {step.to}"
        copied_to = {one.log_dir for one in dirs if one.state is PartitionState.FUTURE}
        if copied_to - {step.to} or (copied_to and step.state is PlanState.PROPOSED):
            return f"partition {name} is being copied to {min(copied_to)} already"
        return None

    def _move(self, goals: Mapping[int, str], done: PlanState) -> None:
        """Have replicas copied, and wait until all of them are where they go."""
        names = {number: self.plan.steps[number].target for number in goals}
        sizes = _sizes(self.look(list(names.values())))
        try:
            self.mover.start({names[number]: log_dir for number, log_dir in goals.items()})
        except ToolFailed as error:
            self._fail(min(goals), str(error))
        left, said, copied_bytes, copied_at, begun = dict(goals), "", -1, self.now(), self.now()
        while True:
            dirs = self.look(list(names.values()))
            for number in [n for n, log_dir in left.items() if _is_at(dirs[names[n]], log_dir)]:
                log_dir = left.pop(number)
                self._note(self.plan.with_step(number, done))
                self.say(f"partition {names[number]} is in {log_dir}")
            if not left:
                return
            now_copied = sum(
                _copied_bytes(dirs[name], goals[number], sizes[name]) for number, name in names.items()
            )
            if now_copied != copied_bytes:
                copied_bytes, copied_at = now_copied, self.now()
            seconds = (self.now() - begun).total_seconds()
            text = f"{size_text(copied_bytes)} of {size_text(sum(sizes.values()))} copied"
            if text != said:
                said = text
                self.say(text + (f", {size_text(copied_bytes / seconds)}/s" if seconds >= 1 else ""))
            self._stop_at_an_obstacle(left, is_stalled=self.now() - copied_at >= STALLED)
            self.sleep(LOOK_SECONDS)

    def _stop_at_an_obstacle(self, left: Mapping[int, str], *, is_stalled: bool) -> None:
        full = sorted({log_dir for log_dir in left.values() if self.room_of(log_dir).missing_bytes > 0})
        if not full and not is_stalled:
            return
        if is_stalled:
            problem = f"nothing was copied for {STALLED.total_seconds():.0f} s: see the broker's log"
        else:
            problem = f"the volume of {full[0]} has come over its soft limit: the copying was ended"
            try:
                self.mover.start(
                    {self.plan.steps[n].target: self._other_end(n, to) for n, to in left.items()}
                )
            except ToolFailed as error:
                problem = (
                    f"the volume of {full[0]} has come over its soft limit, and the copying goes on: {error}"
                )
        self._fail(min(left), problem)

    def _other_end(self, number: int, log_dir: str) -> str:
        step = self.plan.steps[number]
        return str(step.was if log_dir == step.to else step.to)

    def _await_removal(self, is_enough: Callable[[], bool]) -> None:
        """Wait until the broker has removed what was copied elsewhere, or until that is enough."""
        names = [value.target for value in self.plan.values]
        latest, is_said = self.now() + (1 + LATE_RATIO) * self.removal_delay, False
        while not is_enough() and self.now() < latest:
            removed_bytes = sum(
                one.size_bytes
                for dirs in self.look(names).values()
                for one in dirs
                if one.state is PartitionState.DELETED
            )
            if not removed_bytes:
                return
            if not is_said:
                seconds = self.removal_delay.total_seconds()
                self.say(f"the broker removes {size_text(removed_bytes)} within {seconds:.0f} s")
                is_said = True
            self.sleep(LOOK_SECONDS)


def _reason_to_stay(
    step: PlannedStep, source: str, dirs: Sequence[ReplicaDir], rooms: dict[str, int]
) -> str | None:
    """Return why a replica does not go back; if it does, its bytes are taken out of the room there."""
    at = {one.log_dir: one.size_bytes for one in dirs if one.state is PartitionState.LOG}
    if source in at:
        return None
    if step.to not in at:
        return f"partition {step.target} is in {', '.join(at) or 'no log dir'} by now: it stays"
    if at[step.to] > rooms[source]:
        return (
            f"partition {step.target} stays in {step.to}: its {size_text(at[step.to])} would bring the volume"
            f" of {source} over its soft limit again"
        )
    rooms[source] -= at[step.to]
    return None


def _sizes(dirs: Dirs) -> dict[str, int]:
    return {
        name: sum(one.size_bytes for one in found if one.state is PartitionState.LOG)
        for name, found in dirs.items()
    }


def _is_at(dirs: Sequence[ReplicaDir], log_dir: str) -> bool:
    """Whether a replica is in this log dir, and is not being copied."""
    states = {one.state for one in dirs}
    is_there = any(one.log_dir == log_dir and one.state is PartitionState.LOG for one in dirs)
    return is_there and PartitionState.FUTURE not in states


def _copied_bytes(dirs: Sequence[ReplicaDir], log_dir: str, size_bytes: int) -> int:
    if _is_at(dirs, log_dir):
        return size_bytes
    return sum(
        one.size_bytes for one in dirs if one.state is PartitionState.FUTURE and one.log_dir == log_dir
    )


def _uncopied_bytes(dirs: Sequence[ReplicaDir], log_dir: str) -> int:
    """Return what a move to a log dir still has to copy."""
    if any(one.log_dir == log_dir and one.state is PartitionState.LOG for one in dirs):
        return 0
    size_bytes = sum(one.size_bytes for one in dirs if one.state is PartitionState.LOG)
    return max(size_bytes - _copied_bytes(dirs, log_dir, size_bytes), 0)
