"""A relief plan: steps that people and programs can read, how far they have come, and how to undo them.

The document is ``schemas/relief.schema.json``. Each value that a step replaces is in the plan before the step
changes it, so that an operator with the file can go on, or go back, after an interruption.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from kquota.policy.timestamps import InvalidTimestamp, format_utc, parse_utc
from kquota.retention.inflow import THROTTLED_RATE, THROTTLED_REPLICAS
from kquota.retention.relief import Option, Step, StepKind
from kquota.retention.relief_moves import LOG_DIRS, MOVES, REPLICAS, brokers_of, place_of

T = TypeVar("T")
SCHEMA_VERSION = 1
TEXTS = (*MOVES, StepKind.THROTTLE)
"""Steps whose values are no numbers."""
MAX_STEPS = 1000
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNLIMITED = "-1"


class InvalidPlan(ValueError):
    """A document that is no relief plan; names the key and the allowed values."""


class PlanState(StrEnum):
    """How far a plan, or one of its steps, has come."""

    PROPOSED = "proposed"
    APPLYING = "applying"
    APPLIED = "applied"
    RESTORING = "restoring"
    RESTORED = "restored"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step of a plan. ``was`` and ``to`` are values as Kafka has them, None where there are none.

    Of a move they are log dirs, or the brokers of the partition that is its target.
    """

    kind: StepKind
    target: str
    setting: str | None
    was: str | None
    to: str | None
    frees_bytes: int
    by: datetime
    loses: str = ""
    state: PlanState = PlanState.PROPOSED
    problem: str | None = None

    def to_step(self) -> Step:
        """Return it as the model of the disks plays it."""
        by_ms = (self.by - _EPOCH) // timedelta(milliseconds=1)
        if self.kind in TEXTS:
            return Step(
                *(self.kind, self.target, self.frees_bytes, by_ms, self.setting),
                source=self.was,
                destination=self.to,
            )
        was, to = (None if text is None else int(text) for text in (self.was, self.to))
        current = None if was is not None and was < 0 else was
        return Step(self.kind, self.target, self.frees_bytes, by_ms, self.setting, current, to)

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "kind": self.kind.value,
            "target": self.target,
            "setting": self.setting,
            "from": self.was,
            "to": self.to,
            "frees_bytes": self.frees_bytes,
            "by": format_utc(self.by),
            "loses": self.loses,
            "state": self.state.value,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class ReplacedValue:
    """A setting of the topic itself before a step; None is none, so that the brokers' default held."""

    target: str
    setting: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan; ``restore_after`` is how long the volume has to be below its soft limit before values go
    back by themselves, None for never.
    """

    id: str
    author: str
    reason: str
    created: datetime
    cluster: str
    broker_id: int
    volume: str
    to_free_bytes: int
    steps: tuple[PlannedStep, ...]
    state: PlanState = PlanState.PROPOSED
    restore_after: timedelta | None = None
    values: tuple[ReplacedValue, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether its steps are moves: these are in plans of their own."""
        return self.steps[0].kind in MOVES

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that its steps are about."""
        named = (step for step in self.steps if step.target and step.setting != THROTTLED_RATE)
        topics = (place_of(step.target)[0] if self.moves else step.target for step in named)
        return tuple(dict.fromkeys(topics))

    @property
    def frees_bytes(self) -> int:
        """The bytes that all steps together free."""
        return sum(step.frees_bytes for step in self.steps)

    def recorded(self, value: ReplacedValue) -> Plan:
        """Note a value before it is replaced. The first one that is noted stays: it is the one to restore."""
        known = {(one.target, one.setting) for one in self.values}
        return self if (value.target, value.setting) in known else replace(self, values=(*self.values, value))

    def with_step(self, number: int, state: PlanState, problem: str | None = None) -> Plan:
        """Take in how far a step has come."""
        steps = list(self.steps)
        steps[number] = replace(steps[number], state=state, problem=problem)
        return replace(self, steps=tuple(steps))

    def with_state(self, state: PlanState) -> Plan:
        """Take in how far the plan has come."""
        return replace(self, state=state)

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        after = self.restore_after
        return {
            "schema_version": SCHEMA_VERSION,
            "id": self.id,
            "author": self.author,
            "reason": self.reason,
            "created": format_utc(self.created),
            "cluster": self.cluster,
            "broker_id": self.broker_id,
            "volume": self.volume,
            "to_free_bytes": self.to_free_bytes,
            "state": self.state.value,
            "steps": [step.to_document() for step in self.steps],
            "restore": {
                "when": None if after is None else {"below_soft_seconds": int(after.total_seconds())},
                "values": [
                    {"target": one.target, "setting": one.setting, "value": one.value} for one in self.values
                ],
            },
        }


def planned(option: Option, loses: Mapping[int, str]) -> tuple[PlannedStep, ...]:
    """Return the steps of an option as a plan has them; ``loses`` is each one's loss in words, by place."""
    return tuple(
        PlannedStep(
            step.kind,
            step.target,
            step.setting,
            *_values(step),
            step.frees_bytes,
            _EPOCH + timedelta(milliseconds=step.by_ms),
            loses.get(number, ""),
        )
        for number, step in enumerate(option.steps)
    )


