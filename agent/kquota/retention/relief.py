"""Options that bring a volume back below a limit, ranked: each with its bytes, its time and its loss.

All of them are Kafka's own deletion, played with other settings (:mod:`kquota.retention.expiry`): an option's
bytes are what leaves the volume with it, less what leaves it by then anyway. Options touch no internal topic,
no compacted one, and none that is protected.
Source: docs/adr/0028-relief-plans.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from kquota.disks.segments import BrokerRules, PartitionOnDisk, PartitionState, TopicRules
from kquota.retention.expiry import HOUR_MS, MINUTE_MS, departures, going
from kquota.retention.inflow import Inflow

RETENTION, LOCAL_RETENTION, SEGMENT = "retention.ms", "local.retention.ms", "segment.ms"
SHORTEST_RETENTION_MS = MINUTE_MS
"""No option keeps less than this of a topic."""
ROLL_MS = 10 * MINUTE_MS
"""The ``segment.ms`` of an option; a segment that began before that is rolled with its next record."""
PATIENCE_MS = HOUR_MS
"""An option that needs longer than this is none."""
_NEVER_MS = 2**62
_INTERNAL = "__"

Committed = Mapping[str, Mapping[tuple[str, int], int]]
"""The committed offsets of consumer groups, by group and partition."""


class StepKind(StrEnum):
    """The kind of a change."""

    RETENTION = "retention"
    SEGMENT = "segment"
    LOGDIR_MOVE = "logdir-move"
    REPLICA_MOVE = "replica-move"
    THROTTLE = "throttle"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Step:
    """One change: ``setting`` of the topic ``target`` from a value to another; None is unlimited.

    ``frees_bytes`` leave this volume, at ``by_ms`` (since 1970) at the latest. ``keeps_ratio`` is the share
    of the topic's time that it keeps; consumer groups in ``unread_by`` have not read all that goes. A move
    has a partition as its target, as in ``visits-3``, and goes from ``source`` to ``destination``. A throttle
    replaces the text ``source`` by ``destination``, its target is a topic, or for the rate the broker.
    """

    kind: StepKind
    target: str
    frees_bytes: int
    by_ms: int
    setting: str | None = None
    current: int | None = None
    to: int | None = None
    keeps_ratio: float = 1.0
    unread_by: tuple[str, ...] = ()
    source: str | None = None
    destination: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A log dir on another volume of the broker; ``room_bytes`` are left to that volume's soft limit."""

    log_dir: str
    room_bytes: int


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The other brokers: ``room_bytes`` are left to the soft limit of a broker's fullest volume, ``replicas``
    the brokers of each partition that are all in sync, and ``racks`` those of all brokers.
    """

    broker_id: int
    room_bytes: Mapping[int, int]
    replicas: Mapping[str, Sequence[int]]
    racks: Mapping[int, str | None]


@dataclass(frozen=True, slots=True)
class Option:
    """Steps that belong together; ``enough`` is whether the volume is below its limit after them."""

    steps: tuple[Step, ...]
    enough: bool

    @property
    def kind(self) -> StepKind:
        """The kind of its steps."""
        return self.steps[0].kind

    @property
    def frees_bytes(self) -> int:
        """The bytes that leave this volume with it."""
        return sum(step.frees_bytes for step in self.steps)

    @property
    def by_ms(self) -> int:
        """When they are gone at the latest."""
        return max(step.by_ms for step in self.steps)

    @property
    def rank(self) -> tuple[bool, bool, float, int, int]:
        """Enough before too little, then read data, then the least loss, then the earliest."""
        unread = any(step.unread_by for step in self.steps)
        least = min(step.keeps_ratio for step in self.steps)
        return not self.enough, unread, -least, self.by_ms, -self.frees_bytes


@dataclass(frozen=True)
class Situation:
    """A volume with all that is on it, at ``now_ms``.

    ``to_free_bytes`` are missing to the limit. While producers write (``flows``), the active segments of
    partitions go on growing, and do not count as leaving. ``protected`` are names of topics; one with a ``*``
    at its end is a beginning. Partitions in ``busy`` are being moved by others; a move copies
    ``copy_bytes_per_second`` to one of the ``targets``, of which each volume has one, or to brokers
    ``elsewhere``, if these are known. ``inflow`` is what Kafka itself copies to this volume.
    """

    partitions: Sequence[PartitionOnDisk]
    rules: Mapping[str, TopicRules]
    broker: BrokerRules
    now_ms: int
    to_free_bytes: int
    flows: bool = False
    committed: Committed = field(default_factory=dict)
    protected: Sequence[str] = ()
    targets: Sequence[Target] = ()
    busy: Collection[str] = ()
    elsewhere: Elsewhere | None = None
    inflow: Inflow | None = None
    copy_bytes_per_second: int = 1

    def may_touch(self, topic: str) -> bool:
        """Whether an option may change this topic's settings."""
        rules = self.rules.get(topic)
        return (
            rules is not None and rules.cleanup_delete and not rules.cleanup_compact and self.may_move(topic)
        )

    def may_move(self, topic: str) -> bool:
        """Whether an option may move replicas of this topic."""
        return topic in self.rules and not is_spared(topic, self.protected)

    @cached_property
    def topics(self) -> Mapping[str, Sequence[PartitionOnDisk]]:
        """The partitions by topic, with active segments that go on growing if producers write."""
        found: dict[str, list[PartitionOnDisk]] = {}
        for one in self.partitions:
            found.setdefault(one.topic, []).append(_growing(one, self.now_ms) if self.flows else one)
        return found

    def gone_ms(self, rules: TopicRules) -> int:
        """Return when a segment that may go now is gone at the latest."""
        return self.now_ms + self.broker.retention_check_interval_ms + rules.file_delete_delay_ms

    def leaving_bytes(self, topic: str, rules: TopicRules, until_ms: int) -> int:
        """Return what of a topic leaves by then under these rules."""
        return sum(
            one.size_bytes
            for partition in self.topics[topic]
            for one in departures(partition, rules, self.broker, self.now_ms).leaving
            if one.at_ms <= until_ms
        )

    def leaving_anyway(self, until_ms: int) -> int:
        """Return what leaves the volume by then without any change."""
        return sum(size_bytes for at_ms, size_bytes in self._by_itself if at_ms <= until_ms)

    def enough_at_ms(self) -> int | None:
        """Return when enough has left without any change; None for never."""
        left_bytes = self.to_free_bytes
        for at_ms, size_bytes in self._by_itself:
            left_bytes -= size_bytes
            if left_bytes <= 0:
                return at_ms
        return None

    @cached_property
    def _by_itself(self) -> Sequence[tuple[int, int]]:
        return sorted(
            (one.at_ms, one.size_bytes)
            for topic, rules in self.rules.items()
            for partition in self.topics.get(topic, ())
            for one in departures(partition, rules, self.broker, self.now_ms).leaving
        )


