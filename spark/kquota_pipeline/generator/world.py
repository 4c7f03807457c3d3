"""The life of a generated cluster: offered bytes, the bytes its quota lets through, and the content of the
disks.

Every topic's retained bytes on a volume are those produced since its retention, rounded up to whole
segments: saw-teeth come from there, as they do in Kafka. The quota is in force all the time, so a pause
shows in the figures, and what producers held back comes later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kquota_pipeline.generator.fleet import DAY_SECONDS, HOUR_SECONDS, TOPICS, Fleet

Floats = NDArray[np.float64]

SOFT_FREE_RATIO = 0.15
HARD_FREE_RATIO = 0.05
RELEASE_MARGIN = 0.1
# How much faster than usual producers send what they held back.
_CATCH_UP_RATIO = 0.5
BOUND_HOURS = (1 / 6, 1, 6, 24, 72, 168, 720)
"""The times until which agents say what leaves by itself."""
# Producers keep so much of a pause in their buffers and sources; the rest is never sent.
_REGAINED_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class World:
    """The events, by tick: arrays are [tick, volume], [tick, topic] or [tick]."""

    consumed_bytes: NDArray[np.int64]
    capacity_bytes: NDArray[np.int64]
    latched: NDArray[np.bool_]
    accepted_bytes: Floats
    offered_bytes: Floats
    factor: Floats
    fallback: NDArray[np.bool_]
    worst_volume: NDArray[np.int64]
    topic_bytes: Floats
    """The bytes of each topic on each volume: [look, volume, topic], a look at each full hour."""
    leaving_bytes: Floats
    """Likewise those that leave until each of BOUND_HOURS, and in all: [look, volume, topic, bound]."""


def live(fleet: Fleet) -> World:
    """Let the cluster live through its days."""
    size = fleet.size
    offered = _offered(fleet)
    capacity = _capacity(fleet)
    retention = _retention_ticks(fleet)
    undetermined = _undetermined(fleet)
    draw = np.random.default_rng([size.seed, 77, fleet.volumes])
    phase = draw.uniform(0, 1, fleet.placement.shape)
    segment = np.array([topic.segment_bytes for topic in TOPICS]) * np.maximum(1.0, fleet.placement * 8)

    consumed = np.zeros((size.ticks, fleet.volumes), dtype=np.int64)
    latched = np.zeros((size.ticks, fleet.volumes), dtype=bool)
    accepted = np.zeros_like(offered)
    factor = np.ones(size.ticks)
    fallback = np.zeros(size.ticks, dtype=bool)
    worst = np.full(size.ticks, -1)
    history = _ProducedBytes(fleet, size.ticks)
    held_back = np.zeros(len(TOPICS))
    frozen = np.zeros(fleet.volumes)
    was_latched = np.zeros(fleet.volumes, dtype=bool)
    previous_factor = 1.0
    ticks_of_look = HOUR_SECONDS // size.interval_seconds
    looks = (-(-size.ticks // ticks_of_look), *fleet.placement.shape)
    topic_bytes, leaving_bytes = np.zeros(looks), np.zeros((*looks, len(BOUND_HOURS) + 1))

    for tick in range(size.ticks):
        demand = offered[tick] + np.minimum(held_back, _CATCH_UP_RATIO * offered[tick])
        held = size.enforced and previous_factor < 1
        accepted[tick] = np.minimum(demand, previous_factor * offered[tick]) if held else demand
        held_back = _held_back(held_back, offered[tick] - accepted[tick])
        history.add(tick, accepted[tick])
        disks = _Disks(_placement(fleet, tick), segment, phase, history, tick)
        by_topic = disks.retained(retention[tick])
        planned = by_topic.sum(axis=1)
        used = _after_events(fleet, tick, planned, frozen)
        if tick % ticks_of_look == 0:
            there = (used / np.maximum(planned, 1.0))[:, None]
            topic_bytes[tick // ticks_of_look] = by_topic * there
            leaving_bytes[tick // ticks_of_look] = (
                disks.leaving(retention[tick], by_topic, ticks_of_look) * there[..., None]
            )
        used = used + fleet.system_bytes
        consumed[tick] = np.minimum(used, capacity[tick]).astype(np.int64)
        free_ratio = 1 - consumed[tick] / capacity[tick]
        headroom = np.clip((free_ratio - HARD_FREE_RATIO) / (SOFT_FREE_RATIO - HARD_FREE_RATIO), 0, 1)
        was_latched = (headroom == 0) | (was_latched & (headroom <= RELEASE_MARGIN))
        for new in fleet.replacements:
            if tick == new.at:
                was_latched[new.volume] = headroom[new.volume] == 0
        latched[tick] = was_latched
        votes = np.where(was_latched, 0.0, headroom)
        votes[_gone(fleet, tick)] = 1.0
        worst[tick] = int(np.argmin(votes)) if votes.min() < 1 else -1
        fallback[tick] = undetermined[tick]
        previous_factor = factor[tick] = 0.0 if undetermined[tick] else float(votes.min())
    return World(
        consumed, capacity, latched, accepted, offered, factor, fallback, worst, topic_bytes, leaving_bytes
    )


def _held_back(before: Floats, missed: Floats) -> Floats:
    return np.maximum(0.0, before + np.where(missed > 0, _REGAINED_SHARE * missed, missed))


class _ProducedBytes:
    """Bytes produced to each topic up to each tick, with a past before the first one."""

    def __init__(self, fleet: Fleet, ticks: int) -> None:
        self._past_ticks = int(
            max(topic.age_days for topic in TOPICS) * DAY_SECONDS / fleet.size.interval_seconds
        )
        past = np.arange(-self._past_ticks, 1)[:, None] * fleet.size.interval_seconds * fleet.base_rate_bytes
        oldest = [
            -topic.age_days * DAY_SECONDS * rate
            for topic, rate in zip(TOPICS, fleet.base_rate_bytes, strict=True)
        ]
        self._total = np.empty((self._past_ticks + 1 + ticks, len(TOPICS)))
        self._total[: self._past_ticks + 1] = np.maximum(past, oldest)

    def add(self, tick: int, produced: Floats) -> None:
        row = self._past_ticks + 1 + tick
        self._total[row] = self._total[row - 1] + produced

    def total(self, tick: int) -> Floats:
        return np.asarray(self._total[self._past_ticks + 1 + tick])

    def total_before(self, tick: int, ticks_ago: NDArray[np.int64]) -> Floats:
        rows = np.maximum(0, self._past_ticks + 1 + tick - ticks_ago)
        return np.asarray(self._total[rows, np.arange(len(TOPICS))])


def _offered(fleet: Fleet) -> Floats:
    """The bytes that producers want to send in each tick, [tick, topic]."""
    size = fleet.size
    seconds = np.arange(size.ticks) * size.interval_seconds
    hour = seconds / 3600 % 24
    weekday = (seconds // DAY_SECONDS + size.start.weekday()) % 7
    draw = np.random.default_rng([size.seed, 99, fleet.volumes])
    rates = np.empty((size.ticks, len(TOPICS)))
    for number, topic in enumerate(TOPICS):
        daily = 1 + (topic.peak - 1) * np.sin((hour - 8) / 24 * 2 * np.pi)
        weekly = np.where(weekday >= 5, topic.weekend, 1.0)
        growth = 1 + topic.growth_per_day * seconds / DAY_SECONDS
        noise = draw.lognormal(0.0, 0.15, size.ticks)
        rates[:, number] = fleet.base_rate_bytes[number] * np.maximum(daily, 0.05) * weekly * growth * noise
    for burst in fleet.bursts:
        rates[burst.begin : burst.end, burst.topic] *= burst.ratio
    return rates * size.interval_seconds


def _capacity(fleet: Fleet) -> NDArray[np.int64]:
    capacity = np.repeat(fleet.capacity_bytes[None, :], fleet.size.ticks, axis=0)
    for extension in fleet.extensions:
        capacity[extension.at :, extension.volume] = int(
            fleet.capacity_bytes[extension.volume] * extension.ratio
        )
    return capacity


def _retention_ticks(fleet: Fleet) -> NDArray[np.int64]:
    per_hour = 3600 / fleet.size.interval_seconds
    hours = np.repeat(np.array([[topic.retention_hours for topic in TOPICS]]), fleet.size.ticks, axis=0)
    for cleanup in fleet.cleanups:
        hours[cleanup.at :, cleanup.topic] = cleanup.retention_hours
    return (hours * per_hour).astype(np.int64)


def _undetermined(fleet: Fleet) -> NDArray[np.bool_]:
    """A broker without its agent is active and unknown, and so is one with a volume that can't be read."""
    unknown = np.zeros(fleet.size.ticks, dtype=bool)
    for outage in fleet.outages:
        if outage.agent_only:
            unknown[outage.begin + 1 : outage.end] = True
    for failure in fleet.failures:
        unknown[failure.begin : failure.end] = True
    return unknown


