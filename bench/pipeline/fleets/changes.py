"""Held-out fleets: what operators and applications change. Forecasts are judged on these, and not tuned.

This file was committed before any change of the method for its sake. Its assumptions are its own: a volume
has less of a rhythm than of events, a retention that is changed, a mirror that catches up, a monthly job,
holidays, partitions that move, tiering, quotas, releases. Some come before the forecast, some after it. Do
not run it to choose a constant of the forecast. Its report is written down as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.pipeline.fleets.blocks import Topic, compacted, rhythm
from bench.pipeline.fleets.made import MadeVolume
from kquota_pipeline.forecast.history import BOUND_HOURS, Floats, Ints, Looks, Series

_FIRST_HOUR = 498_000
_WARM_DAYS, _AFTER_DAYS = 32, 31
_NEVER = 10**9
_KEEPS = (0.5, 1, 2, 3, 3, 7, 7, 7)


@dataclass(slots=True)
class _Scene:
    """One volume while it is made. Changes at `stop`, an hour, or later do not happen, and from the hour
    `usual_from` on traffic has no chance.
    """

    draw: np.random.Generator
    days: int
    stop: float
    usual_from: int | None = None
    topics: list[Topic] = field(default_factory=list)
    tables: list[Floats] = field(default_factory=list)
    aim: tuple[float, float] = (0.45, 0.8)
    """Bounds of the highest crest of the last four known weeks, as a share of the disk."""

    @property
    def hours(self) -> int:
        return (_WARM_DAYS + self.days + _AFTER_DAYS) * 24

    @property
    def cut(self) -> int:
        return (_WARM_DAYS + self.days) * 24 - 1

    def around(self, before_days: float, after_days: float) -> int:
        """Return an hour between some days before the forecast and some after it."""
        return int(self.cut + self.draw.uniform(-before_days, after_days) * 24)

    def rhythm(self) -> Floats:
        """Return the traffic of people."""
        return rhythm(self.draw, self.hours, self.usual_from)

    def since(self, hour: int) -> Floats:
        """Return 1 from an hour on, if the change happens."""
        clock = np.arange(self.hours)
        return np.where((clock >= hour) & (hour < self.stop), 1.0, 0.0)

    def topic(
        self,
        share: float,
        keep_days: float,
        *,
        rate: Floats | None = None,
        keep: Floats | None = None,
        late: Floats | None = None,
        here: Floats | None = None,
    ) -> None:
        """Add a topic that takes this share of the disk at a rate of 1. `rate` and `keep` are factors."""
        draw, ones = self.draw, np.ones(self.hours)
        usual = share / (keep_days * 24 + 2)
        self.topics.append(
            Topic(
                self.rhythm() * usual * (ones if rate is None else rate),
                keep_days * 24 * (ones if keep is None else keep),
                0 * ones if late is None else late,
                ones if here is None else here,
                share * float(draw.uniform(0.004, 0.05)),
                float(draw.choice([24, 24, 72, 168])),
            )
        )

    def others(self, least: int = 2, most: int = 5) -> None:
        """Add topics that nothing happens to."""
        for _ in range(self.draw.integers(least, most)):
            self.topic(self.draw.uniform(0.03, 0.18), float(self.draw.choice(_KEEPS)))


def _quiet(scene: _Scene) -> None:
    for _ in range(scene.draw.integers(7, 14)):
        scene.topic(scene.draw.uniform(0.01, 0.1), float(scene.draw.choice(_KEEPS)))


def _retention(scene: _Scene) -> None:
    """An operator halves a retention, or doubles it."""
    factor = float(scene.draw.choice([0.5, 0.5, 2.0]))
    at = scene.around(6, 8)
    scene.others()
    share, keep = scene.draw.uniform(0.2, 0.45), float(scene.draw.choice([2, 3, 5, 7]))
    scene.topic(share, keep, keep=1 + (factor - 1) * scene.since(at))


def _tombstones(scene: _Scene) -> None:
    """Keys are added all the time, and deleted in batches."""
    draw, clock = scene.draw, np.arange(scene.hours)
    keys = draw.uniform(0.15, 0.4)
    grown = keys * (1 + draw.uniform(0, 0.012) * clock / 24)
    every = float(draw.choice([7, 14, 30])) * 24
    purged = draw.uniform(0.1, 0.4)
    saw = ((clock + draw.uniform(0, every)) % every) / every
    live = grown * (1 - purged * (1 - saw))
    updates = keys * draw.uniform(0.003, 0.02) * scene.rhythm()
    scene.tables.append(compacted(draw, live, updates))
    scene.others(1, 3)


def _mirrored(scene: _Scene) -> None:
    """A mirror stands still, and then catches up with records that are old."""
    draw = scene.draw
    scene.others(1, 4)
    for _ in range(draw.integers(1, 3)):
        source = scene.rhythm()
        through = np.ones(scene.hours)
        begins = [*draw.integers(0, scene.hours, draw.integers(1, 5)), scene.around(3, 4)]
        for begin in begins:
            hours = int(draw.uniform(6, 72))
            if begin < scene.stop:
                through[int(begin) : int(begin) + hours] = 0
        fastest = draw.uniform(2, 5)
        came, waiting = np.zeros(scene.hours), 0.0
        for hour in range(scene.hours):
            waiting += source[hour]
            came[hour] = min(waiting, fastest) * through[hour]
            waiting -= came[hour]
        sent, arrived = np.cumsum(source), np.cumsum(came)
        late = np.arange(scene.hours) - np.searchsorted(sent, arrived - 1e-9)
        share, keep = draw.uniform(0.1, 0.35), float(draw.choice([1, 2, 3, 7]))
        scene.topic(share, keep, rate=came, late=np.maximum(late, 0).astype(float))


def _monthly(scene: _Scene) -> None:
    """A job writes once a month, and a smaller one once a week."""
    draw, clock = scene.draw, np.arange(scene.hours)
    scene.others()
    phase, length = draw.uniform(0, 30 * 24), draw.uniform(3, 14)
    in_month = (clock + phase) % (30 * 24)
    begun = clock - in_month
    # A job that has run before is known.
    known = begun[scene.cut] >= _WARM_DAYS * 24
    runs = (in_month < length) & (known | (begun < scene.stop))
    keep = float(draw.choice([1, 2, 3, 7]))
    total = draw.uniform(0.06, 0.25)
    scene.topic(1.0, keep, rate=np.where(runs, total / length * (keep * 24 + 2), 0.0))
    weekly = (clock + draw.uniform(0, 168)) % 168 < draw.uniform(2, 6)
    scene.topic(draw.uniform(0.01, 0.04), 3.0, rate=np.where(weekly, 72.0 / 4, 0.0))


def _holiday(scene: _Scene) -> None:
    """Days with less traffic, and then again as much as before."""
    draw = scene.draw
    at, hours = scene.around(8, 6), int(draw.uniform(3, 10) * 24)
    left = draw.uniform(0.25, 0.6)
    clock = np.arange(scene.hours)
    factor = np.where((clock >= at) & (clock < at + hours) & (at < scene.stop), left, 1.0)
    for _ in range(draw.integers(3, 6)):
        scene.topic(draw.uniform(0.05, 0.2), float(draw.choice(_KEEPS)), rate=factor)


def _moved(scene: _Scene) -> None:
    """A broker is added, and partitions move away; or one goes, and they come here."""
    draw, clock = scene.draw, np.arange(scene.hours)
    scene.others(1, 3)
    at, comes = scene.around(10, 7), draw.random() < 0.4
    if comes and at >= scene.cut:
        scene.aim = (0.3, 0.55)
    for number in range(draw.integers(1, 4)):
        hours = draw.uniform(2, 12)
        done = np.clip((clock - at - number * hours) / hours, 0, 1) * (at < scene.stop)
        scene.topic(draw.uniform(0.05, 0.2), float(draw.choice(_KEEPS)), here=done if comes else 1 - done)


def _tiering(scene: _Scene) -> None:
    """Remote storage is switched on: the local retention holds as far as uploads have come."""
    draw, clock = scene.draw, np.arange(scene.hours)
    scene.others(1, 4)
    at, hours = scene.around(8, 6), draw.uniform(6, 60)
    keep = float(draw.choice([3, 7, 7, 14]))
    local = draw.uniform(0.05, 0.4)
    done = np.clip((clock - at) / hours, 0, 1) * (at < scene.stop)
    scene.topic(draw.uniform(0.25, 0.5), keep, keep=1 - (1 - local) * done)


def _quota(scene: _Scene) -> None:
    """A quota cuts the peaks of a client, or is raised."""
    draw = scene.draw
    scene.others(1, 4)
    at, factor = scene.around(6, 4), float(draw.choice([0.4, 0.6, 1.4, 1.8]))
    changed = 1 + (factor - 1) * scene.since(at)
    scene.topic(draw.uniform(0.2, 0.4), float(draw.choice([1, 2, 3, 7])), rate=changed)


def _release(scene: _Scene) -> None:
    """After a release records are larger, on some topics."""
    draw = scene.draw
    scene.others(1, 4)
    at, factor = scene.around(6, 4), draw.uniform(1.15, 1.9)
    larger = 1 + (factor - 1) * scene.since(at)
    for _ in range(draw.integers(1, 4)):
        scene.topic(draw.uniform(0.08, 0.25), float(draw.choice([1, 2, 3, 5, 7])), rate=larger)


def _adoption(scene: _Scene) -> None:
    """Users come to a product: traffic grows slowly, fast, and slowly again."""
    draw, clock = scene.draw, np.arange(scene.hours)
    scene.others(1, 4)
    middle, days = scene.around(20, 15), draw.uniform(5, 15)
    grown = 1 + draw.uniform(0.8, 3) / (1 + np.exp(-(clock - middle) / 24 / days * 2))
    scene.topic(draw.uniform(0.12, 0.25), float(draw.choice([1, 3, 7])), rate=grown)
    scene.aim = (0.5, 0.82)


def _stuck(scene: _Scene) -> None:
    """The log cleaner stands still for days, and a compacted topic grows by all its updates."""
    draw = scene.draw
    begin, hours = scene.around(5, 3), int(draw.uniform(3, 12) * 24)
    keys = draw.uniform(0.15, 0.35)
    updates = keys * draw.uniform(0.004, 0.015) * scene.rhythm()
    stuck = (begin, begin + hours) if begin < scene.stop else None
    live = np.full(scene.hours, keys)
    scene.tables.append(compacted(draw, live, updates, stuck))
    scene.others(1, 4)


def _launch(scene: _Scene) -> None:
    """New topics begin within some days before the forecast, small at first."""
    draw, clock = scene.draw, np.arange(scene.hours)
    scene.others(2, 4)
    for _ in range(draw.integers(1, 4)):
        began = scene.around(5, -0.7)
        grown = np.clip((clock - began) / draw.uniform(1, 24), 0, 1)
        scene.topic(draw.uniform(0.06, 0.3), float(draw.choice([1, 2, 3, 5, 7, 7, 14])), rate=grown)
    scene.aim = (0.4, 0.65)


def _bound(scene: _Scene) -> None:
    """Topics that are never deleted from grow until an operator deletes records, or does not."""
    draw, clock = scene.draw, np.arange(scene.hours)
    scene.others(1, 4)
    per_day = draw.uniform(0.001, 0.012)
    grown = np.cumsum(scene.rhythm()) * per_day / 24
    if draw.random() < 0.4:
        at = scene.around(12, 6)
        grown = grown - np.where((clock >= at) & (at < scene.stop), draw.uniform(0.2, 0.8) * grown[at], 0.0)
    scene.tables.append(grown)
    scene.aim = (0.5, 0.82)


FAMILIES: Mapping[str, Callable[[_Scene], None]] = {
    "quiet": _quiet,
    "retention changed": _retention,
    "tombstones": _tombstones,
    "mirror": _mirrored,
    "monthly job": _monthly,
    "holiday": _holiday,
    "partitions moved": _moved,
    "tiering": _tiering,
    "quota changed": _quota,
    "larger records": _release,
    "adoption": _adoption,
    "stuck cleaner": _stuck,
    "new topics": _launch,
    "kept forever": _bound,
}


def fleet(seed: int, volumes_per_family: int = 30) -> list[MadeVolume]:
    """Return volumes of all families; the same seed gives the same fleet."""
    return [
        _volume(family, number, [seed, 131, kind, number])
        for kind, family in enumerate(FAMILIES)
        for number in range(volumes_per_family)
    ]


def _scene(family: str, lots: list[int], *, surprises: bool = False, chance: bool = True) -> _Scene:
    draw = np.random.default_rng(lots)
    # Every sixth volume is young.
    days = int(draw.choice([2, 4, 7])) if lots[-1] % 6 == 5 else int(draw.choice([14, 24, 40, 62]))
    scene = _Scene(draw, days, _NEVER)
    if not surprises:
        scene.stop = scene.cut + 1
    if not chance:
        scene.usual_from = scene.cut + 1
    FAMILIES[family](scene)
    return scene


def _volume(family: str, number: int, lots: list[int]) -> MadeVolume:
    scene = _scene(family, lots, surprises=True)
    parts = [topic.contents() for topic in scene.topics]
    used = _used(scene, parts)
    calm, usual = (
        _used(one, [topic.contents() for topic in one.topics])
        for one in (_scene(family, lots), _scene(family, lots, chance=False))
    )
    draw, cut = np.random.default_rng([*lots, 1]), scene.cut
    other = draw.uniform(0.003, 0.03)
    scale = draw.uniform(*scene.aim) / (used[cut - min(scene.days, 28) * 24 : cut].max() + other)
    capacity = float(draw.choice([5e11, 1e12, 4e12, 8e12]))
    seen = slice(_WARM_DAYS * 24, None)
    hours = _FIRST_HOUR + np.arange(scene.hours)[seen]
    keep = draw.random(len(hours)) > 0.005
    keep[cut - _WARM_DAYS * 24 - 1 :] = True

    def series(bytes_: Floats) -> Series:
        crest = np.maximum(bytes_, np.concatenate([bytes_[:1], bytes_[:-1]]))[seen][keep]
        return Series(
            hours[keep],
            np.minimum((crest + other) * scale, 1.0) * capacity,
            np.zeros(int(keep.sum())),
            capacity,
            np.full(int(keep.sum()), "a", dtype=object),
        )

    soft = draw.uniform(0.7, 0.9)
    looked = keep & (draw.random(len(keep)) > 0.01)
    looked[cut - _WARM_DAYS * 24] = True
    return MadeVolume(
        family,
        f"{family}-{number}",
        series(used),
        _looks(scene, parts, hours, seen, looked, scale * capacity),
        int(_FIRST_HOUR + cut),
        soft * capacity,
        min(soft + 0.08, 0.97) * capacity,
        series(calm),
        series(usual),
    )


def _used(scene: _Scene, parts: list[tuple[Floats, Floats]]) -> Floats:
    return sum((size for size, _ in parts), np.zeros(scene.hours)) + sum(scene.tables, np.zeros(scene.hours))


def _looks(
    scene: _Scene,
    parts: list[tuple[Floats, Floats]],
    hours: Ints,
    seen: slice,
    looked: NDArray[np.bool_],
    to_bytes: float,
) -> Looks:
    sizes = np.stack([*(size for size, _ in parts), *scene.tables], axis=1)[seen][looked] * to_bytes
    soon = np.zeros_like(sizes)
    leaving = np.zeros((len(sizes), len(BOUND_HOURS) + 1))
    for number, (_, own) in enumerate(parts):
        soon[:, number] = own[seen][looked][:, :2].sum(axis=1) * to_bytes
        leaving += own[seen][looked] * to_bytes
    names = tuple(f"topic-{number:02d}" for number in range(sizes.shape[1]))
    never = sizes.sum(axis=1) - leaving.sum(axis=1)
    kept = np.zeros_like(sizes)
    for number, topic in enumerate(scene.topics):
        kept[:, number] = np.where(sizes[:, number] > 0, topic.keep_hours[seen][looked], 0.0)
    return Looks(hours[looked], leaving, never, names, sizes, soon, kept)
