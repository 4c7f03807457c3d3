"""The plan of a recording: the topics of each volume, their settings, their traffic, and their changes. Pure.

Times are hours and days of the history; sizes are bytes of a real disk.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bench.pipeline.recording.pace import DAY_HOURS, TOPIC_SETTINGS, milliseconds

MEBI = 2**20
VOLUME_BYTES = 160 * MEBI
DISK_BYTES = 1.25e8
"""Shares are parts of this: somewhat less than the volume has room for. Crests are a tenth higher than the
shares of a volume's topics together, and the soft limit is 0.85 of this.
"""
WEEK_HOURS = 7 * DAY_HOURS
FULL_DAYS = 8
"""From this day on the longest retention is reached: the history that is judged begins here."""
COMING_AND_GOING = "topics come and go"
_SEED = 5


@dataclass(frozen=True, kw_only=True)
class Load:
    """A topic. It comes to hold `share` of a disk, by its retention or by its bound in bytes.

    `bursts` are (day, hours, factor), `kept` are later retentions (day, hours). A topic with `keys` has so
    many, and is compacted.
    """

    share: float
    keep_hours: float | None = None
    by_size: bool = False
    """Whether `share` is its bound in bytes; it is full after `fill_days`."""
    fill_days: float = 3.0
    roll_hours: float = WEEK_HOURS
    segment_bytes: int = MEBI
    keys: int = 0
    growth_per_day: float = 0.0
    amplitude: float = 0.5
    peak_hour: float = 14.0
    weekend: float = 0.6
    bursts: tuple[tuple[float, float, float], ...] = ()
    kept: tuple[tuple[float, float], ...] = ()
    deleted_day: float | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Kafka's settings of the topic, at the pace of the recording."""
        policy = "delete" if not self.keys else "compact" if self.keep_hours is None else "compact,delete"
        kept = "-1" if self.keep_hours is None else milliseconds(self.keep_hours)
        return {
            **TOPIC_SETTINGS,
            "cleanup.policy": policy,
            "retention.ms": kept,
            "retention.bytes": str(int(self.share * DISK_BYTES)) if self.by_size else "-1",
            "segment.ms": milliseconds(self.roll_hours),
            "segment.bytes": str(self.segment_bytes),
        }

    @property
    def usual_bytes_per_hour(self) -> float:
        """The mean traffic of a topic that does not grow."""
        fills_in = self.fill_days * DAY_HOURS if self.by_size or self.keep_hours is None else self.keep_hours
        return self.share * DISK_BYTES / fills_in

    def bytes_per_hour(self, name: str, hour: float) -> float:
        """Return the traffic at an hour: rhythm of day and week, growth, bursts and chance."""
        day = hour / DAY_HOURS
        rate = self.usual_bytes_per_hour * (1 + self.growth_per_day * day)
        rate *= 1 + self.amplitude * math.cos((hour - self.peak_hour) / DAY_HOURS * 2 * math.pi)
        if int(day) % 7 >= 5:
            rate *= self.weekend
        for begins, hours, factor in self.bursts:
            if 0 <= hour - begins * DAY_HOURS < hours:
                rate *= factor
        return rate * _chance(name, int(hour), 0.15) * _chance(name, -int(day), 0.06)


@lru_cache(maxsize=4096)
def _chance(name: str, number: int, spread: float) -> float:
    return random.Random(f"{_SEED} {name} {number}").lognormvariate(0, spread)


@dataclass(frozen=True, kw_only=True)
class Volume:
    """One volume: its topics from the first hour on, and those that are new some day (day, load)."""

    family: str
    loads: tuple[Load, ...]
    new: tuple[tuple[float, Load], ...] = ()

    @property
    def surprises(self) -> tuple[float, ...]:
        """The days at which something begins that no history before has shown."""
        found = [day for load in self.loads for day, _, _ in load.bursts]
        found += [day for load in self.loads for day, _ in load.kept]
        return tuple(sorted([*found, *self.new_days]))

    @property
    def new_days(self) -> tuple[float, ...]:
        """The days at which a topic is new."""
        return tuple(day for day, _ in self.new)


