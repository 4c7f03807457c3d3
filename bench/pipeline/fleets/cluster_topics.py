"""The topics of simulated clusters, by kind of cluster: the load, the rules, and what happens to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from bench.pipeline.fleets.cluster_flows import (
    Calendar,
    Flow,
    burst,
    growing,
    nightly,
    outages,
    since,
    steady,
    window,
)
from bench.pipeline.fleets.cluster_logs import DAY_MINUTES, DAY_STEPS, DAYS, STEPS, TIMES, Log, Rules
from kquota_pipeline.forecast.history import Floats

GB = 2.0**30
_HOUR = 60.0
_WARM_DAYS = 20  # events of days before are seen in no history


@dataclass(slots=True)
class Topic:
    """A topic of a cluster. `extended` is when it gets more partitions, and how many it has then.
    `table_bytes` are those of the keys of a compacted topic when it begins.
    """

    name: str
    flow: Flow
    rules: Rules
    partitions: int
    replicas: int
    shares: Floats
    """The share of each partition in what is written; the second row is for the time after `extended`."""
    filled: Floats
    created: float = 0.0
    deleted: float = inf
    extended: tuple[float, int] | None = None
    table_bytes: float = 0.0

    def log(self, number: int, row: int, known: float, phase: float) -> Log:
        """Return the log of a partition: of a row of the flow, and of what had happened to it by a minute."""
        begun = self.created <= known
        share = np.full(STEPS, self.shares[0, number] * begun)
        if self.extended is not None and self.extended[0] <= known:
            share[TIMES[:-1] >= self.extended[0]] = self.shares[1, number]
        loaded = np.clip((TIMES - self.created) / (3 * _HOUR), 0.0, 1.0) if self.created else 1.0
        return Log(
            np.concatenate([[0.0], np.cumsum(self.flow.rate[row] * share)]),
            self.rules.until(known),
            deleted=self.deleted if self.deleted <= known else inf,
            filled=0.0 if self.created else float(self.filled[number]),
            phase=phase,
            table_bytes=self.shares[0, number] * begun * self.table_bytes * loaded + np.zeros(STEPS + 1),
        )

    def is_foreknown(self, cut: float) -> bool:
        """Whether nothing begins after the cut."""
        later = (
            self.created,
            self.extended[0] if self.extended else 0.0,
            *(at for at, _ in self.rules.kept_later),
        )
        ends = self.deleted if self.deleted < inf else 0.0
        return max(*later, ends) <= cut and bool((self.flow.rate[0] == self.flow.rate[1]).all())


class _Maker:
    """Makes topics of one cluster."""

    def __init__(self, rng: np.random.Generator, calendar: Calendar, *, replicas: int = 3) -> None:
        self.rng, self.calendar, self.topics = rng, calendar, list[Topic]()
        self.replicas = replicas

    def day_bytes(self, median_gb: float, spread: float = 1.1) -> float:
        """Return the bytes that a topic takes in a day: few topics take most."""
        return float(np.clip(np.exp(self.rng.normal(0, spread)), 0.02, 12)) * median_gb * GB

    def day(self, first: float = _WARM_DAYS, last: float = DAYS) -> float:
        """Return a minute of one of these days."""
        return float(self.rng.uniform(first, last)) * DAY_MINUTES

    def some(self, mean: float) -> range:
        """Return as many as happen by chance."""
        return range(int(self.rng.poisson(mean)))

    def add(self, flow: Flow, rules: Rules, partitions: Sequence[int] = (3, 6, 6, 12, 12, 24)) -> Topic:
        """Add a topic that is there from the beginning."""
        rng, number = self.rng, int(self.rng.choice(partitions))
        evenness = float(rng.choice([200.0, 40.0, 8.0, 2.5], p=[0.35, 0.35, 0.2, 0.1]))
        more = int(np.ceil(number * rng.choice([1.5, 2.0])))
        shares = np.zeros((2, more))
        shares[0, :number] = rng.dirichlet(np.full(number, evenness))
        shares[1] = rng.dirichlet(np.full(more, evenness))
        name = f"topic-{len(self.topics):02}"
        topic = Topic(name, flow, rules, number, self.replicas, shares, rng.random(more))
        self.topics.append(topic)
        return topic

    def appear(self, topic: Topic, minute: float, ramp_days: float) -> None:
        """Let a topic be created at a minute, and its users come one after the other."""
        topic.created = minute
        topic.flow.begin(minute, ramp_days)

    def operate(self) -> list[Topic]:
        """Let happen what happens in each cluster, and return its topics."""
        rng = self.rng
        heavy = [one for one in self.topics if one.flow.rate[0].sum() > 0 and not one.created]
        heavy.sort(key=lambda one: -float(one.flow.rate[0].sum()))

        def picked() -> Topic:
            return heavy[min(int(rng.exponential(3)), len(heavy) - 1)]

        for _ in self.some(0.8):  # a release writes larger records, or compresses them
            minute, topic = self.day(), picked()
            topic.flow.times(since(minute, float(rng.choice([0.45, 0.7, 0.8, 1.25, 1.4, 1.8]))), minute)
        for _ in self.some(1.0):  # an application loads old records again
            minute, topic = self.day(), picked()
            size = float(topic.flow.rate[0].mean()) * DAY_STEPS * rng.uniform(0.5, 4.0)
            topic.flow.add(burst(minute, float(rng.uniform(2, 36)), size), minute)
        for _ in self.some(0.5):
            topic = picked()
            if topic.rules.keep_minutes < inf and not topic.rules.kept_later:
                keep = topic.rules.keep_minutes * float(rng.choice([0.3, 0.5, 0.5, 1.5, 2.0]))
                topic.rules = replace(topic.rules, kept_later=((self.day(), keep),))
        for _ in self.some(0.5):
            topic = picked()
            topic.extended = (self.day(), topic.shares.shape[1])
        for _ in self.some(0.3):  # an application is shut down; its topic stays, or is deleted later
            topic, minute = picked(), self.day()
            topic.flow.end(minute)
            if rng.random() < 0.5:
                topic.deleted = minute + float(rng.uniform(1, 10)) * DAY_MINUTES
        return self.topics


def _rules(rng: np.random.Generator, days: Sequence[float], roll_days: float = 7.0) -> Rules:
    return Rules(keep_minutes=float(rng.choice(days)) * DAY_MINUTES, roll_minutes=roll_days * DAY_MINUTES)


def _streaming(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """Events of many services, most with the broker's defaults: a week, segments of a week or a gigabyte."""
    maker = _Maker(rng, calendar)
    daily, weekend, growth = rng.uniform(0.3, 0.7), rng.uniform(0.5, 0.95), rng.uniform(-0.002, 0.015)

    def one() -> Topic:
        flow = steady(calendar, rng, maker.day_bytes(30), daily, weekend)
        flow.times(growing(float(rng.normal(growth, 0.006))))
        flow.holidays(float(rng.uniform(0.6, 0.9)))
        return maker.add(flow, _rules(rng, [7, 7, 7, 7, 7, 3, 1, 14]))

    for _ in range(int(rng.integers(10, 19))):
        one()
    for _ in maker.some(1.5):
        maker.appear(one(), maker.day(), float(rng.choice([0.1, 1, 5, 14])))
    return maker.operate()


