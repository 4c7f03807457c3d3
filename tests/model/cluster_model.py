"""A small cluster as a state machine around the core: each agent's knowledge, in steps of one report
interval.

A state is nested tuples, so that equal situations are met once. Everything that judges (fold, latch, decide)
is the core's own; the model only has the events around it: disks fill and empty, agents and brokers stop
and start, agents lose the topic, clocks are wrong, operators give orders.

All times are ticks of 15 s: a lease lasts two, a record is fresh for four, joining takes four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, FallbackAction, Scope, State, UndeterminedCause
from kquota.policy.events import Hold, HoldAction, HoldEvent, OrderTerms, TombstoneEvent, UsageEvent
from kquota.policy.latch import latch_volumes
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota.policy.usage import UsageRecord
from kquota.policy.view import BrokerHistory, ClusterView, NoRecord
from kquota.policy.volume import Volume

TICK = timedelta(seconds=15)
LEASE_TICKS, STALE_TICKS, JOIN_TICKS, PATIENCE_TICKS = 2, 4, 4, 2
HOLD_TICKS = 3
SKEW_TICKS = 6
"""How far a wrong clock is ahead: beyond the tolerance for the future, and beyond staleness."""
TOLERANCE = 2 * TICK
NOW = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)
_OLDEST = STALE_TICKS + 4  # all older ages are alike: the bound on a low volume is at its hard limit

# Free space of a volume of 1,000 bytes with limits at 200 and 100 bytes free.
FREE_BYTES = (500, 105, 50)  # below soft; above hard, but within the release margin; beyond hard
LOW, EDGE, FULL = range(3)
CEILING_BYTES_PER_SECOND = 4  # a low volume is covered for six ticks, two of them after it became stale
MARGIN = Fraction(1, 10)
LIMITS = LimitPair(soft=Limit.of(LimitType.MIN_FREE_BYTES, 200), hard=Limit.of(LimitType.MIN_FREE_BYTES, 100))


class Report(NamedTuple):
    """A usage record: its age by a right clock (negative: from the future), and its content."""

    age: int
    level: int
    latched: bool
    topics: frozenset[int] | None = None
    listed: frozenset[int] | None = None


class Known(NamedTuple):
    """The memory of one broker's key: the records that may count, and whether it was removed."""

    reports: tuple[Report, ...] = ()
    tombstone: bool = False


class Broker(NamedTuple):
    """A broker, its disk, its agent, and what that agent knows."""

    level: int = LOW
    running: bool = True
    agent_ticks: int = 0  # how long the agent has run; -1 where there is none
    cut_off: bool = False
    fast_clock: bool = False
    latched: bool = False  # the agent's own memory
    has_read: bool = False
    known: tuple[Known, ...] = ()
    active: frozenset[int] | None = None
    joined: tuple[tuple[int, int], ...] = ()  # broker and ticks since it joined
    hold: tuple[str, int] | None = None  # action and ticks left, as this agent knows it
    decided: State | None = None
    decided_of: tuple[State, ...] = ()  # of each topic, with the scope of the volume
    lease_ticks: int = 0
    topics: frozenset[int] = frozenset()  # those with a partition on its volume, with that scope
    lists: bool = True  # whether its agent can list them
    listed: frozenset[int] = frozenset()  # whom its agent remembers of the cluster's list
    new_ticks: int = 0  # how long that memory is not complete yet


class Cluster(NamedTuple):
    """The whole state: the brokers, and the content of the topic."""

    brokers: tuple[Broker, ...]
    topic: tuple[Known, ...]
    hold: tuple[str, int] | None = None
    faults: int = 0  # how many of them have happened


Decide = Callable[[ClusterView, Situation, PolicySettings, datetime], Decision]