def _steady(share: float, keep_hours: float, **more: object) -> Load:
    return Load(share=share, keep_hours=keep_hours, **more)  # type: ignore[arg-type]


_SMALL = _steady(0.04, 24, peak_hour=3, amplitude=0.8)
# Limits are crossed by growth, by new topics, by longer retentions and by bursts, and clearly. A volume whose
# usual crest is at its limit would cross it each week, by chance.
VOLUMES: tuple[Volume, ...] = (
    Volume(
        family="retention",
        loads=(
            _steady(0.1, 24),
            _steady(0.2, 72, weekend=0.3),
            _steady(0.25, WEEK_HOURS, amplitude=0.8),
            _steady(0.06, 48, peak_hour=21),
        ),
    ),
    Volume(
        family="weekly segments",
        loads=(
            _steady(0.2, WEEK_HOURS, segment_bytes=1024 * MEBI),
            _steady(0.1, 72, segment_bytes=1024 * MEBI, roll_hours=96),
            _steady(0.1, 48),
            _SMALL,
        ),
    ),
    Volume(
        family="by size",
        loads=(
            Load(share=0.28, by_size=True, fill_days=12),
            _steady(0.17, 120, by_size=True, fill_days=4),
            _steady(0.12, 72),
            _SMALL,
        ),
    ),
    Volume(
        family="compacted",
        loads=(
            Load(share=0.2, keys=6000, fill_days=4, roll_hours=12),
            _steady(0.1, 72, keys=2400, roll_hours=6),
            _steady(0.15, 72),
            _SMALL,
        ),
    ),
    Volume(
        family="growth",
        loads=(
            _steady(0.26, 72, growth_per_day=0.012, kept=((66.4, 36),)),
            Load(share=0.3, fill_days=300),
            _steady(0.17, 48, growth_per_day=0.01, kept=((112.3, 24),)),
            _SMALL,
        ),
    ),
    Volume(
        family="growth",
        loads=(
            _steady(0.25, WEEK_HOURS, growth_per_day=0.008),
            _steady(0.15, 120),
            _steady(0.05, 24, growth_per_day=0.02),
            _SMALL,
        ),
    ),
    Volume(
        family=COMING_AND_GOING,
        loads=(_steady(0.2, 72), _steady(0.1, 24), _SMALL),
        new=(
            (30.4, _steady(0.56, WEEK_HOURS, deleted_day=52.3)),
            (66.7, _steady(0.25, 120, deleted_day=88.2)),
            (101.2, _steady(0.55, 72, deleted_day=121.6)),
        ),
    ),
    Volume(
        family=COMING_AND_GOING,
        loads=(_steady(0.15, 48), _steady(0.2, WEEK_HOURS), _SMALL),
        new=(
            (41.6, _steady(0.5, 96, weekend=0.8, deleted_day=63.5)),
            (78.3, _steady(0.2, 240, deleted_day=104.1)),
            (117.5, _steady(0.48, WEEK_HOURS)),
        ),
    ),
    Volume(
        family=COMING_AND_GOING,
        loads=(_steady(0.2, 120), _steady(0.1, 48), _SMALL),
        new=(
            (36.2, _steady(0.2, 72, deleted_day=60.8)),
            (72.4, _steady(0.55, 120, deleted_day=95.1)),
            (110.6, _steady(0.3, WEEK_HOURS, weekend=0.8)),
        ),
    ),
    Volume(
        family="retention changed",
        loads=(
            _steady(0.35, WEEK_HOURS, kept=((34.3, 72), (62.1, 120), (95.4, 48), (121.7, 96))),
            _steady(0.12, 48, kept=((48.5, 96), (80.2, 24), (110.9, 192))),
            _steady(0.1, 24),
            _steady(0.08, 72),
        ),
    ),
    Volume(
        family="bursts",
        loads=(
            _steady(
                0.18, 48,
                bursts=((11.4, 10, 4), (27.2, 20, 3), (44.5, 6, 5), (58.1, 24, 5), (77.3, 12, 4),
                        (93.8, 8, 5), (112.6, 20, 5.5), (131.4, 10, 4)),
            ),
            _steady(
                0.2, 72,
                bursts=((19.7, 8, 3), (51.9, 12, 3), (84.2, 8, 4), (104.9, 16, 3), (125.3, 8, 3)),
            ),
            _steady(0.08, 24),
            _SMALL,
        ),
    ),
    Volume(
        family="mixed",
        loads=(
            _steady(0.09, 72, segment_bytes=1024 * MEBI, roll_hours=WEEK_HOURS, growth_per_day=0.004),
            Load(share=0.12, by_size=True, fill_days=20),
            _steady(0.15, WEEK_HOURS, deleted_day=59.3),
            _steady(0.1, 24, bursts=((23.8, 12, 3), (70.2, 12, 3), (118.4, 10, 4))),
        ),
    ),
)  # fmt: skip