def _placement(fleet: Fleet, tick: int) -> Floats:
    gone = _gone(fleet, tick)
    if not gone.any():
        return fleet.placement
    placement = fleet.placement.copy()
    placement[gone] = 0
    # the content of a decommissioned broker is spread over all the others
    return np.asarray(placement * (3.0 / placement.sum(axis=0)))


def _gone(fleet: Fleet, tick: int) -> NDArray[np.bool_]:
    brokers = np.arange(fleet.volumes) // fleet.size.volumes_per_broker + 1
    return np.isin(brokers, [broker for broker, at in fleet.decommissioned if tick >= at])


@dataclass(frozen=True, slots=True)
class _Disks:
    """The segments on the volumes at a tick."""

    placement: Floats
    segment: Floats
    phase: Floats
    history: _ProducedBytes
    tick: int

    def retained(self, retention: NDArray[np.int64]) -> Floats:
        """Bytes on each volume by topic: all since the retention, and the rest of the oldest segment."""
        produced = self.placement * self.history.total(self.tick)
        return np.maximum(0.0, produced - np.minimum(self._deleted(retention), produced))

    def leaving(self, retention: NDArray[np.int64], retained: Floats, ticks_of_hour: int) -> Floats:
        """Bytes that leave until each of BOUND_HOURS, and in all; the active segment leaves last."""
        until = []
        for hours in BOUND_HOURS:
            left = retention - int(hours * ticks_of_hour)
            gone = self._deleted(np.maximum(left, 0)) - self._deleted(retention)
            until.append(np.where(left < 0, retained, np.clip(gone, 0.0, retained)))
        return np.stack([*until, retained], axis=-1)

    def _deleted(self, retention: NDArray[np.int64]) -> Floats:
        expired = self.placement * self.history.total_before(self.tick, retention)
        return (np.floor(expired / self.segment + self.phase) - self.phase) * self.segment


def _after_events(fleet: Fleet, tick: int, used: Floats, frozen: Floats) -> Floats:
    """Return what the volumes hold where replicas are behind: replaced, or on a broker that was away."""
    used = used.copy()
    for new in fleet.replacements:
        if tick >= new.at:
            used[new.volume] *= min(1.0, (tick - new.at + 1) / new.refill_ticks)
    brokers = np.arange(fleet.volumes) // fleet.size.volumes_per_broker + 1
    for outage in fleet.outages:
        if outage.agent_only or tick < outage.begin:
            continue
        away = brokers == outage.broker
        if tick < outage.end:
            if tick == outage.begin:
                frozen[away] = used[away]
            used[away] = frozen[away]
            continue
        catch_up = max(1, (outage.end - outage.begin) // 6)
        share = min(1.0, (tick - outage.end + 1) / catch_up)
        used[away] = frozen[away] + share * (used[away] - frozen[away]) if share < 1 else used[away]
    return used
