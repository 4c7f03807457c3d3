"""A relief plan on the disks of a history. Pure: a plan and arrays in, arrays out.

A plan names the bytes that each step frees. As a share of what its topic held on the volume then, that counts
at every moment: a setting takes this share away on all volumes, as retention holds on all brokers. A move
takes it from one volume to another one, where the copy grows as fast as the plan's throttle lets it, while
the original stays until the copy is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kquota.retention.inflow import THROTTLED_RATE
from kquota.retention.relief import StepKind
from kquota.retention.relief_moves import MOVES, brokers_of, place_of
from kquota.retention.relief_plan import SCHEMA_VERSION, InvalidPlan, Plan, PlannedStep, PlanState
from kquota_pipeline.backtest.flows import Floats
from kquota_pipeline.backtest.scene import VolumePlace

_LEAST_SECONDS = _LEAST_RATE = 1e-3


class UnplayablePlan(ValueError):
    """A plan that says nothing about this history; the text names the reason."""


@dataclass(frozen=True, slots=True)
class FreedShare:
    """The share of a topic's bytes that a step takes off `source`, or off all volumes where that is None.

    `target` is where a move copies them to.
    """

    topic: str
    share: float
    source: VolumePlace | None = None
    target: VolumePlace | None = None


@dataclass(frozen=True, slots=True)
class Relief:
    """The steps of a plan, applied at the beginning of the history of a cluster.

    `seconds` after that the bytes of settings are gone. Moves copy `copy_bytes_per_second` together.
    """

    cluster_id: str
    steps: tuple[FreedShare, ...]
    seconds: float
    copy_bytes_per_second: float

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of its steps."""
        return tuple(dict.fromkeys(step.topic for step in self.steps))

    @property
    def brokers(self) -> frozenset[int]:
        """The brokers that its moves go from and to."""
        places = (place for step in self.steps for place in (step.source, step.target))
        return frozenset(place.broker_id for place in places if place is not None)


def check_version(document: object) -> None:
    """Refuse a plan of a version that this one does not know.

    Raises:
        InvalidPlan: the text names the versions that are known.
    """
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise InvalidPlan(f"schema_version: {version} is not known here, but {SCHEMA_VERSION}")


def topics_of(plan: Plan) -> tuple[str, ...]:
    """Return the topics whose bytes a plan frees.

    Raises:
        UnplayablePlan: the plan has begun, or frees nothing.
    """
    for number, step in enumerate(plan.steps):
        if step.state is not PlanState.PROPOSED:
            raise UnplayablePlan(
                f"steps.{number} is {step.state}: the history has what it did; make a new plan with "
                "kquota relief --plan"
            )
        if step.kind is StepKind.THROTTLE:
            what = "rate" if step.setting == THROTTLED_RATE else step.target
            raise UnplayablePlan(f"steps.{number} throttles replication ({what}), and frees nothing")
    names = (
        place_of(step.target)[0] if step.kind in MOVES else step.target
        for step in plan.steps
        if step.kind is not StepKind.WAIT
    )
    topics = tuple(dict.fromkeys(names))
    if not topics:
        raise UnplayablePlan("it only waits for what leaves by itself, which the history has already")
    return topics


def target_of(step: PlannedStep, plan: Plan) -> int | str:
    """Return where a move goes to: a log dir of the plan's broker, or another broker.

    Raises:
        UnplayablePlan: the replica that it moves is not on the plan's broker.
    """
    if step.kind is StepKind.LOGDIR_MOVE:
        return str(step.to)
    before, after = set(brokers_of(str(step.was))), set(brokers_of(str(step.to)))
    if before - after != {plan.broker_id}:
        raise UnplayablePlan(f"{step.target} moves off another broker than the plan's, {plan.broker_id}")
    return next(iter(after - before))


def relief_of(
    plan: Plan, topic_bytes: Mapping[str, float], targets: Mapping[int | str, VolumePlace]
) -> Relief:
    """Return a plan as shares of what its topics held.

    Args:
        plan: one that `topics_of` has accepted.
        topic_bytes: what its topics held on the plan's volume when it was made.
        targets: the volume of each place that moves go to.

    Raises:
        UnplayablePlan: the volume had nothing of a topic, or the place of a move has no volume.
    """
    freed: dict[str, int] = {}
    named = []
    for step in plan.steps:
        if step.kind is StepKind.WAIT:
            continue
        topic = place_of(step.target)[0] if step.kind in MOVES else step.target
        if not topic_bytes.get(topic):
            raise UnplayablePlan(
                f"the table topics has no bytes of {topic} on volume {plan.volume} of broker "
                f"{plan.broker_id}; it names the largest topics of each volume"
            )
        freed[topic] = freed.get(topic, 0) + step.frees_bytes
        named.append((step, topic))
    steps = []
    source = VolumePlace(plan.broker_id, plan.volume)
    for step, topic in named:
        share = step.frees_bytes / max(topic_bytes[topic], freed[topic], 1.0)
        if step.kind not in MOVES:
            steps.append(FreedShare(topic, share))
            continue
        place = target_of(step, plan)
        if place not in targets:
            what = (
                f"broker {place}" if isinstance(place, int) else f"log dir {place} of broker {plan.broker_id}"
            )
            raise UnplayablePlan(f"the history has no {what}, which {step.target} moves to")
        steps.append(FreedShare(topic, share, source, targets[place]))
    seconds = max(_LEAST_SECONDS, (max(step.by for step, _ in named) - plan.created).total_seconds())
    return Relief(plan.cluster, tuple(steps), seconds, sum(freed.values()) / seconds)


def relief_bytes(
    relief: Relief,
    volumes: Sequence[VolumePlace],
    topic_bytes: Mapping[str, Floats],
    elapsed_seconds: NDArray[np.float64],
) -> Floats:
    """Return how many bytes more each volume has with a plan, [tick, volume]; negative where it has fewer.

    `topic_bytes` are those of each topic, [tick, volume], and `elapsed_seconds` is the time of each tick
    since the plan was applied.
    """
    column = {volume: place for place, volume in enumerate(volumes)}
    added = np.zeros((len(elapsed_seconds), len(volumes)))
    gone = elapsed_seconds >= relief.seconds
    moves = []
    for step in relief.steps:
        of_topic = step.share * topic_bytes[step.topic]
        if step.source is None or step.target is None:
            added -= of_topic * gone[:, None]
        else:
            moves.append((column[step.source], column[step.target], of_topic[:, column[step.source]]))
    copied = _copied(relief, sum((moved for *_, moved in moves), np.zeros(len(gone))), elapsed_seconds)
    for source, target, moved in moves:
        added[:, source] -= moved * (copied >= 1)
        added[:, target] += moved * copied
    return added


def _copied(relief: Relief, moved_bytes: Floats, elapsed_seconds: Floats) -> Floats:
    """Return which share of the moves is copied in each tick, by what is to copy when they begin."""
    begin = int(np.searchsorted(elapsed_seconds, 0.0))
    to_copy = float(moved_bytes[min(begin, len(moved_bytes) - 1)])
    seconds = max(_LEAST_SECONDS, to_copy / max(relief.copy_bytes_per_second, _LEAST_RATE))
    return np.clip(elapsed_seconds / seconds, 0.0, 1.0)