def _capture(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """Changes of databases: a compacted topic for each table, and some outboxes that are deleted by time."""
    maker = _Maker(rng, calendar)
    daily, weekend = rng.uniform(0.4, 0.8), rng.uniform(0.3, 0.9)
    roll_days = float(rng.choice([7, 7, 1]))

    def table() -> Topic:
        table_bytes = maker.day_bytes(20, 1.2)
        day_bytes = table_bytes * float(np.exp(rng.normal(np.log(0.08), 0.9)))
        flow = steady(calendar, rng, day_bytes, daily, weekend)
        for _ in maker.some(0.25):  # a migration touches each row, or the table is captured again
            minute = maker.day()
            flow.add(burst(minute, float(rng.uniform(1, 12)), table_bytes * rng.uniform(0.3, 1.0)), minute)
        rules = Rules(
            inf,
            roll_minutes=roll_days * DAY_MINUTES,
            roll_bytes=float(rng.choice([0.25, 1, 1])) * GB,
            compacted=True,
            dirty_ratio=float(rng.choice([0.5, 0.5, 0.5, 0.1, 0.3, 0.8])),
            inserted_ratio=float(rng.choice([0.005, 0.02, 0.05, 0.12])),
        )
        topic = maker.add(flow, rules, (1, 1, 3, 6))
        topic.table_bytes = table_bytes
        return topic

    for _ in range(int(rng.integers(14, 30))):
        table()
    for _ in range(int(rng.integers(2, 6))):
        maker.add(steady(calendar, rng, maker.day_bytes(10), daily, weekend), _rules(rng, [3, 7, 7]), (3, 6))
    for _ in maker.some(1.5):
        maker.appear(table(), maker.day(), 0.2)
    return maker.operate()


def _logs(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """Logs of services: as many bytes as a partition may have, quotas, and storms of errors."""
    maker = _Maker(rng, calendar, replicas=int(rng.choice([2, 2, 3])))
    daily, weekend, growth = rng.uniform(0.3, 0.8), rng.uniform(0.5, 0.9), rng.uniform(0.0, 0.01)

    def one() -> Topic:
        day_bytes = maker.day_bytes(60)
        flow = steady(calendar, rng, day_bytes, daily, weekend)
        flow.times(growing(float(rng.normal(growth, 0.008))))
        for _ in maker.some(0.5):
            minute = maker.day()
            factor, hours = float(rng.uniform(2, 9)), float(rng.uniform(1, 14))
            flow.times(window(minute, hours / 24, factor), minute)
        if rng.random() < 0.5:
            flow.hold_back(outages([], day_bytes / DAY_STEPS * rng.uniform(1.6, 3.0)))
        topic = maker.add(flow, _rules(rng, [3, 7, 7, 14], float(rng.choice([1, 7]))), (3, 6, 6, 12))
        if rng.random() < 0.75:
            most = day_bytes / topic.partitions * rng.uniform(1.5, 11)
            topic.rules = replace(topic.rules, keep_bytes=max(2.0 ** round(np.log2(most)), GB))
        return topic

    for _ in range(int(rng.integers(9, 17))):
        one()
    for _ in maker.some(2.0):
        maker.appear(one(), maker.day(), float(rng.choice([0.1, 2, 10])))
    return maker.operate()


def _devices(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """Readings of devices: by day, kept for hours; networks fail, and the devices send later it."""
    maker = _Maker(rng, calendar)
    daily, growth = rng.uniform(0.6, 0.97), rng.uniform(0.0, 0.025)
    failures = [(at, at + float(rng.uniform(1, 9)) * _HOUR) for at in (maker.day() for _ in maker.some(2.0))]
    firmware = [(maker.day(), float(rng.uniform(1.1, 1.6))) for _ in maker.some(0.6)]
    kinds: list[list[float]] = [[0.25, 0.5, 1], [1, 1, 2], [1, 2, 3], [2, 3, 3]]
    keeps = kinds[int(rng.integers(4))]

    def one() -> Topic:
        day_bytes = maker.day_bytes(80)
        flow = steady(calendar, rng, day_bytes, daily, float(rng.uniform(0.9, 1.05)))
        flow.times(growing(float(rng.normal(growth, 0.004))))
        for minute, factor in firmware:
            flow.times(since(minute, factor, 4.0), minute)  # it is rolled out within days
        for begin, end in failures:
            passing = outages([(begin, end)], day_bytes / DAY_STEPS * 6)
            passing[: int(begin / 10)] = inf
            flow.hold_back(passing, begin)
        return maker.add(flow, replace(_rules(rng, keeps), roll_minutes=_HOUR * rng.choice([1, 3, 6, 24])))

    for _ in range(int(rng.integers(5, 12))):
        one()
    for _ in maker.some(0.8):
        maker.appear(one(), maker.day(), float(rng.choice([3, 10, 25])))
    return maker.operate()


def _retail(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """A shop's clicks and orders: evenings, weekends, holidays and campaigns, which all its topics see."""
    maker = _Maker(rng, calendar)
    daily, weekend, holiday = rng.uniform(0.5, 0.85), rng.uniform(1.1, 1.6), rng.uniform(0.6, 1.8)
    campaigns = [
        (maker.day(), float(rng.uniform(1, 7)), float(rng.uniform(1.4, 3.5)), float(rng.uniform(0.1, 0.6)))
        for _ in maker.some(3.5)
    ]
    growth = rng.uniform(-0.005, 0.02)

    def one() -> Topic:
        flow = steady(calendar, rng, maker.day_bytes(40), daily, weekend)
        flow.times(growing(float(rng.normal(growth, 0.004))))
        flow.holidays(float(holiday))
        touched = rng.uniform(0.2, 1.2)
        for minute, days, factor, ramp_days in campaigns:
            flow.times(window(minute, days, 1 + (factor - 1) * touched, ramp_days), minute)
        return maker.add(flow, _rules(rng, [2, 3, 3, 5, 7, 7], float(rng.choice([1, 7]))))

    for _ in range(int(rng.integers(7, 14))):
        one()
    for _ in maker.some(1.0):
        maker.appear(one(), maker.day(), float(rng.choice([0.1, 3, 10])))
    return maker.operate()


def _nightly(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """Loads of each night into a warehouse, full ones on Sundays, and more at the end of a month."""
    maker = _Maker(rng, calendar)
    month_end = int(rng.integers(0, 30))
    more_at_month_end = float(rng.uniform(0.5, 4.0))

    def one() -> Topic:
        day_bytes = maker.day_bytes(60)
        flow = nightly(calendar, rng, day_bytes, float(rng.choice([1, 1, 2, 4, 7])))
        if rng.random() < 0.5:
            for day in range(month_end, DAYS, 30):
                # It comes each month, so even the next one has begun.
                minute = (day + float(rng.uniform(0, 0.4))) * DAY_MINUTES
                flow.add(burst(minute, 3, day_bytes * more_at_month_end), 0.0)
        return maker.add(flow, _rules(rng, [1, 2, 2, 3, 3, 5, 7], float(rng.choice([0.5, 1, 7]))))

    for _ in range(int(rng.integers(7, 15))):
        one()
    for _ in range(int(rng.integers(1, 4))):
        maker.add(steady(calendar, rng, maker.day_bytes(15), 0.5, 0.7), _rules(rng, [2, 3, 7]))
    for _ in maker.some(1.5):
        maker.appear(one(), maker.day(), 0.1)
    return maker.operate()


def _tenants(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """Many tenants with quotas, and mirrors of other clusters; their topics come and go."""
    maker = _Maker(rng, calendar, replicas=int(rng.choice([2, 3, 3])))
    lag = [(at, at + float(rng.uniform(2, 30)) * _HOUR) for at in (maker.day() for _ in maker.some(1.5))]

    def one() -> Topic:
        day_bytes = maker.day_bytes(25, 1.3)
        if rng.random() < 0.2:
            flow = nightly(calendar, rng, day_bytes, float(rng.choice([1, 3])))
        else:
            flow = steady(calendar, rng, day_bytes, rng.uniform(0.1, 0.9), rng.uniform(0.3, 1.3))
        flow.times(growing(float(rng.normal(0.004, 0.02))))
        most = day_bytes / DAY_STEPS
        if rng.random() < 0.25:  # a mirror stands still, and then catches up
            for begin, end in lag:
                passing = outages([(begin, end)], most * 3)
                passing[: int(begin / 10)] = inf
                flow.hold_back(passing, begin)
        elif rng.random() < 0.4:
            flow.hold_back(outages([], most * rng.uniform(1.4, 4)))
        rules = _rules(rng, [0.5, 1, 2, 3, 7, 7, 7, 14], float(rng.choice([1, 7, 7])))
        return maker.add(flow, rules, (1, 3, 3, 6, 12))

    for _ in range(int(rng.integers(18, 30))):
        topic = one()
        if rng.random() < 0.25:
            topic.deleted = maker.day()
            if rng.random() < 0.5:
                topic.flow.end(topic.deleted - float(rng.uniform(0, 5)) * DAY_MINUTES)
    for _ in maker.some(12):
        topic, begins = one(), maker.day()
        maker.appear(topic, begins, float(rng.choice([0.1, 0.1, 2, 7])))
        ends = begins + float(rng.exponential(40)) * DAY_MINUTES
        if ends < DAYS * DAY_MINUTES:
            topic.deleted = ends
    return maker.operate()


def _startup(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """A young company: more of everything each week, and some topics that are kept for ever."""
    maker = _Maker(rng, calendar, replicas=int(rng.choice([2, 3, 3])))
    growth = rng.uniform(0.01, 0.05)
    daily, weekend = rng.uniform(0.3, 0.8), rng.uniform(0.4, 1.1)

    def one() -> Topic:
        flow = steady(calendar, rng, maker.day_bytes(20), daily, weekend)
        flow.times(growing(float(rng.normal(growth, 0.012))))
        rules = _rules(rng, [7, 7, 7, 7, 3, 14])
        if rng.random() < 0.08:
            flow.times(np.full(STEPS, 0.2))
            rules = replace(rules, keep_minutes=inf)
        return maker.add(flow, rules, (3, 6, 6, 12))

    for _ in range(int(rng.integers(6, 12))):
        one()
    for week in range(_WARM_DAYS // 7, DAYS // 7):
        for _ in maker.some(0.7):
            maker.appear(one(), maker.day(7 * week, 7 * week + 5), float(rng.choice([0.5, 4, 10, 25])))
    return maker.operate()


FAMILIES: Mapping[str, Callable[[np.random.Generator, Calendar], list[Topic]]] = {
    "event streaming": _streaming,
    "change capture": _capture,
    "log shipping": _logs,
    "devices": _devices,
    "retail": _retail,
    "nightly loads": _nightly,
    "tenants": _tenants,
    "start-up": _startup,
}
