"""A whole fleet over days of simulated time: the agent's own policy and latch, a model of the rest.

Each step, every broker's volumes take in what producers may send, drop what retention has let go, and are
reported; the decision from the reports of the step before holds producers everywhere.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from bench.scale.figures import Fleet
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import State
from kquota.policy.events import UsageEvent
from kquota.policy.latch import latch_volumes
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView
from kquota.policy.volume import Volume

STEP_SECONDS = 20
DAY_STEPS = 86_400 // STEP_SECONDS
CAPACITY_BYTES = 4_000_000_000_000
LIMITS = LimitPair(
    soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 20), hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 8)
)
MARGIN = Fraction(1, 10)
RETENTION_STEPS = DAY_STEPS // 2
_BUCKET_STEPS = 30  # retention removes whole segments, not bytes
_LEAK_RATIO = 0.002  # of the baseline, in PAUSE: see docs/sizing.md
_START = datetime(2026, 11, 1, tzinfo=UTC)
# The input of the brokers of a volume at which it would stand at half its capacity for ever.
FITTING_BYTES_PER_SECOND = CAPACITY_BYTES * 0.5 / (RETENTION_STEPS * STEP_SECONDS)

Load = Callable[[int, int], float]
"""(step, broker) → what producers offer each of its volumes, as a multiple of what fits."""


def daily(step: int) -> float:
    """Twice as much at noon as at night."""
    return 1 + math.sin(2 * math.pi * (step / DAY_STEPS - 0.25)) / 3


@dataclass(frozen=True, slots=True)
class Scenario:
    """The events of a fleet. ``catch_up`` is written in by replication, which nothing holds."""

    name: str
    story: str
    load: Load
    days: int = 7
    down: Callable[[int, int], bool] = lambda _step, _broker: False
    catch_up: Load = lambda _step, _broker: 0.0


@dataclass(slots=True)
class Course:
    """The result; the lists have one value for every ten minutes."""

    scenario: Scenario
    protected: bool
    smallest_free_ratio: float = 1.0
    full_after_days: float | None = None
    transitions: list[tuple[int, State]] = field(default_factory=list)
    steps_in: dict[State, int] = field(default_factory=dict)
    factors: list[float] = field(default_factory=list)
    fullest: list[float] = field(default_factory=list)

    @property
    def most_transitions_a_day(self) -> int:
        """The largest number of transitions within 24 hours."""
        times = [step for step, _ in self.transitions]
        return max((sum(1 for t in times if s <= t < s + DAY_STEPS) for s in times), default=0)

    def fleet(self) -> Fleet:
        """Return its figures."""
        return Fleet(
            self.scenario.name,
            self.scenario.story,
            self.protected,
            self.smallest_free_ratio,
            self.full_after_days,
            self.most_transitions_a_day,
            self.steps_in.get(State.THROTTLE, 0) / DAY_STEPS,
            self.steps_in.get(State.PAUSE, 0) / DAY_STEPS,
            min(self.factors),
        )


class _Disk:
    """A volume: its input, until retention removes it."""

    def __init__(self) -> None:
        fitting = FITTING_BYTES_PER_SECOND * STEP_SECONDS * _BUCKET_STEPS
        self._buckets = deque([fitting] * (RETENTION_STEPS // _BUCKET_STEPS))
        self.consumed_bytes = sum(self._buckets)
        self._filling = 0.0

    def take(self, content_bytes: float, step: int) -> None:
        room = CAPACITY_BYTES - self.consumed_bytes
        self._filling += min(content_bytes, room)
        self.consumed_bytes += min(content_bytes, room)
        if (step + 1) % _BUCKET_STEPS == 0:
            self._buckets.append(self._filling)
            self._filling = 0.0
            self.consumed_bytes -= self._buckets.popleft()


def simulate(scenario: Scenario, *, brokers: int = 4, volumes: int = 3, protected: bool = True) -> Course:
    """Run a scenario; unprotected, no producer is ever held."""
    disks = [[_Disk() for _ in range(volumes)] for _ in range(brokers)]
    latched: list[tuple[Volume, ...]] = [()] * brokers
    view, settings, course = ClusterView(timedelta(seconds=30)), PolicySettings(), Course(scenario, protected)
    state, factor = State.OPEN, 1.0
    baseline = [0.0] * brokers
    for step in range(scenario.days * DAY_STEPS):
        now = _START + timedelta(seconds=step * STEP_SECONDS)
        up = [i for i in range(brokers) if not scenario.down(step, i)]
        for i in up:
            offered = scenario.load(step, i)
            if state is State.OPEN:
                baseline[i] = offered
            # as the governor does it: a share of the earlier rate, and a leak
            sent = min(offered, max(factor, _LEAK_RATIO) * baseline[i]) if protected else offered
            for number, disk in enumerate(disks[i]):
                skew = 1 + 0.06 * number
                rate = (sent * skew + scenario.catch_up(step, i)) * FITTING_BYTES_PER_SECOND
                disk.take(rate * STEP_SECONDS, step)
            observed = [_volume(i, number, disk) for number, disk in enumerate(disks[i])]
            latched[i] = latch_volumes(latched[i], observed, MARGIN)
            view.fold(UsageEvent(i, UsageRecord(now, latched[i], LIMITS.hard, LIMITS.soft)), now)
        decision = decide(view, Situation(frozenset(up)), settings, now)
        if decision.state is not state:
            course.transitions.append((step, decision.state))
        state, factor = decision.state, decision.factor
        _note(course, step, state, factor, max(d.consumed_bytes for of in disks for d in of))
    return course


def _note(course: Course, step: int, state: State, factor: float, consumed_bytes: float) -> None:
    free_ratio = 1 - consumed_bytes / CAPACITY_BYTES
    course.steps_in[state] = course.steps_in.get(state, 0) + 1
    course.smallest_free_ratio = min(course.smallest_free_ratio, free_ratio)
    if free_ratio <= 0 and course.full_after_days is None:
        course.full_after_days = step / DAY_STEPS
    if step % _BUCKET_STEPS == 0:
        course.factors.append(factor)
        course.fullest.append(1 - free_ratio)


def _volume(broker: int, number: int, disk: _Disk) -> Volume:
    name = f"/dev/sd{number}"
    return Volume(name, CAPACITY_BYTES, math.ceil(disk.consumed_bytes), LIMITS, volume_id=f"{broker}{name}")


def _in_hours(step: int, first: float, last: float) -> bool:
    return first <= step * STEP_SECONDS / 3600 < last


SCENARIOS = (
    Scenario(
        "growth",
        "The load doubles within four days, and stays.",
        lambda step, _i: daily(step) * (1 + min(step / (4 * DAY_STEPS), 1.0)),
    ),
    Scenario(
        "burst",
        "At noon of the second day producers offer twelve times as much for three hours.",
        lambda step, _i: daily(step) * (12 if _in_hours(step, 36, 39) else 1),
        days=4,
    ),
    Scenario(
        "skew",
        "One broker takes twice the load of the others.",
        lambda step, i: daily(step) * (1.9 if i == 0 else 0.8),
    ),
    Scenario(
        "rebuild",
        "A broker is away for eight hours; then replication writes what it has missed, and more, in six.",
        lambda step, _i: 1.25 * daily(step),
        down=lambda step, i: i == 2 and _in_hours(step, 30, 38),
        catch_up=lambda step, i: 1.6 if i == 2 and _in_hours(step, 38, 44) else 0.0,
    ),
)
