"""The option that slows the replication into a full volume: it frees nothing, and wins time.

Source: docs/adr/0029-replica-moves.md.
"""

from __future__ import annotations

from kquota.retention.inflow import (
    NO_THROTTLE,
    THROTTLED_RATE,
    THROTTLED_REPLICAS,
    throttle_rate,
    with_replicas,
)
from kquota.retention.relief import Option, Situation, Step, StepKind
from kquota.retention.relief_moves import place_of


def throttle(situation: Situation) -> Option | None:
    """Return the throttle of the replicas that fill the volume; None if it would not be full within a day."""
    inflow = situation.inflow
    if inflow is None or situation.to_free_bytes <= 0:
        return None
    topics: dict[str, list[int]] = {}
    for name in inflow.replication:
        topic, partition = place_of(name)
        if situation.may_move(topic):
            topics.setdefault(topic, []).append(partition)
    rate = throttle_rate(inflow)
    filling = sum(one for name, one in inflow.replication.items() if place_of(name)[0] in topics)
    if filling <= rate:
        return None
    steps = []
    for topic, partitions in sorted(topics.items()):
        present = inflow.throttled.get(topic, "")
        wanted = with_replicas(present, partitions, inflow.broker_id)
        if wanted != present:
            steps.append(_step(situation, topic, THROTTLED_REPLICAS, present, wanted))
    if inflow.throttle is None or inflow.throttle > rate:
        present = str(NO_THROTTLE if inflow.throttle is None else inflow.throttle)
        steps.append(_step(situation, str(inflow.broker_id), THROTTLED_RATE, present, str(rate)))
    return Option(tuple(steps), enough=False) if steps else None


def _step(situation: Situation, target: str, setting: str, present: str, wanted: str) -> Step:
    return Step(
        *(StepKind.THROTTLE, target, 0, situation.now_ms, setting), source=present, destination=wanted
    )