@dataclass(slots=True)
class Places:
    """Which topic is which: Kafka chooses the log dir of a new partition, and its volume decides the load.

    Kafka chooses the log dir with the fewest. So all get as many topics at first. Those without a load, and
    those that are `new` some day (day, load), are empty until then.
    """

    volumes: tuple[Volume, ...] = VOLUMES
    by_log_dir: dict[str, Volume] = field(default_factory=dict)
    loads: dict[str, Load] = field(default_factory=dict)
    new: dict[str, tuple[float, Load]] = field(default_factory=dict)
    log_dirs: dict[str, str] = field(default_factory=dict)
    _given: dict[str, int] = field(default_factory=dict)

    def take(self, topic: str, log_dir: str) -> Load | None:
        """Return the load of a topic that was made on a log dir, now or some day; None where it has none."""
        if log_dir not in self.by_log_dir:
            self.by_log_dir[log_dir] = self.volumes[len(self.by_log_dir)]
        volume = self.by_log_dir[log_dir]
        number = self._given.get(log_dir, 0)
        self._given[log_dir] = number + 1
        if number >= _topics_of(volume):
            return None
        self.log_dirs[topic] = log_dir
        if number < len(volume.loads):
            self.loads[topic] = volume.loads[number]
            return self.loads[topic]
        self.new[topic] = volume.new[number - len(volume.loads)]
        return self.new[topic][1]

    def begin_due(self, day: float) -> list[str]:
        """Return the topics that are new until a day; they have their loads from now on."""
        due = [topic for topic, (begins, _) in self.new.items() if begins <= day and topic not in self.loads]
        self.loads |= {topic: self.new[topic][1] for topic in due}
        return due

    @property
    def all_loads(self) -> dict[str, Load]:
        """The loads of all topics, those that are to be new included."""
        return self.loads | {topic: load for topic, (_, load) in self.new.items()}


def _topics_of(volume: Volume) -> int:
    return len(volume.loads) + len(volume.new)


def topics_at_start(volumes: tuple[Volume, ...] = VOLUMES) -> int:
    """Return how many topics are made before the first hour, those that are to be new some day included."""
    return len(volumes) * max(_topics_of(volume) for volume in volumes)


@dataclass(frozen=True, order=True)
class Change:
    """A topic's retention from a day on, in hours of the history; without one, the topic is deleted."""

    day: float
    topic: str
    keep_hours: float | None = field(compare=False)

    @property
    def retention_ms(self) -> str | None:
        """The setting from then on."""
        return None if self.keep_hours is None else milliseconds(self.keep_hours)


def changes(loads: Mapping[str, Load]) -> Iterator[Change]:
    """Yield what happens to topics."""
    for topic, load in loads.items():
        for day, hours in load.kept:
            yield Change(day, topic, hours)
        if load.deleted_day is not None:
            yield Change(load.deleted_day, topic, None)