@dataclass(frozen=True)
class Model:
    """The rules. ``decide`` and ``latch`` are the core's; a test may give broken ones to see them fail."""

    brokers: int = 2
    max_faults: int = 3
    fallback: FallbackAction = FallbackAction.PAUSE
    lost: State = State.PAUSE
    scope: Scope = Scope.CLUSTER
    decide: Decide = decide
    latch: Callable[..., tuple[Volume, ...]] = latch_volumes
    settings: PolicySettings = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", PolicySettings(self.fallback, STALE_TICKS * TICK, self.scope))
        for name in ("_decision", "_latched"):
            object.__setattr__(self, name, cache(getattr(self, name)))

    def start(self) -> Cluster:
        """Return a quiet cluster whose agents have all just started and read the topic."""
        empty = tuple(Known() for _ in range(self.brokers))
        topics = (frozenset({i} if self.scope is Scope.VOLUME else ()) for i in range(self.brokers))
        brokers = tuple(Broker(known=empty, topics=of_one) for of_one in topics)
        return self.tick(self.tick(Cluster(brokers, empty)))

    def successors(self, cluster: Cluster) -> Iterator[tuple[str, Cluster]]:
        """Yield the possible events of the next tick, with their names: nothing, or one event."""
        yield "nothing", self.tick(cluster)
        for name, changed in (*self._events(cluster), *self._events_of_topics(cluster)):
            yield name, self.tick(changed)

    def calmed(self, cluster: Cluster) -> Cluster:
        """Return the cluster with every cause of trouble gone; its agents may not know that yet."""
        brokers = tuple(
            broker._replace(
                level=LOW,
                running=True,
                cut_off=False,
                fast_clock=False,
                agent_ticks=max(0, broker.agent_ticks),
            )
            for broker in cluster.brokers
        )
        return cluster._replace(brokers=brokers, hold=None)

    def effective(self, broker: Broker) -> State:
        """Return what producers meet: the decision while its lease lasts, then what a lost one means."""
        return broker.decided if broker.decided is not None and broker.lease_ticks > 0 else self.lost

    # --- what happens around the core ---

    def _events(self, cluster: Cluster) -> Iterator[tuple[str, Cluster]]:
        for i, broker in enumerate(cluster.brokers):
            for level in (LOW, EDGE, FULL):
                if abs(level - broker.level) == 1 and self._may_become(cluster, i, level):
                    yield (
                        f"volume of {i} becomes {('low', 'nearly full', 'full')[level]}",
                        _with(cluster, i, level=level),
                    )
        if cluster.faults >= self.max_faults:
            return
        cluster = cluster._replace(faults=cluster.faults + 1)
        for i, broker in enumerate(cluster.brokers):
            alive = broker.agent_ticks >= 0
            if alive:
                yield f"agent {i} dies", _with(cluster, i, **_DEAD_AGENT)
                yield (
                    f"agent {i} is {'connected' if broker.cut_off else 'cut off'}",
                    _with(cluster, i, cut_off=not broker.cut_off),
                )
                yield f"clock of {i} is set", _with(cluster, i, fast_clock=not broker.fast_clock)
            else:
                yield f"agent {i} starts", _with(cluster, i, agent_ticks=0)
            yield (
                f"agent {i} {'no longer ' if broker.lists else ''}lists",
                _with(cluster, i, lists=not broker.lists),
            )
            yield (
                f"broker {i} {'stops' if broker.running else 'starts'}",
                _with(cluster, i, running=not broker.running),
            )
            if broker.running and alive:
                yield f"host {i} fails", _with(cluster, i, running=False, **_DEAD_AGENT)
            topic = list(cluster.topic)
            topic[i] = Known((), tombstone=True)
            yield f"broker {i} is decommissioned", cluster._replace(topic=tuple(topic))
        for action in HoldAction:
            yield f"hold {action}", cluster._replace(hold=(action.value, HOLD_TICKS))
        if cluster.hold is not None:
            yield "hold is released", cluster._replace(hold=None)

    def _events_of_topics(self, cluster: Cluster) -> Iterator[tuple[str, Cluster]]:
        for i, broker in enumerate(cluster.brokers if self.scope is Scope.VOLUME else ()):
            for topic in range(self.brokers):
                if topic not in broker.topics and broker.running:
                    yield f"topic {topic} comes to {i}", _with(cluster, i, topics=broker.topics | {topic})
            if cluster.faults < self.max_faults:
                again = "lists again" if not broker.lists else "can no longer list"
                faulty = cluster._replace(faults=cluster.faults + 1)
                yield f"agent {i} {again}", _with(faulty, i, lists=not broker.lists)

    def _may_become(self, cluster: Cluster, i: int, level: int) -> bool:
        """Whether it may fill that far: a silent volume fills no faster than its owner last reported."""
        broker = cluster.brokers[i]
        # An agent that is cut off does not know that the broker was decommissioned.
        known = (cluster.topic[i], *(other.known[i] for other in cluster.brokers))
        reports = next((entry.reports for entry in known if entry.reports), ())
        silent = broker.agent_ticks < 0 or broker.cut_off
        if self.fallback is not FallbackAction.BOUNDED or not silent or level < broker.level or not reports:
            return True
        grown_bytes = CEILING_BYTES_PER_SECOND * reports[-1].age * TICK.total_seconds()
        return FREE_BYTES[reports[-1].level] - grown_bytes <= FREE_BYTES[level]

    def tick(self, cluster: Cluster) -> Cluster:
        """Let a tick pass: agents read, observe and publish; then all read again, decide and write."""
        cluster = _older(cluster)
        active = frozenset(i for i, broker in enumerate(cluster.brokers) if broker.running)
        for i in range(self.brokers):
            cluster = self._publish(cluster, i, active)
        brokers = tuple(self._decide_and_write(cluster, i, active) for i in range(self.brokers))
        return cluster._replace(brokers=brokers)

    def _publish(self, cluster: Cluster, i: int, active: frozenset[int]) -> Cluster:
        broker = cluster.brokers[i]
        if broker.agent_ticks < 0:
            return cluster
        connected = _connected(broker, active)
        if connected:
            broker = self._read(broker, cluster, active)
            if not broker.has_read:  # latches are kept by the topic
                recalled = any(report.latched for report in broker.known[i].reports[-1:])
                broker = broker._replace(has_read=True, latched=broker.latched or recalled)
        broker = broker._replace(latched=self._latched(broker.level, broker.latched))
        brokers = list(cluster.brokers)
        brokers[i] = broker
        topic = list(cluster.topic)
        if connected:
            age = -SKEW_TICKS if broker.fast_clock else 0
            topic[i] = Known((_report(broker, age),))
        return cluster._replace(brokers=tuple(brokers), topic=tuple(topic))

    def _read(self, broker: Broker, cluster: Cluster, active: frozenset[int]) -> Broker:
        pairs = zip(broker.known, cluster.topic, strict=True)
        known = tuple(_folded(mine, there, broker.fast_clock) for mine, there in pairs)
        joined = tuple((j, ticks) for j, ticks in broker.joined if j in active)
        if broker.active is not None and active:
            joined += tuple((j, 0) for j in sorted(active - broker.active))
        return broker._replace(known=known, hold=cluster.hold, active=active or broker.active, joined=joined)

    def _decide_and_write(self, cluster: Cluster, i: int, active: frozenset[int]) -> Broker:
        broker = cluster.brokers[i]
        if broker.agent_ticks < 0:
            return broker
        if _connected(broker, active):
            broker = self._read(broker, cluster, active)
        elif not broker.has_read and broker.agent_ticks < PATIENCE_TICKS and broker.level != FULL:
            return broker  # it waits for its first look at the cluster
        decision = self.decision(broker, i)
        topics = self.brokers if self.scope is Scope.VOLUME else 0
        decided_of = tuple(_of_topic(decision, topic) for topic in range(topics))
        return broker._replace(decided=decision.state, decided_of=decided_of, lease_ticks=LEASE_TICKS)

    def decision(self, broker: Broker, i: int, *, own: bool = True) -> Decision:
        """Return what the core decides for the agent of broker ``i`` as it is."""
        joining = frozenset(j for j, ticks in broker.joined if ticks < JOIN_TICKS)
        look = _report(broker, 0) if own else None
        causes = () if broker.has_read else (UndeterminedCause.NOT_READ,)
        return self._decision(
            broker.known, broker.active, joining, i, look, broker.hold, causes, broker.fast_clock
        )

    def _decision(
        self,
        known: tuple[Known, ...],
        active: frozenset[int] | None,
        joining: frozenset[int],
        i: int,
        look: Report | None,
        hold: tuple[str, int] | None,
        causes: tuple[UndeterminedCause, ...],
        fast_clock: bool,
    ) -> Decision:
        now = _now(fast_clock)
        view = ClusterView(
            TOLERANCE, brokers={j: history_of(entry) for j, entry in enumerate(known) if entry != Known()}
        )
        if hold is not None:
            view.fold(HoldEvent(Hold(HoldAction(hold[0]), OrderTerms(now + hold[1] * TICK, "", ""))), now)
        own = None if look is None else _record(look)
        return self.decide(view, Situation(active, joining, i, own, causes), self.settings, now)

    def _latched(self, level: int, was_latched: bool) -> bool:
        (volume,) = self.latch([_volume(level, was_latched)], [_volume(level, False)], MARGIN)
        return volume.latched


