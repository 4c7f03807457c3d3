"""Fleets to tune forecasts on: partitions as Kafka writes, rolls, deletes and compacts their segments.

A partition rolls its segment by `segment.bytes` or `segment.ms`, and at each check the broker deletes the
oldest ones by time and by size; the active one stays. Looks are those of agents: `kquota.core.expiry` gives
the same bytes for `on_disk`. Times are ticks of ten minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.pipeline.fleets.made import MadeVolume
from kquota.core.expiry import DAY_MS, HOUR_MS, MINUTE_MS
from kquota.core.segments import BrokerRules, PartitionOnDisk, PartitionState, Segment, TopicRules
from kquota_pipeline.forecast.history import BOUND_HOURS, Floats, Ints, Looks, Series

TICK_MS = 10 * MINUTE_MS
HOUR, DAY = 6, 144
BROKER = BrokerRules(5 * MINUTE_MS)
_FIRST_HOUR = 495_000
_BEFORE_DAYS, _AFTER_DAYS = 30, 31
_BOUNDS = np.round(BOUND_HOURS * 3_600_000).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its settings, and of each segment the ticks at which it began, was rolled and was
    deleted. `written` are the bytes of all times until the end of each tick. `later_keep` is a tick and
    another retention, in ms, from then on.
    """

    topic: str
    rules: TopicRules
    written: Floats
    begun: Ints
    rolled: Ints
    deleted: Ints
    later_keep: tuple[int, int] | None = None

    def keep_ms(self, ticks: Ints) -> Ints | None:
        """Return the retention in force at each tick; None without one."""
        if self.rules.retention_ms is None:
            return None
        found = np.full(len(ticks), self.rules.retention_ms)
        return (
            found
            if self.later_keep is None
            else np.where(ticks >= self.later_keep[0], self.later_keep[1], found)
        )

    def first(self, ticks: Ints) -> Ints:
        """Return the number of the oldest segment that is there at each tick."""
        return np.searchsorted(self.deleted, ticks, "right")

    def size(self, ticks: Ints) -> Floats:
        """Return the bytes at each tick."""
        return np.maximum(self.written[ticks] - self.written[self.begun[self.first(ticks)]], 0)

    def leaving(self, ticks: Ints) -> tuple[Floats, Floats]:
        """Return the bytes of each bucket, [tick, bucket], and all of them, as `kquota.core.expiry` does."""
        total = self.size(ticks)
        behind = self.written[self.begun[self.first(ticks)]]
        within = np.zeros((len(ticks), len(_BOUNDS) + 1))
        keep_ms, most = self.keep_ms(ticks), self.rules.retention_bytes
        later_ms = BROKER.retention_check_interval_ms + self.rules.file_delete_delay_ms
        if keep_ms is not None:
            for number, bound_ms in enumerate(_BOUNDS):
                newest = ticks + (bound_ms - later_ms - keep_ms - 1) // TICK_MS
                until = np.searchsorted(self.rolled, np.minimum(newest, ticks), "right") - 1
                found = np.where(until >= 0, self.written[self.rolled[np.maximum(until, 0)]] - behind, 0.0)
                within[:, number] = np.clip(np.where(newest >= ticks, total, found), 0, total)
            within[:, -1] = total
        if most is not None:
            ends = self.written[self.begun]
            over = np.searchsorted(ends, behind + total - most, "right") - 1
            within = np.maximum(within, np.clip(ends[np.maximum(over, 0)] - behind, 0, total)[:, None])
        return np.diff(within, axis=1, prepend=0.0), total

    def on_disk(self, tick: int) -> PartitionOnDisk:
        """Return what an agent finds at a tick."""
        there = np.flatnonzero((self.deleted > tick) & (self.begun <= tick) & (self.written[tick] > 0))
        found = []
        for number in there:
            until = min(tick, int(self.rolled[number]))
            size = round(float(self.written[until] - self.written[self.begun[number]]))
            found.append(Segment(int(number), size, until * TICK_MS, number == there[-1], size))
        return PartitionOnDisk(self.topic, 0, "/data/1", PartitionState.LOG, tuple(found))


