"""Volumes of simulated clusters: no curve is drawn, but each is the sum of the logs that are placed there.

Topics, what producers write to them, and their rules are those of a shop, which forecasts are worst on: its
campaigns are in no history. Kafka's placement puts their partitions on volumes, by number and not by size.
Operators move partitions, replace brokers and change retentions, and producers load old data again. The
segments on a volume then say what it holds, and when that leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

import numpy as np

from bench.pipeline.fleets.cluster_flows import Calendar
from bench.pipeline.fleets.cluster_logs import DAY_MINUTES, DAYS, HOUR_STEPS, STEPS, TIMES
from bench.pipeline.fleets.cluster_topics import GB, Topic, topics_of_a_shop
from bench.pipeline.fleets.made import MadeVolume
from kquota_pipeline.forecast.history import BOUND_HOURS, DAY_HOURS, Floats, Ints, Looks, Series

AHEAD_DAYS = 14
NAMED_TOPICS = 20
_HOURS = STEPS // HOUR_STEPS
_LEAST_USE, _MOST_USE = 0.35, 0.90
_VOLUMES_OF_A_CLUSTER = 3
# A full disk stops its broker. Disks are large enough for the worst hour of their cluster.
_FULL = 0.98
_REPLICAS = 3
FAMILY = "retail"
_KIND = 4  # part of the seed: figures of before are of the same volumes
_MONDAY = 19_723  # a day since 1970

Volume = tuple[int, int]
"""Broker, and its log dir."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A replica on a volume from a minute on. It copies the log at `copied_bytes` a minute first, but for a
    new partition; `lost` is True if the copy before it was gone by then.
    """

    volume: Volume
    since: float
    copied_bytes: float = inf
    lost: bool = False


@dataclass(slots=True)
class Partition:
    """A partition of a topic, and the stays of each of its replicas."""

    topic: Topic
    number: int
    replicas: list[list[Stay]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster with all that happens to it; `replaced` are (broker, minute it went, minute it came)."""

    calendar: Calendar
    first_day: int
    history_hours: int
    soft_ratio: float
    hard_ratio: float
    nearest: float
    """The fullest volume's share of its soft limit in the week before the cut."""
    phase: float
    partitions: tuple[Partition, ...]
    volumes: tuple[Volume, ...]
    replaced: tuple[tuple[int, float, float], ...]

    @property
    def cut_hour(self) -> int:
        """The hour of the forecast, since the beginning."""
        return int(self.calendar.cut // 60) - 1


def fleet(seed: int, count: int) -> list[MadeVolume]:
    """Return this many volumes, a few of each cluster; the same seed gives the same fleet."""
    found: list[MadeVolume] = []
    number = 0
    while len(found) < count:
        rng = np.random.default_rng([seed, _KIND, number])
        found += list(volumes_of(cluster(rng), rng, number))[:_VOLUMES_OF_A_CLUSTER]
        number += 1
    return found[:count]


def cluster(rng: np.random.Generator) -> Cluster:
    """Return a cluster, at the hour of its forecast."""
    cut = (DAYS - AHEAD_DAYS) * DAY_MINUTES - 60 * int(rng.integers(0, 24))
    calendar = Calendar(
        weekday=int(rng.integers(0, 7)),
        busiest_hour=float(rng.uniform(10, 20)),
        holidays=tuple(int(day) for day in rng.choice(DAYS, int(rng.integers(1, 5)), replace=False)),
        cut=float(cut),
    )
    soft_ratio = float(rng.uniform(0.80, 0.90))
    topics = topics_of_a_shop(rng, calendar)
    brokers, dirs = int(rng.integers(3, 8)), int(rng.choice([1, 1, 2, 2, 3, 4]))
    volumes = tuple((broker, log_dir) for broker in range(brokers) for log_dir in range(dirs))
    partitions = placed(rng, topics, brokers, dirs)
    _rebalance(rng, partitions, volumes)
    return Cluster(
        calendar=calendar,
        first_day=_MONDAY + calendar.weekday + 7 * int(rng.integers(0, 52)),
        history_hours=int(rng.integers(10 * DAY_HOURS, 60 * DAY_HOURS + 1)),
        soft_ratio=soft_ratio,
        hard_ratio=min(soft_ratio + float(rng.uniform(0.04, 0.08)), 0.97),
        nearest=float(rng.uniform(0.74, 1.02)),
        phase=float(rng.uniform(0, 5)),
        partitions=tuple(partitions),
        volumes=volumes,
        replaced=tuple(_replace(rng, partitions, brokers)),
    )


def placed(rng: np.random.Generator, topics: list[Topic], brokers: int, dirs: int) -> list[Partition]:
    """Place partitions as Kafka does: on one broker after the other, in its log dir with the fewest."""
    held = np.zeros((brokers, dirs))
    found: list[Partition] = []
    ends: list[tuple[float, Volume]] = []
    created = [(topic.created, topic, range(topic.partitions)) for topic in topics]
    created += [
        (topic.extended[0], topic, range(topic.partitions, topic.extended[1]))
        for topic in topics
        if topic.extended is not None
    ]
    for minute, topic, numbers in sorted(created, key=lambda one: one[0]):
        for _, (broker, log_dir) in [one for one in ends if one[0] <= minute]:
            held[broker, log_dir] -= 1
        ends = [one for one in ends if one[0] > minute]
        start, shift = int(rng.integers(brokers)), int(rng.integers(brokers - 1))
        for number in numbers:
            partition = Partition(topic, number)
            for replica in range(min(_REPLICAS, brokers)):
                step = 0 if not replica else 1 + (shift + number // brokers + replica - 1) % (brokers - 1)
                broker = (start + number + step) % brokers
                log_dir = int(np.argmin(held[broker] + 1e-3 * rng.random(dirs)))
                held[broker, log_dir] += 1
                partition.replicas.append([Stay((broker, log_dir), minute)])
                ends.append((topic.deleted, (broker, log_dir)))
            found.append(partition)
    return found


def _rebalance(rng: np.random.Generator, partitions: list[Partition], volumes: tuple[Volume, ...]) -> None:
    """Let an operator, or a tool, reassign some replicas at times, at a throttled pace."""
    for minute in sorted(rng.uniform(20, DAYS, int(rng.poisson(0.8))) * DAY_MINUTES):
        copied_bytes = float(rng.uniform(0.3, 3.0)) * GB
        share = float(rng.uniform(0.02, 0.12))
        for partition in partitions:
            for stays in partition.replicas:
                if rng.random() >= share or stays[0].since > minute - DAY_MINUTES:
                    continue
                brokers = {other[-1].volume[0] for other in partition.replicas if other is not stays}
                free = [one for one in volumes if one[0] not in brokers and one != stays[-1].volume]
                if free:
                    # Some hours pass from the first batch of a plan to its last.
                    at = minute + float(rng.uniform(0, 480))
                    stays.append(Stay(free[int(rng.integers(len(free)))], at, copied_bytes))


def _replace(
    rng: np.random.Generator, partitions: list[Partition], brokers: int
) -> Iterator[tuple[int, float, float]]:
    """Let a broker's host be replaced in some clusters: empty disks, onto which it copies all it had."""
    if rng.random() >= 0.2:
        return
    broker, gone = int(rng.integers(brokers)), float(rng.uniform(30, DAYS)) * DAY_MINUTES
    back = gone + float(rng.uniform(1, 16)) * 60
    here = [
        stays
        for partition in partitions
        for stays in partition.replicas
        if stays[0].since < gone and stays[-1].volume[0] == broker and stays[-1].since < gone - DAY_MINUTES
    ]
    pace = float(rng.uniform(4, 20)) * GB / max(len(here), 1)
    for stays in here:
        stays.append(Stay(stays[-1].volume, back, pace, lost=True))
    yield broker, gone, back


def volumes_of(made: Cluster, rng: np.random.Generator, number: int) -> Iterator[MadeVolume]:
    """Yield some of a cluster's volumes: of one size, and as full as volumes are that have an agent."""
    order = [made.volumes[index] for index in rng.permutation(len(made.volumes))]
    chosen = order[: 2 * _VOLUMES_OF_A_CLUSTER]
    contents = {volume: Contents(made, volume) for volume in chosen}
    for partition in made.partitions:
        _put(made, contents, partition)
    lately = slice(made.cut_hour + 1 - 7 * DAY_HOURS, made.cut_hour + 1)
    shown = slice(made.cut_hour + 1 - made.history_hours, made.cut_hour + 1 + AHEAD_DAYS * DAY_HOURS)
    fullest = max(float(one.crests(0)[lately].max()) for one in contents.values())
    most = max(float(one.crests(row)[shown].max()) for one in contents.values() for row in (0, 1))
    if not fullest:
        return
    capacity_bytes = max(fullest / (made.soft_ratio * made.nearest), most / _FULL)
    for volume, one in contents.items():
        usual = float(np.median(one.crests(0)[shown][: made.history_hours]))
        if _LEAST_USE <= usual / capacity_bytes <= _MOST_USE:
            name = f"{FAMILY} {number}/{volume[0]}-{volume[1]}"
            yield one.volume(name, capacity_bytes, shown, rng)


def _put(made: Cluster, contents: dict[Volume, Contents], partition: Partition) -> None:
    if not any(stay.volume in contents for stays in partition.replicas for stay in stays):
        return
    topic, cut = partition.topic, made.calendar.cut
    log = topic.log(partition.number, 0, inf, made.phase)
    size, leaving = log.sizes(ALL), log.leaving(LOOKED)
    calm = size
    if not topic.is_foreknown(cut):
        calm = topic.log(partition.number, 1, cut, made.phase).sizes(ALL)
    for stays in partition.replicas:
        for volume, held in _held(made, stays, size):
            if volume in contents:
                contents[volume].keep(topic, held, leaving)
        for volume, held in _held(made, [stay for stay in stays if _began(stay, made) <= cut], calm):
            if volume in contents:
                contents[volume].sizes[1] += held


def _held(made: Cluster, stays: list[Stay], size: Floats) -> Iterator[tuple[Volume, Floats]]:
    """Yield what a replica holds at each of TIMES, for each of its stays."""
    for at, stay in enumerate(stays):
        held = np.where((stay.since <= TIMES) & (_until(stays, at, size, made) > TIMES), size, 0.0)
        if stay.copied_bytes < inf:
            held = np.minimum(held, np.maximum(TIMES - stay.since, 0.0) * stay.copied_bytes)
        yield stay.volume, held


def _began(stay: Stay, made: Cluster) -> float:
    """Return when what led to a stay began: a broker is replaced from the time on at which it went."""
    if not stay.lost:
        return stay.since
    return next(gone for broker, gone, back in made.replaced if back == stay.since)


def _until(stays: list[Stay], at: int, size: Floats, made: Cluster) -> float:
    """Return until when a replica stays: the next one has to be in sync first, unless the disk is gone."""
    if at + 1 == len(stays):
        return inf
    following = stays[at + 1]
    if following.lost:
        return _began(following, made)
    missing = size - np.maximum(TIMES - following.since, 0.0) * following.copied_bytes
    in_sync = np.flatnonzero((following.since <= TIMES) & (missing <= 0))
    return float(TIMES[in_sync[0]]) if in_sync.size else inf


ALL = np.arange(STEPS + 1)
LOOKED = np.arange(HOUR_STEPS - 1, STEPS, HOUR_STEPS)
"""The last sample of each hour, at which an agent looks at segments."""


class Contents:
    """The bytes on one volume: `sizes`, [row, time], and at each look by topic, and by when they leave."""

    def __init__(self, made: Cluster, volume: Volume) -> None:
        self._made, self._volume = made, volume
        self.sizes: Floats = np.zeros((2, STEPS + 1))
        self._within: Floats = np.zeros((_HOURS, len(BOUND_HOURS) + 1))
        self._never: Floats = np.zeros(_HOURS)
        self._topics: dict[str, tuple[Topic, Floats, Floats]] = {}

    def keep(self, topic: Topic, held: Floats, leaving: Floats) -> None:
        """Add a replica: what is there of it, and what leaves of its whole log at each look, oldest first."""
        self.sizes[0] += held
        held = held[LOOKED]
        within = np.minimum(leaving, held[:, None])
        self._within += within
        self._never += held - within[:, -1]
        _, of_topic, soon = self._topics.setdefault(topic.name, (topic, np.zeros(_HOURS), np.zeros(_HOURS)))
        of_topic += held
        soon += within[:, 1]

    def crests(self, row: int) -> Floats:
        """Return the crest of each hour, as it was or as it had been without what began after the cut."""
        return np.asarray(self.sizes[row, :STEPS].reshape(_HOURS, HOUR_STEPS).max(axis=1))

    def volume(self, name: str, capacity_bytes: float, shown: slice, rng: np.random.Generator) -> MadeVolume:
        """Return the volume with its agent's samples and looks, of which some hours can be missing."""
        made = self._made
        hours = np.arange(_HOURS)
        seen = np.zeros(_HOURS, bool)
        seen[shown] = True
        ids = np.full(_HOURS, f"{name} a", object)
        for broker, gone, back in made.replaced:
            if broker == self._volume[0]:
                seen &= (hours < gone // 60) | (hours > back // 60)
                ids[hours > gone // 60] = f"{name} b"
        if rng.random() < 0.15:
            silent = made.cut_hour - int(rng.integers(DAY_HOURS, 10 * DAY_HOURS))
            seen[silent : silent + int(rng.integers(2, 13))] = False
        first = made.first_day * DAY_HOURS
        cut = first + made.cut_hour

        def series(row: int) -> Series:
            crests = self.crests(row)[seen]
            return Series(first + hours[seen], crests, np.zeros(len(crests)), capacity_bytes, ids[seen])

        return MadeVolume(
            FAMILY,
            name,
            series(0),
            self._looks(first, hours[seen]),
            cut,
            made.soft_ratio * capacity_bytes,
            made.hard_ratio * capacity_bytes,
            calm=series(1),
        )

    def _looks(self, first: int, rows: Ints) -> Looks:
        topics = list(self._topics.values())
        held = np.column_stack([of_topic[rows] for _, of_topic, _ in topics])
        soon = np.column_stack([of_topic[rows] for _, _, of_topic in topics])
        rank = np.argsort(np.argsort(-held, axis=1, kind="stable"), axis=1)
        named = (rank < NAMED_TOPICS) & (held > 0)
        minutes = TIMES[LOOKED[rows]]
        keep = np.column_stack([topic.rules.keep_at(minutes) for topic, _, _ in topics]) / 60
        some = np.flatnonzero(named.any(axis=0))
        within = self._within[rows]
        return Looks(
            first + rows,
            np.diff(within, axis=1, prepend=0.0),
            self._never[rows],
            tuple(topics[one][0].name for one in some),
            np.where(named, held, 0.0)[:, some],
            np.where(named, soon, 0.0)[:, some],
            np.where(named, keep, 0.0)[:, some],
        )