def _values(step: Step) -> tuple[str | None, str | None]:
    if step.kind in TEXTS:
        return step.source, step.destination
    current = None if step.setting is None else _UNLIMITED if step.current is None else str(step.current)
    return current, None if step.to is None else str(step.to)


def plan_from_document(document: object) -> Plan:
    """Read a plan; unknown keys are ignored.

    Raises:
        InvalidPlan: the text names the key and the allowed values.
    """
    found = _Reader(document, "the plan")
    version = found.get("schema_version", int)
    if version < 1:
        raise InvalidPlan(f"schema_version: {version} is not allowed, but 1 or more")
    steps = found.get("steps", list)
    if not 0 < len(steps) <= MAX_STEPS:
        raise InvalidPlan(f"steps: {len(steps)} are not allowed, but 1 to {MAX_STEPS}")
    restore = _Reader(found.get("restore", dict), "restore")
    when = restore.get_or_none("when", dict)
    after = None if when is None else _Reader(when, "restore.when").count("below_soft_seconds")
    values = [
        _Reader(one, f"restore.values.{number}") for number, one in enumerate(restore.get("values", list))
    ]
    read = tuple(_step(_Reader(one, f"steps.{number}")) for number, one in enumerate(steps))
    if (
        len({step.kind for step in read if step.kind in MOVES}) + any(step.kind not in MOVES for step in read)
        > 1
    ):
        raise InvalidPlan("steps: moves of both kinds, and changes of settings, are not allowed in one plan")
    if read[0].kind in MOVES and len({step.target for step in read}) < len(read):
        raise InvalidPlan("steps: a plan moves each partition once")
    plan_id = found.get("id", str)
    if not _ID.fullmatch(plan_id):
        raise InvalidPlan("id: must be 1 to 64 letters, digits, dots, underscores and hyphens")
    return Plan(
        id=plan_id,
        author=found.get("author", str),
        reason=found.get("reason", str),
        created=found.time("created"),
        cluster=found.get("cluster", str),
        broker_id=found.count("broker_id"),
        volume=found.get("volume", str),
        to_free_bytes=found.count("to_free_bytes"),
        steps=read,
        state=found.one_of("state", PlanState),
        restore_after=None if after is None else timedelta(seconds=after),
        values=tuple(
            ReplacedValue(one.get("target", str), one.get("setting", str), one.get_or_none("value", str))
            for one in values
        ),
    )


def _step(found: _Reader) -> PlannedStep:
    kind = found.one_of("kind", StepKind)
    step = PlannedStep(
        kind,
        found.get("target", str),
        found.get_or_none("setting", str),
        found.get_or_none("from", str),
        found.get_or_none("to", str),
        found.count("frees_bytes"),
        found.time("by"),
        found.get("loses", str),
        found.one_of("state", PlanState),
        found.get_or_none("problem", str),
    )
    allowed = SETTINGS.get(kind)
    if allowed is not None and step.setting not in allowed:
        raise InvalidPlan(f"{found.place}.setting: must be one of {', '.join(allowed)} in a step {kind}")
    if kind in MOVES:
        _check_move(found.place, step)
    elif step.setting == THROTTLED_REPLICAS:
        _check_throttled(found.place, step)
    elif allowed is not None:
        if step.to is None or not step.to.isascii() or not step.to.isdigit():
            raise InvalidPlan(f"{found.place}.to: must be the digits of a number")
        if step.was is None or not step.was.removeprefix("-").isdigit():
            raise InvalidPlan(f"{found.place}.from: must be the digits of a number, or -1")
    return step