def options(situation: Situation, patience_ms: int = PATIENCE_MS) -> list[Option]:
    """Return what would free the bytes that are missing, the best first; empty if none are missing."""
    if situation.to_free_bytes <= 0:
        return []
    topics = [topic for topic in situation.topics if situation.may_touch(topic)]
    single = [one for topic in topics if (one := _shorter_retention(situation, (topic,))) is not None]
    found = [*_wait(situation, patience_ms), *single]
    if not any(one.enough for one in single) and len(single) > 1:
        all_together = _shorter_retention(situation, [one.steps[0].target for one in single])
        found += [] if all_together is None else [all_together]
    if situation.flows:
        found += _earlier_roll(situation, topics, patience_ms)
    return sorted(found, key=lambda one: one.rank)


def played(situation: Situation, steps: Iterable[Step]) -> Option:
    """Play settings that were planned before on what is on the volume now."""
    found = []
    for step in steps:
        rules = situation.rules.get(step.target)
        if step.kind is not StepKind.RETENTION or rules is None or step.to is None:
            found.append(step)
        elif step.target not in situation.topics or not situation.may_touch(step.target):
            found.append(replace(step, frees_bytes=0))
        else:
            found.append(_retention_step(situation, step.target, rules, step.to))
    by_ms = max(step.by_ms for step in found)
    freed_bytes = sum(step.frees_bytes for step in found) + situation.leaving_anyway(by_ms)
    return Option(tuple(found), freed_bytes >= situation.to_free_bytes)