def partition(
    topic: str,
    rate: Floats,
    *,
    keep_ms: int | None,
    keep_bytes: float | None = None,
    roll_ms: int = 7 * DAY_MS,
    roll_bytes: float = 1e9,
    later_keep: tuple[int, int] | None = None,
) -> Partition:
    """Return a partition that takes in this many bytes in each tick."""
    written = np.cumsum(rate)
    begun = [int(np.argmax(rate > 0))]
    rolled = []
    last = len(rate) - 1
    while True:
        full = int(np.searchsorted(written, written[begun[-1]] + roll_bytes))
        end = min(begun[-1] + roll_ms // TICK_MS, full, last)
        rolled.append(max(end, begun[-1] + 1))
        if rolled[-1] >= last:
            break
        begun.append(rolled[-1])
    rolled[-1] = last
    deleted = np.full(len(begun), len(rate) + 1)
    if keep_ms is not None:
        by_time = np.array(rolled) + keep_ms // TICK_MS + 1
        if later_keep is not None:
            changed = np.maximum(later_keep[0] + 1, np.array(rolled) + later_keep[1] // TICK_MS + 1)
            by_time = np.where(by_time <= later_keep[0], by_time, changed)
        deleted = np.minimum(deleted, by_time)
    if keep_bytes is not None:
        full_at = np.searchsorted(written, written[np.array(rolled)] + keep_bytes) + 1
        deleted = np.minimum(deleted, full_at)
    deleted[-1] = len(rate) + 1
    most = None if keep_bytes is None else int(keep_bytes)
    rules = TopicRules(True, False, keep_ms, most, roll_ms, int(roll_bytes), MINUTE_MS)
    return Partition(topic, rules, written, np.array(begun), np.array(rolled), deleted, later_keep)


def compacted(draw: np.random.Generator, ticks: int, keys_bytes: float, per_day: float) -> Floats:
    """Return the bytes of a compacted topic: updates pile up until the cleaner has run over them."""
    clean, dirty, found = keys_bytes, 0.0, np.zeros(ticks)
    ratio = draw.uniform(0.2, 0.6)
    for tick in range(ticks):
        dirty += per_day / DAY * draw.uniform(0.5, 1.5)
        if dirty / (dirty + clean) > ratio:
            clean, dirty = clean * (1 + draw.uniform(0, 0.004)), 0.0
        found[tick] = clean + dirty
    return found


def _rate(draw: np.random.Generator, ticks: int) -> Floats:
    clock = np.arange(ticks)
    day = 1 + draw.uniform(0, 0.9) * np.sin((clock / DAY + draw.uniform()) * 2 * np.pi)
    week = np.where((clock // DAY) % 7 >= 5, draw.uniform(0.3, 1.1), 1.0)
    wander = np.exp(np.cumsum(draw.normal(0, draw.choice([0, 0.0015]), ticks)))
    return np.asarray(day * week * wander * draw.lognormal(0, 0.15, ticks))


def _topic(
    draw: np.random.Generator,
    name: str,
    share: float,
    keep_days: float,
    shape: Floats,
    later_keep: tuple[int, int] | None = None,
    **more: float,
) -> list[Partition]:
    """Return the partitions of a topic that holds about this share of the disk (1e12 bytes)."""
    count = int(draw.integers(1, 4))
    per_tick = share * 1e12 / (keep_days * DAY) / count / max(float(np.mean(shape[shape > 0])), 1e-9)
    keep_ms = int(keep_days * DAY_MS) if not more.get("forever") else None
    roll_bytes = more.get("roll_bytes", float(draw.choice([1e8, 2.5e8, 1e9])) * 10)
    return [
        partition(
            name,
            shape * per_tick * draw.uniform(0.7, 1.3),
            keep_ms=keep_ms,
            keep_bytes=share * 1e12 / count * draw.uniform(0.6, 1) if more.get("by_size") else None,
            roll_ms=int(more.get("roll_days", 7) * DAY_MS),
            roll_bytes=roll_bytes,
            later_keep=later_keep,
        )
        for _ in range(count)
    ]


@dataclass(slots=True)
class _Make:
    draw: np.random.Generator
    days: int

    @property
    def ticks(self) -> int:
        return (_BEFORE_DAYS + self.days + _AFTER_DAYS) * DAY

    @property
    def cut(self) -> int:
        return (_BEFORE_DAYS + self.days) * DAY - 1

    def rate(self) -> Floats:
        return _rate(self.draw, self.ticks)

    def keep(self) -> float:
        return float(self.draw.choice([0.25, 0.5, 1, 2, 3, 5, 7, 7]))

    def base(self, count: int) -> list[Partition]:
        return [
            one
            for number in range(count)
            for one in _topic(
                self.draw,
                f"base-{number}",
                self.draw.uniform(0.03, 0.2),
                self.keep(),
                self.rate(),
            )
        ]


def _plain(make: _Make) -> list[Partition]:
    return make.base(int(make.draw.integers(3, 7)))


def _weekly(make: _Make) -> list[Partition]:
    slow = _topic(
        make.draw, "slow", make.draw.uniform(0.2, 0.5), make.keep(), make.rate(),
        roll_bytes=1e15, roll_days=float(make.draw.choice([1, 3, 7, 7])),
    )  # fmt: skip
    return make.base(2) + slow


def _new(make: _Make) -> list[Partition]:
    shape = make.rate()
    shape[: make.cut - int(make.draw.uniform(1, 4) * DAY)] = 0
    keep = float(make.draw.choice([2, 3, 5, 7, 7, 14]))
    return make.base(3) + _topic(make.draw, "new", make.draw.uniform(0.15, 0.5), keep, shape)


def _growing(make: _Make) -> list[Partition]:
    days = np.arange(make.ticks) / DAY
    per_day = make.draw.choice([0.003, 0.01, 0.03])
    shape = make.rate() * (1 + per_day * days)
    if make.draw.random() < 0.4:
        shape[int(make.draw.uniform(0.4, 1) * make.cut) :] *= make.draw.uniform(0.6, 1.8)
    forever = _topic(make.draw, "all", make.draw.uniform(0.05, 0.3), 90.0, make.rate(), forever=1)
    return make.base(2) + _topic(make.draw, "more", 0.3, make.keep(), shape) + forever


def _burst(make: _Make) -> list[Partition]:
    shape = make.rate()
    for begin in make.draw.integers(0, make.ticks, int(make.draw.integers(2, 9))):
        shape[begin : begin + int(make.draw.uniform(0.1, 1.5) * DAY)] *= make.draw.uniform(2, 5)
    return make.base(2) + _topic(make.draw, "bursts", make.draw.uniform(0.1, 0.3), make.keep(), shape)


def _by_size(make: _Make) -> list[Partition]:
    bound = _topic(
        make.draw, "bound", make.draw.uniform(0.1, 0.5), make.draw.uniform(5, 70), make.rate(),
        by_size=1, forever=float(make.draw.random() < 0.6), roll_bytes=5e9,
    )  # fmt: skip
    return make.base(2) + bound


def _retention_changed(make: _Make) -> list[Partition]:
    keep, factor = float(make.draw.choice([1, 2, 3, 5, 7])), float(make.draw.choice([0.3, 0.5, 0.7, 2, 3]))
    at = make.cut - int(make.draw.uniform(-2, 5) * DAY)
    changed = _topic(
        make.draw,
        "changed",
        make.draw.uniform(0.15, 0.5),
        keep,
        make.rate(),
        (at, int(keep * factor * DAY_MS)),
    )
    return make.base(3) + changed


def _job(make: _Make) -> list[Partition]:
    """A topic that is new, and written for some hours only; or for some hours each month."""
    since = np.arange(make.ticks) - make.cut + int(make.draw.uniform(0.1, 5) * DAY)
    hours, again = make.draw.uniform(2, 16), make.draw.random() < 0.5
    since = since % (30 * DAY) if again else since
    shape = np.where((since >= 0) & (since < hours * HOUR), 1.0, 0.0)
    keep = float(make.draw.choice([1, 2, 3, 5, 7]))
    share = make.draw.uniform(0.05, 0.2) * keep * 24 / hours
    return make.base(3) + _topic(make.draw, "job", share, keep, shape)


def _step(make: _Make) -> list[Partition]:
    """The traffic of a topic is another one from some day on, or stands still for hours or days."""
    shape, pause = make.rate(), int(make.draw.uniform(0.25, 3) * DAY)
    factor = float(make.draw.choice([0.0, 0.0, 0.0, 0.5, 0.7, 1.4, 1.8]))
    at = make.cut - int(make.draw.uniform(0.2, 1 if factor == 0 else 8) * DAY)
    shape[at : None if factor else at + pause] *= factor
    return make.base(3) + _topic(make.draw, "step", make.draw.uniform(0.15, 0.4), make.keep(), shape)


def _deleted(make: _Make) -> list[Partition]:
    """A topic is deleted before the forecast."""
    at, shape = make.cut - int(make.draw.uniform(0.1, 9) * DAY), make.rate()
    shape[at:] = 0
    gone = _topic(make.draw, "deleted", make.draw.uniform(0.15, 0.4), make.keep(), shape)
    for one in gone:
        one.deleted[one.begun < at] = np.minimum(one.deleted[one.begun < at], at)
    return make.base(3) + gone


def _mixed(make: _Make) -> list[Partition]:
    kinds = make.draw.choice(np.array([_weekly, _growing, _burst, _by_size]), 2, replace=False)
    return [one for kind in kinds for one in kind(make)]


FAMILIES: Mapping[str, Callable[[_Make], list[Partition]]] = {
    "retention": _plain,
    "weekly rolls": _weekly,
    "new topic": _new,
    "growth": _growing,
    "compaction": _plain,
    "bursts": _burst,
    "by size": _by_size,
    "mixed": _mixed,
    "retention changed": _retention_changed,
    "job": _job,
    "traffic changed": _step,
    "deleted": _deleted,
}


def fleet(seed: int, volumes_per_family: int = 20) -> list[MadeVolume]:
    """Return volumes of all families; the same seed gives the same fleet."""
    return [volume for family in FAMILIES for volume in volumes(seed, family, volumes_per_family)]


def volumes(seed: int, family: str, count: int) -> list[MadeVolume]:
    """Return volumes of one family."""
    kind = list(FAMILIES).index(family)
    return [
        _volume(family, number, np.random.default_rng([seed, 11, kind, number])) for number in range(count)
    ]


def _volume(family: str, number: int, draw: np.random.Generator) -> MadeVolume:
    make = _Make(draw, int(draw.choice([4, 14, 28, 42, 60])))
    partitions = FAMILIES[family](make)
    names = tuple(dict.fromkeys(one.topic for one in partitions))
    used = np.full(make.ticks, draw.uniform(1e9, 2e10))
    every = np.arange(make.ticks)
    looks_at = every[HOUR - 1 :: HOUR]
    leaving = np.zeros((len(looks_at), len(_BOUNDS) + 1))
    topics = np.zeros((len(looks_at), len(names)))
    soon, kept = np.zeros_like(topics), np.zeros_like(topics)
    for one in partitions:
        used += one.size(every)
        own, size = one.leaving(looks_at)
        leaving += own
        topics[:, names.index(one.topic)] += size
        soon[:, names.index(one.topic)] += own[:, :2].sum(axis=1)
        keep_ms = one.keep_ms(looks_at)
        if keep_ms is not None:
            kept[size > 0, names.index(one.topic)] = keep_ms[size > 0] / HOUR_MS
    if family == "compaction":
        table = compacted(draw, make.ticks, draw.uniform(0.1, 0.4) * 1e12, draw.uniform(0.02, 0.1) * 1e12)
        used += table
        names, topics = (*names, "table"), np.column_stack([topics, table[looks_at]])
        soon, kept = (np.column_stack([of_topics, np.zeros(len(looks_at))]) for of_topics in (soon, kept))
    return _seen(
        family,
        f"{family}-{number}",
        make,
        used,
        Looks(looks_at, leaving, topics.sum(axis=1) - leaving.sum(axis=1), names, topics, soon, kept),
    )


def _seen(family: str, name: str, make: _Make, used: Floats, looks: Looks) -> MadeVolume:
    draw = make.draw
    capacity = used[make.cut - 7 * DAY : make.cut].max() / draw.uniform(0.4, 0.8)
    first = _BEFORE_DAYS * 24
    crest = used.reshape(-1, HOUR).max(axis=1)[first:]
    hours = np.arange(len(crest)) + _FIRST_HOUR
    keep = draw.random(len(hours)) > 0.005
    keep[make.days * 24 - 1 :] = True
    seen = np.flatnonzero(keep)
    series = Series(
        hours[seen],
        np.minimum(crest[seen], capacity),
        np.zeros(len(seen)),
        float(capacity),
        np.full(len(seen), "a", dtype=object),
    )
    soft = draw.uniform(0.75, 0.9)
    rows = seen + first
    found = Looks(
        hours[seen],
        looks.leaving_bytes[rows],
        looks.never_bytes[rows],
        looks.topics,
        looks.topic_bytes[rows],
        looks.topic_soon_bytes[rows],
        None if looks.topic_keep_hours is None else looks.topic_keep_hours[rows],
    )
    cut = _FIRST_HOUR + make.days * 24 - 1
    return MadeVolume(
        family, name, series, found, cut, soft * float(capacity), (soft + 0.08) * float(capacity)
    )