def _check_move(place: str, step: PlannedStep) -> None:
    try:
        place_of(step.target)
    except ValueError:
        raise InvalidPlan(f"{place}.target: must be a partition, as in visits-3") from None
    form, allowed = _FORMS[step.kind]
    for key, text in (("from", step.was), ("to", step.to)):
        if text is None or not form.match(text):
            raise InvalidPlan(f"{place}.{key}: must be {allowed}")
    if step.kind is StepKind.REPLICA_MOVE:
        before, after = brokers_of(str(step.was)), brokers_of(str(step.to))
        others = [one != other for one, other in zip(before, after, strict=False)]
        if len(before) != len(after) or len(set(after)) < len(after) or sum(others) != 1:
            raise InvalidPlan(f"{place}.to: must be the brokers of from, but one other in its place")


def _check_throttled(place: str, step: PlannedStep) -> None:
    if step.to is None or not _THROTTLED.match(step.to):
        raise InvalidPlan(f"{place}.to: must be replicas with their brokers, as in 3:1,5:1")
    if step.was is None or (step.was and not _THROTTLED.match(step.was)):
        raise InvalidPlan(f"{place}.from: must be replicas with their brokers, as in 3:1,5:1, or empty")


_THROTTLED = re.compile(r"[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*\Z")
_FORMS = {
    StepKind.LOGDIR_MOVE: (re.compile(r"/"), "the absolute path of a log dir"),
    StepKind.REPLICA_MOVE: (re.compile(r"[0-9]+(,[0-9]+)*\Z"), "the ids of brokers, as in 1,2,3"),
}

SETTINGS: Mapping[StepKind, tuple[str, ...]] = {
    StepKind.RETENTION: ("retention.ms", "local.retention.ms"),
    StepKind.SEGMENT: ("segment.ms",),
    StepKind.LOGDIR_MOVE: (LOG_DIRS,),
    StepKind.REPLICA_MOVE: (REPLICAS,),
    StepKind.THROTTLE: (THROTTLED_REPLICAS, THROTTLED_RATE),
}
"""The settings that a step of a kind may change: a plan is a file, and changes nothing else."""


class _Reader:
    """An object of the document, with its place in it for errors."""

    def __init__(self, document: object, place: str) -> None:
        if not isinstance(document, dict):
            raise InvalidPlan(f"{place}: must be an object")
        self.place, self._document = place, document

    def get(self, key: str, kind: type[T]) -> T:
        """Return a value of this kind."""
        value = self._document.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            name = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}[kind]
            raise InvalidPlan(f"{self._named(key)}: must be {name}")
        return value

    def get_or_none(self, key: str, kind: type[T]) -> T | None:
        """Return a value of this kind, or None where there is none."""
        return None if self._document.get(key) is None else self.get(key, kind)

    def count(self, key: str) -> int:
        """Return a number that is not negative."""
        number = self.get(key, int)
        if number < 0:
            raise InvalidPlan(f"{self._named(key)}: must be 0 or more")
        return number

    def time(self, key: str) -> datetime:
        """Return a point in time."""
        try:
            return parse_utc(self._document.get(key))
        except InvalidTimestamp as error:
            raise InvalidPlan(f"{self._named(key)}: {error}") from None

    def one_of(self, key: str, choices: type[_Choice]) -> _Choice:
        """Return one of an enumeration's values."""
        text = self.get(key, str)
        if text not in set(choices):
            raise InvalidPlan(f"{self._named(key)}: {text[:40]!r} is none of {', '.join(choices)}")
        return choices(text)

    def _named(self, key: str) -> str:
        return key if self.place == "the plan" else f"{self.place}.{key}"


_Choice = TypeVar("_Choice", bound=StrEnum)