def breaches_again(situation: Situation, step: Step, room_bytes: int, within_ms: int) -> bool:
    """Return whether a topic, with its former retention back, would fill `room_bytes` more within a time.

    Judged by the rate at which the volume has got what it has of the topic.
    """
    rules = situation.rules.get(step.target)
    if rules is None or step.kind is not StepKind.RETENTION or step.to is None:
        return False
    since_ms = situation.now_ms - step.to
    kept_bytes = sum(
        segment.size_bytes
        for partition in situation.topics.get(step.target, ())
        if partition.state is PartitionState.LOG
        for segment in partition.segments
        if segment.newest_ms >= since_ms
    )
    more_ms = within_ms if step.current is None else min(step.current - step.to, within_ms)
    return kept_bytes * more_ms > room_bytes * max(step.to, 1)


def _wait(situation: Situation, patience_ms: int) -> Iterator[Option]:
    by_ms = situation.enough_at_ms()
    latest_ms = situation.now_ms + patience_ms
    if by_ms is not None and by_ms <= latest_ms:
        yield Option((Step(StepKind.WAIT, "", situation.leaving_anyway(by_ms), by_ms),), enough=True)
    elif freed_bytes := situation.leaving_anyway(latest_ms):
        yield Option((Step(StepKind.WAIT, "", freed_bytes, latest_ms),), enough=False)


def _shorter_retention(situation: Situation, topics: Sequence[str]) -> Option | None:
    """Return the smallest common shortening that is enough, or else the smallest that frees the most.

    Retention frees whole segments alone, so that the ages of segments are all values worth a look.
    """
    rules = {topic: situation.rules[topic] for topic in topics}
    ages = sorted({age for topic in topics for age in _ages_ms(situation, topic, rules[topic])}, reverse=True)
    if not ages:
        return None
    by_ms = max(situation.gone_ms(one) for one in rules.values())
    missing_bytes = situation.to_free_bytes - situation.leaving_anyway(by_ms)

    def steps(age_ms: int) -> list[Step]:
        shorter = [topic for topic in topics if _is_shorter(age_ms, rules[topic].on_disk_ms)]
        return [_retention_step(situation, topic, rules[topic], age_ms) for topic in shorter]

    def freed(age_ms: int) -> int:
        return sum(step.frees_bytes for step in steps(age_ms))

    aim_bytes = min(missing_bytes, freed(ages[-1]))
    if aim_bytes <= 0:
        return None
    chosen = steps(ages[_first(len(ages), lambda index: freed(ages[index]) >= aim_bytes)])
    return Option(tuple(step for step in chosen if step.frees_bytes), enough=aim_bytes == missing_bytes)


def _ages_ms(situation: Situation, topic: str, rules: TopicRules) -> Iterator[int]:
    """Yield the retention times at which one more segment of the topic goes."""
    for partition in situation.topics[topic]:
        newest_ms = 0
        for segment in partition.segments:
            newest_ms = max(newest_ms, segment.newest_ms)
            age_ms = situation.now_ms - newest_ms - 1
            if age_ms >= SHORTEST_RETENTION_MS and _is_shorter(age_ms, rules.on_disk_ms):
                yield age_ms


