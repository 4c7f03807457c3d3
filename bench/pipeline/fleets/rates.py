"""Fleets to tune forecasts on: a topic is a rate per hour that lands in segments which roll by a clock.

All of its bytes are sums of that rate. The method was judged on these fleets, and not tuned on them, until
others took their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bench.pipeline.fleets.made import MadeVolume
from kquota_pipeline.forecast.history import BOUND_HOURS, Floats, Looks, Series

_FIRST_HOUR = 497_000
_AFTER_DAYS = 31
_WARM_DAYS = 35
# A check each five minutes, and a minute until files are removed.
_LATEST_HOURS = 5 / 60 + 1 / 60


@dataclass(frozen=True, slots=True)
class _Topic:
    """Bytes per hour (of a capacity of 1), hours until they expire after their segment's end (inf: never),
    hours until a segment ends, and the hour in which the first of them does.
    """

    rate: Floats
    keep_hours: float
    roll_hours: float
    phase_hours: float


def fleet(seed: int, volumes_per_family: int = 40) -> list[MadeVolume]:
    """Return volumes of all families; the same seed gives the same fleet."""
    found = []
    for number, (family, make) in enumerate(FAMILIES.items()):
        for volume in range(volumes_per_family):
            found.append(
                make(family, f"{family}-{volume}", np.random.default_rng([seed, 77, number, volume]))
            )
    return found


def _clock(days: int) -> Floats:
    return np.arange((_WARM_DAYS + days + _AFTER_DAYS) * 24, dtype=float)


def _days(draw: np.random.Generator) -> int:
    return int(draw.choice([21, 30, 45, 60]))


def _rhythm(draw: np.random.Generator, clock: Floats, weekly: float | None = None) -> Floats:
    """Return a working day's rhythm: office hours, quieter nights, another weekend, and noise."""
    peak = draw.uniform(8, 20)
    daily = 1 + draw.uniform(0.1, 0.8) * np.cos((clock - peak) / 24 * 2 * np.pi)
    weekday = (clock // 24 + draw.integers(7)) % 7
    weekend = draw.uniform(0.4, 1.2) if weekly is None else weekly
    noise = np.exp(draw.normal(0, draw.uniform(0.02, 0.2), len(clock)))
    slow = np.exp(np.repeat(draw.normal(0, 0.06, len(clock) // 24 + 1), 24)[: len(clock)])
    return np.asarray(daily * np.where(weekday >= 5, weekend, 1.0) * noise * slow)


def _steady(
    draw: np.random.Generator, clock: Floats, share: float, keep_days: float, roll: float | None = None
) -> _Topic:
    """Return a topic that takes this share of the disk once its retention is reached."""
    roll_hours = float(draw.choice([1, 2, 4, 8])) if roll is None else roll
    rate = _rhythm(draw, clock)
    rate *= share / (keep_days * 24 + roll_hours / 2) / rate.mean()
    return _Topic(rate, keep_days * 24.0, roll_hours, draw.uniform(0, roll_hours))


def _contents(topic: _Topic, clock: Floats) -> tuple[Floats, Floats]:
    """Return the bytes at the end of each hour, [hour], and those that leave, [hour, bucket]."""
    total = np.concatenate([[0.0], np.cumsum(topic.rate)])
    now = clock + 1
    starts = np.arange(topic.phase_hours - topic.roll_hours, now[-1], topic.roll_hours)
    begin, end = np.maximum(starts, 0), starts + topic.roll_hours
    first = np.interp(begin, np.arange(len(total)), total)
    leaving = np.zeros((len(clock), len(BOUND_HOURS) + 1))
    sizes = np.zeros(len(clock))
    for low, until, before in zip(begin, end, first, strict=True):
        gone = until + topic.keep_hours + _LATEST_HOURS / 2
        here = slice(int(np.searchsorted(now, low, "right")), int(np.searchsorted(now, gone)))
        at = now[here]
        size = np.interp(np.minimum(at, until), np.arange(len(total)), total) - before
        sizes[here] += size
        if np.isfinite(topic.keep_hours):
            left = np.minimum(at, until) + topic.keep_hours + _LATEST_HOURS - at
            leaving[np.arange(here.start, here.stop), np.searchsorted(BOUND_HOURS, left)] += size
    return sizes, leaving


def _volume(
    draw: np.random.Generator,
    family: str,
    name: str,
    days: int,
    topics: list[_Topic],
    aim: float | None = None,
    extra: Floats | None = None,
    looks: bool = True,
) -> MadeVolume:
    """Return a volume of topics, where `extra` (of the capacity) stays outside of them."""
    clock = _clock(days)
    parts = [_contents(topic, clock) for topic in topics]
    used = sum((sizes for sizes, _ in parts), np.zeros(len(clock)))
    other = np.full(len(clock), draw.uniform(0.002, 0.02)) if extra is None else extra
    used = used + other
    seen = slice(_WARM_DAYS * 24, None)
    cut = (_WARM_DAYS + days) * 24 - 1
    if aim is None:
        aim = draw.uniform(0.35, 0.7)
    scale = aim / max(used[cut - 24 * 7 : cut].max(), 1e-9)
    capacity = float(draw.choice([1e12, 2e12, 4e12, 8e12]))
    to_bytes = scale * capacity
    crest = np.maximum(used, np.concatenate([used[:1], used[:-1]]))[seen] * to_bytes
    hours = (_FIRST_HOUR + clock[seen]).astype(np.int64)
    keep = draw.random(len(hours)) > 0.004
    for _ in range(draw.integers(0, 3)):
        begin = int(draw.integers(0, len(hours)))
        keep[begin : begin + int(draw.integers(2, 20))] = False
    keep[cut - _WARM_DAYS * 24 - 2 :] = True
    series = Series(
        hours[keep],
        np.minimum(crest[keep], capacity),
        np.zeros(int(keep.sum())),
        capacity,
        np.full(int(keep.sum()), "a", dtype=object),
    )
    found = None
    if looks:
        soon = np.stack([leaving[:, :2].sum(axis=1) for _, leaving in parts], axis=1)[seen][keep] * to_bytes
        sizes = np.stack([size for size, _ in parts], axis=1)[seen][keep] * to_bytes
        leaving = sum((leaving for _, leaving in parts), np.zeros((len(clock), len(BOUND_HOURS) + 1)))
        names = tuple(f"topic-{number}" for number in range(len(parts)))
        leaves = leaving[seen][keep] * to_bytes
        never = sizes.sum(axis=1) - leaves.sum(axis=1)
        kept = [topic.keep_hours if np.isfinite(topic.keep_hours) else 0.0 for topic in topics]
        found = Looks(hours[keep], leaves, never, names, sizes, soon, np.where(sizes > 0, kept, 0.0))
    soft = draw.uniform(0.7, 0.9)
    return MadeVolume(
        family,
        name,
        series,
        found,
        int(_FIRST_HOUR + cut),
        soft * capacity,
        min(soft + 0.08, 0.97) * capacity,
    )


def _retention(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    days = _days(draw)
    clock = _clock(days)
    topics = [
        _steady(draw, clock, draw.uniform(0.03, 0.2), float(draw.choice([0.5, 1, 2, 3, 7])))
        for _ in range(draw.integers(2, 7))
    ]
    return _volume(draw, family, name, days, topics)


def _teeth(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    days = _days(draw)
    clock = _clock(days)
    roll = float(draw.choice([24.0, 48.0, 72.0, 168.0, 168.0]))
    keep = float(draw.choice([1, 2, 3, 7]))
    topics = [_steady(draw, clock, draw.uniform(0.2, 0.5), keep, roll)]
    topics += [_steady(draw, clock, draw.uniform(0.02, 0.2), float(draw.choice([1, 3]))) for _ in range(2)]
    return _volume(draw, family, name, days, topics, aim=draw.uniform(0.5, 0.8))


def _newcomer(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    days = _days(draw)
    clock = _clock(days)
    topics = [_steady(draw, clock, draw.uniform(0.05, 0.2), float(draw.choice([1, 3, 7]))) for _ in range(3)]
    keep = float(draw.choice([3, 4, 5, 7, 7, 10]))
    new = _steady(draw, clock, draw.uniform(0.15, 0.5), keep)
    began = (_WARM_DAYS + days) * 24 - draw.uniform(40, 72)
    new.rate[clock < began] = 0
    return _volume(draw, family, name, days, [*topics, new], aim=draw.uniform(0.4, 0.6))


def _growth(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    days = _days(draw)
    clock = _clock(days)
    topics = []
    per_day = draw.choice([0.0, 0.004, 0.01, 0.02])
    for _ in range(draw.integers(2, 5)):
        topic = _steady(draw, clock, draw.uniform(0.05, 0.3), float(draw.choice([1, 2, 7])))
        topics.append(
            _Topic(
                topic.rate * (1 + per_day) ** (clock / 24),
                topic.keep_hours,
                topic.roll_hours,
                topic.phase_hours,
            )
        )
    forever = _steady(draw, clock, draw.uniform(0.02, 0.3), 60.0)
    topics.append(_Topic(forever.rate, np.inf, forever.roll_hours, forever.phase_hours))
    return _volume(draw, family, name, days, topics, aim=draw.uniform(0.5, 0.8))


def _compacted(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    days = _days(draw)
    clock = _clock(days)
    level = draw.uniform(0.3, 0.6) * (1 - np.exp(-(clock + 200) / draw.uniform(100, 600)))
    every = draw.uniform(4, 60)
    teeth = draw.uniform(0.01, 0.1) * (clock % every) / every
    noise = np.convolve(draw.normal(0, 0.004, len(clock)), np.ones(6) / 6, "same")
    topics = [_steady(draw, clock, draw.uniform(0.02, 0.1), 1.0) for _ in range(2)]
    return _volume(draw, family, name, days, topics, extra=np.asarray(level + teeth + noise))


def _bursts(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    days = _days(draw)
    clock = _clock(days)
    topics = []
    for _ in range(draw.integers(2, 5)):
        topic = _steady(draw, clock, draw.uniform(0.05, 0.25), float(draw.choice([1, 2, 3])))
        begin = 0.0
        while (begin := begin + draw.exponential(24 * draw.uniform(4, 15))) < len(clock):
            length = int(draw.uniform(2, 30))
            topic.rate[int(begin) : int(begin) + length] *= draw.uniform(2, 6)
        topics.append(topic)
    return _volume(draw, family, name, days, topics)


def _size_bound(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    """Topics whose partitions fill until `retention.bytes`, and stay there."""
    days = _days(draw)
    clock = _clock(days)
    extra = np.zeros(len(clock))
    for _ in range(draw.integers(1, 4)):
        most = draw.uniform(0.1, 0.3)
        rate = _rhythm(draw, clock)
        full_after = draw.uniform(0.3, 1.3) * (_WARM_DAYS + days) * 24
        filled = np.cumsum(rate * most / full_after / rate.mean())
        tooth = most * draw.uniform(0.01, 0.06)
        extra += np.where(filled < most, filled, most - tooth + (filled - most) % tooth)
    topics = [_steady(draw, clock, draw.uniform(0.03, 0.15), float(draw.choice([1, 3, 7])))]
    return _volume(draw, family, name, days, topics, extra=extra)


def _operators(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    """Partitions come and go at once, and the level wanders: nothing foresees it."""
    days = _days(draw)
    clock = _clock(days)
    extra = 0.4 + np.cumsum(draw.normal(draw.choice([0, 0.0001]), 0.0012, len(clock)))
    for _ in range(draw.integers(1, 5)):
        extra[int(draw.integers(len(clock))) :] += draw.choice([-1, 1]) * draw.uniform(0.03, 0.1)
    topics = [_steady(draw, clock, draw.uniform(0.05, 0.2), float(draw.choice([1, 3])))]
    return _volume(draw, family, name, days, topics, extra=np.maximum(extra, 0.01), looks=False)


def _young(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    days = int(draw.choice([2, 3, 5, 8]))
    clock = _clock(days)
    topics = [_steady(draw, clock, draw.uniform(0.05, 0.2), float(draw.choice([1, 3, 7]))) for _ in range(3)]
    return _volume(draw, family, name, days, topics)


def _mixture(family: str, name: str, draw: np.random.Generator) -> MadeVolume:
    days = _days(draw)
    clock = _clock(days)
    topics = [
        _steady(
            draw,
            clock,
            draw.uniform(0.05, 0.25),
            float(draw.choice([1, 3, 7])),
            float(draw.choice([4, 24, 168])),
        )
        for _ in range(3)
    ]
    burst = _steady(draw, clock, 0.1, 1.0)
    begin = int(draw.uniform(0.5, 1) * len(clock))
    burst.rate[begin : begin + 24] *= 3
    forever = _steady(draw, clock, draw.uniform(0.02, 0.2), 60.0)
    topics += [burst, _Topic(forever.rate, np.inf, 8.0, 0.0)]
    return _volume(draw, family, name, days, topics, aim=draw.uniform(0.5, 0.8))


FAMILIES: Mapping[str, Callable[[str, str, np.random.Generator], MadeVolume]] = {
    "retention": _retention,
    "teeth": _teeth,
    "new topic": _newcomer,
    "growth": _growth,
    "compacted": _compacted,
    "bursts": _bursts,
    "size-bound": _size_bound,
    "operators": _operators,
    "short history": _young,
    "mixture": _mixture,
}
