"""The topics of a simulated cluster: the load, the rules, and what happens to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from bench.pipeline.fleets.cluster_flows import Calendar, Flow, burst, growing, since, steady, window
from bench.pipeline.fleets.cluster_logs import DAY_MINUTES, DAY_STEPS, DAYS, STEPS, TIMES, Log, Rules
from kquota_pipeline.forecast.history import Floats

GB = 2.0**30
_WARM_DAYS = 20  # events of days before are seen in no history


@dataclass(slots=True)
class Topic:
    """A topic of a cluster. `extended` is when it gets more partitions, and how many it has then."""

    name: str
    flow: Flow
    rules: Rules
    partitions: int
    shares: Floats
    """The share of each partition in what is written; the second row is for the time after `extended`."""
    filled: Floats
    created: float = 0.0
    deleted: float = inf
    extended: tuple[float, int] | None = None

    def log(self, number: int, row: int, known: float, phase: float) -> Log:
        """Return the log of a partition: of a row of the flow, and of what had happened to it by a minute."""
        begun = self.created <= known
        share = np.full(STEPS, self.shares[0, number] * begun)
        if self.extended is not None and self.extended[0] <= known:
            share[TIMES[:-1] >= self.extended[0]] = self.shares[1, number]
        return Log(
            np.concatenate([[0.0], np.cumsum(self.flow.rate[row] * share)]),
            self.rules.until(known),
            deleted=self.deleted if self.deleted <= known else inf,
            filled=0.0 if self.created else float(self.filled[number]),
            phase=phase,
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

    def __init__(self, rng: np.random.Generator, calendar: Calendar) -> None:
        self.rng, self.calendar, self.topics = rng, calendar, list[Topic]()

    def day_bytes(self, median_gb: float) -> float:
        """Return the bytes that a topic takes in a day: few topics take most."""
        return float(np.clip(np.exp(self.rng.normal(0, 1.1)), 0.02, 12)) * median_gb * GB

    def day(self, first: float = _WARM_DAYS, last: float = DAYS) -> float:
        """Return a minute of one of these days."""
        return float(self.rng.uniform(first, last)) * DAY_MINUTES

    def some(self, mean: float) -> range:
        """Return as many as happen by chance."""
        return range(int(self.rng.poisson(mean)))

    def add(self, flow: Flow, rules: Rules) -> Topic:
        """Add a topic that is there from the beginning."""
        rng, number = self.rng, int(self.rng.choice([3, 6, 6, 12, 12, 24]))
        evenness = float(rng.choice([200.0, 40.0, 8.0, 2.5], p=[0.35, 0.35, 0.2, 0.1]))
        more = int(np.ceil(number * rng.choice([1.5, 2.0])))
        shares = np.zeros((2, more))
        shares[0, :number] = rng.dirichlet(np.full(number, evenness))
        shares[1] = rng.dirichlet(np.full(more, evenness))
        name = f"topic-{len(self.topics):02}"
        topic = Topic(name, flow, rules, number, shares, rng.random(more))
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
            if not topic.rules.kept_later:
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


def topics_of_a_shop(rng: np.random.Generator, calendar: Calendar) -> list[Topic]:
    """Return those of clicks and orders, which all see evenings, weekends, holidays and campaigns."""
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
        roll_days, keep_days = float(rng.choice([1, 7])), float(rng.choice([2, 3, 3, 5, 7, 7]))
        return maker.add(flow, Rules(keep_days * DAY_MINUTES, roll_days * DAY_MINUTES))

    for _ in range(int(rng.integers(7, 14))):
        one()
    for _ in maker.some(1.0):
        maker.appear(one(), maker.day(), float(rng.choice([0.1, 3, 10])))
    return maker.operate()