_DEAD_AGENT = {
    "agent_ticks": -1, "latched": False, "has_read": False, "active": None, "joined": (), "hold": None,
}  # fmt: skip


def _report(broker: Broker, age: int) -> Report:
    """Return its report; it names the topics from the soft limit on, if it can list them."""
    report = Report(age, broker.level, broker.latched)
    return report._replace(topics=broker.topics) if over_soft(report) and broker.lists else report


def over_soft(report: Report) -> bool:
    """Return whether its volume is over its soft limit, or counts so."""
    return report.latched or report.level != LOW


def _of_topic(decision: Decision, topic: int) -> State:
    if decision.scope is None:
        return decision.state
    return State.of_headroom(decision.scope.of(str(topic)))


def _connected(broker: Broker, active: frozenset[int]) -> bool:
    return broker.agent_ticks >= 0 and not broker.cut_off and bool(active)


def _with(cluster: Cluster, i: int, **changes: object) -> Cluster:
    brokers = list(cluster.brokers)
    brokers[i] = brokers[i]._replace(**changes)  # type: ignore[arg-type]
    if changes.get("agent_ticks") == -1:
        brokers[i] = brokers[i]._replace(known=tuple(Known() for _ in brokers))
    return cluster._replace(brokers=tuple(brokers))


def _older(cluster: Cluster) -> Cluster:
    brokers = tuple(
        broker._replace(
            agent_ticks=min(broker.agent_ticks + 1, PATIENCE_TICKS) if broker.agent_ticks >= 0 else -1,
            known=tuple(_older_known(entry) for entry in broker.known),
            joined=tuple((j, ticks + 1) for j, ticks in broker.joined if ticks + 1 < JOIN_TICKS),
            hold=_older_hold(broker.hold),
            lease_ticks=max(0, broker.lease_ticks - 1),
            new_ticks=max(0, broker.new_ticks - 1),
        )
        for broker in cluster.brokers
    )
    return cluster._replace(
        brokers=brokers,
        topic=tuple(_older_known(entry) for entry in cluster.topic),
        hold=_older_hold(cluster.hold),
    )