def _retention_step(situation: Situation, topic: str, rules: TopicRules, to_ms: int) -> Step:
    setting = LOCAL_RETENTION if rules.is_tiered else RETENTION
    if rules.is_tiered:
        shorter, keeps_ratio = replace(rules, local_retention_ms=to_ms), 1.0
    else:
        shorter = replace(rules, retention_ms=to_ms)
        keeps_ratio = 0.0 if rules.retention_ms is None else min(1.0, to_ms / max(rules.retention_ms, 1))
    by_ms = situation.gone_ms(rules)
    freed_bytes = situation.leaving_bytes(topic, shorter, by_ms)
    freed_bytes -= situation.leaving_bytes(topic, rules, by_ms)
    unread = () if rules.is_tiered else tuple(sorted(_unread(situation, topic, shorter)))
    kind = StepKind.RETENTION
    return Step(kind, topic, freed_bytes, by_ms, setting, rules.on_disk_ms, to_ms, keeps_ratio, unread)


def _unread(situation: Situation, topic: str, rules: TopicRules) -> set[str]:
    """Return the groups that have not read all records which go at once under these rules."""
    groups = set()
    for partition in situation.topics[topic]:
        if partition.state is not PartitionState.LOG:
            continue
        kept_from = 0
        for segment, end, may_go_ms, _ in going(partition, rules):
            if may_go_ms <= situation.now_ms:
                last = partition.high_watermark or segment.base_offset + 1
                kept_from = last if end is None else end
        place = topic, partition.partition
        groups |= {
            name for name, read in situation.committed.items() if read.get(place, kept_from) < kept_from
        }
    return groups


def _earlier_roll(situation: Situation, topics: Iterable[str], patience_ms: int) -> Iterator[Option]:
    for topic in topics:
        rules = situation.rules[topic]
        if rules.on_disk_ms is None or rules.segment_ms <= ROLL_MS:
            continue
        by_ms = situation.gone_ms(rules) + rules.on_disk_ms
        if by_ms > situation.now_ms + patience_ms:
            continue
        freed_bytes = sum(_held_by_the_roll(situation, one, rules, by_ms) for one in situation.topics[topic])
        if freed_bytes:
            enough = freed_bytes + situation.leaving_anyway(by_ms) >= situation.to_free_bytes
            step = Step(StepKind.SEGMENT, topic, freed_bytes, by_ms, SEGMENT, rules.segment_ms, ROLL_MS)
            yield Option((step,), enough)


def _held_by_the_roll(situation: Situation, partition: PartitionOnDisk, rules: TopicRules, by_ms: int) -> int:
    """Return the bytes of an active segment that would be gone by then if it were rolled now."""
    if partition.state is not PartitionState.LOG or len(partition.segments) < 2:
        return 0  # the beginning of a first segment is not known
    before, active = partition.segments[-2:]
    began_ms = before.newest_ms
    if active.newest_ms != _NEVER_MS or situation.now_ms - began_ms < ROLL_MS or rules.on_disk_ms is None:
        return 0
    return active.size_bytes if began_ms + rules.segment_ms + rules.on_disk_ms > by_ms else 0


def _growing(partition: PartitionOnDisk, now_ms: int) -> PartitionOnDisk:
    """Return the partition; if it was written to lately, with an active segment that stays the newest."""
    last = partition.segments[-1:]
    if not last or not last[0].is_active or now_ms - last[0].newest_ms >= ROLL_MS:
        return partition
    *others, active = partition.segments
    return replace(partition, segments=(*others, replace(active, newest_ms=_NEVER_MS)))


def is_spared(topic: str, protected: Iterable[str]) -> bool:
    """Whether relief leaves a topic alone: an internal one, or one that is protected."""
    return topic.startswith(_INTERNAL) or any(_fits(topic, pattern) for pattern in protected)


def _fits(topic: str, pattern: str) -> bool:
    return topic.startswith(pattern[:-1]) if pattern.endswith("*") else topic == pattern


def _is_shorter(age_ms: int, than_ms: int | None) -> bool:
    return than_ms is None or age_ms < than_ms


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """Return the first index at which a condition holds that holds at the last one, and from it on."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