@cache
def _older_known(known: Known) -> Known:
    return known._replace(reports=tuple(r._replace(age=min(r.age + 1, _OLDEST)) for r in known.reports))


def _older_hold(hold: tuple[str, int] | None) -> tuple[str, int] | None:
    return None if hold is None or hold[1] <= 1 else (hold[0], hold[1] - 1)


def _now(fast_clock: bool) -> datetime:
    return NOW + SKEW_TICKS * TICK if fast_clock else NOW


@cache
def _volume(level: int, latched: bool) -> Volume:
    return Volume(
        "/dev/sda1",
        1000,
        1000 - FREE_BYTES[level],
        LIMITS,
        volume_id="fs",
        latched=latched,
        fill_ceiling_bytes_per_second=CEILING_BYTES_PER_SECOND,
    )


@cache
def _record(report: Report) -> UsageRecord:
    topics = None if report.topics is None else tuple(map(str, sorted(report.topics)))
    volume = _volume(report.level, report.latched)._replace(topics=topics)
    return UsageRecord(NOW - report.age * TICK, (volume,), LIMITS.hard, LIMITS.soft, listed=report.listed)


def history_of(known: Known) -> BrokerHistory:
    """Return the core's form of what is known of a broker."""
    last = NoRecord.TOMBSTONE if known.tombstone else NoRecord.MISSING
    return BrokerHistory([_record(report) for report in known.reports], last)


@cache
def _folded(mine: Known, there: Known, fast_clock: bool) -> Known:
    """Fold the topic's last event of a key into what an agent knows."""
    if there == Known() or there == mine:
        return mine
    view = ClusterView(TOLERANCE, brokers={0: history_of(mine)})
    now = _now(fast_clock)
    if there.tombstone:
        view.fold(TombstoneEvent(0), now)
        return there
    (report,) = there.reports
    if mine.reports and mine.reports[-1] == report:
        return mine
    view.fold(UsageEvent(0, _record(report)), now)
    ages = {id(_record(entry)): entry for entry in (*mine.reports, report)}
    return Known(tuple(ages[id(record)] for record in view.brokers[0].records))
