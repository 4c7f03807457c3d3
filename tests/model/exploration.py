"""Breadth-first exploration of all states within a depth, and the invariants that each has to satisfy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kquota.policy.decision import FallbackAction, Scope, State
from tests.model.cluster_model import (
    FULL,
    HOLD_TICKS,
    JOIN_TICKS,
    LEASE_TICKS,
    STALE_TICKS,
    TICK,
    TOLERANCE,
    Broker,
    Cluster,
    Known,
    Model,
    over_soft,
)

CALM_TICKS = STALE_TICKS + LEASE_TICKS + JOIN_TICKS + HOLD_TICKS
"""How long a cluster without any cause of trouble may take until all is OPEN."""


class Violated(AssertionError):
    """An invariant does not hold; the text is the shortest way there."""


@dataclass
class Explored:
    """The states and transitions met."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    by_state: dict[State, int] = field(default_factory=dict)


def explore(model: Model, depth: int, invariants: dict[str, Invariant] | None = None) -> Explored:
    """Visit every state within this many ticks of the start.

    Raises:
        Violated: an invariant fails; since the search is breadth first, no shorter way leads there.
    """
    checks = INVARIANTS if invariants is None else invariants
    begin = model.start()
    came: dict[Cluster, tuple[Cluster | None, str]] = {begin: (None, "start")}
    found, frontier = Explored(states=1), [begin]
    calm: set[Cluster] = set()
    for level in range(depth):
        following = []
        for cluster in frontier:
            for event, after in model.successors(cluster):
                found.transitions += 1
                known = after in came
                if not known:
                    came[after] = (cluster, event)
                    following.append(after)
                for name, check in checks.items():
                    problem = check(model, cluster, after, calm)
                    if problem is not None:
                        raise Violated(_story(came, cluster, event, after, f"{name}: {problem}"))
        found.states, found.depth, frontier = len(came), level + 1, following
    for cluster in came:
        for broker in cluster.brokers:
            state = model.effective(broker)
            found.by_state[state] = found.by_state.get(state, 0) + 1
    return found


Invariant = Callable[[Model, Cluster, Cluster, set[Cluster]], str | None]


def breaches_hold_producers(
    model: Model, _before: Cluster, after: Cluster, _calm: set[Cluster]
) -> str | None:
    """An agent that can hear of a full volume has decided PAUSE; its own it sees by itself."""
    active = any(broker.running for broker in after.brokers)
    for i, broker in enumerate(after.brokers):
        if broker.agent_ticks < 0 or broker.decided is None or broker.lease_ticks < LEASE_TICKS:
            continue
        held_open = broker.hold is not None and broker.hold[0] == "open"
        for j, other in enumerate(after.brokers):
            heard = _hears(broker, active) and _hears(other, active) and not held_open
            if other.level == FULL and (i == j or heard):
                problem = _not_paused(model, broker, other)
                if problem is not None:
                    return f"the volume of {j} is full and agent {i} has decided {problem}"
    return None


def _not_paused(model: Model, broker: Broker, full: Broker) -> str | None:
    """Return what an agent has decided of producers that fill this volume, if that is not PAUSE."""
    if broker.decided is not State.PAUSE:
        return str(broker.decided)
    for topic in full.topics:
        if broker.decided_of[topic] is not State.PAUSE:
            return f"{broker.decided_of[topic]} of topic {topic} on it"
    return None


def other_topics_flow(model: Model, _before: Cluster, after: Cluster, _calm: set[Cluster]) -> str | None:
    """A topic that no volume over its soft limit holds is OPEN, if all states and lists are known."""
    if model.scope is Scope.CLUSTER:
        return None
    for i, broker in enumerate(after.brokers):
        if broker.agent_ticks < 0 or broker.hold is not None or not broker.has_read:
            continue
        decision = model.decision(broker, i)
        reports = [known.reports[-1] for known in broker.known if known.reports]
        listed = broker.lists and all(
            report.topics is not None and 0 <= report.age <= STALE_TICKS
            for report in reports
            if over_soft(report)
        )
        if decision.undetermined or not listed or any(len(known.reports) > 1 for known in broker.known):
            continue
        held = broker.topics.union(*(report.topics or () for report in reports))
        for topic in range(model.brokers):
            state = broker.decided_of[topic]
            if topic not in held and state is not State.OPEN:
                return f"agent {i} has decided {state} of topic {topic}, which is elsewhere"
    return None


def _hears(broker: Broker, any_broker: bool) -> bool:
    return broker.agent_ticks >= 0 and not broker.cut_off and not broker.fast_clock and any_broker


def lost_agents_leave_nobody_open(
    model: Model, before: Cluster, after: Cluster, _calm: set[Cluster]
) -> str | None:
    """Without a decision under a live lease, nothing flows at full rate."""
    for i, broker in enumerate(after.brokers):
        if broker.lease_ticks == 0 and model.effective(broker) is not State.PAUSE:
            return f"broker {i} has no live lease and is {model.effective(broker)}"
        renewed = broker.lease_ticks > before.brokers[i].lease_ticks
        if renewed and broker.agent_ticks < 0:
            return f"the lease of broker {i} was renewed without an agent"
    return None


def equal_inputs_decide_equally(
    model: Model, _before: Cluster, after: Cluster, _calm: set[Cluster]
) -> str | None:
    """Agents that know the same decide the same, their own fresh look aside, and twice the same."""
    seen: dict[object, tuple[State, object]] = {}
    for i, broker in enumerate(after.brokers):
        if broker.agent_ticks < 0:
            continue
        inputs = broker.known, broker.active, broker.joined, broker.has_read, broker.fast_clock, broker.hold
        if broker.hold is not None:
            continue  # an own breach outranks a hold
        decision = model.decision(broker, i, own=False)
        state = decision.state, None if decision.scope is None else frozenset(decision.scope.topics.items())
        if seen.setdefault(inputs, state) != state:
            return f"agent {i} decides {state}, another with the same records {seen[inputs]}"
    return None


def silence_never_releases(model: Model, before: Cluster, after: Cluster, _calm: set[Cluster]) -> str | None:
    """A reported breach holds until something newer is known than that time has passed."""
    for i, (was, broker) in enumerate(zip(before.brokers, after.brokers, strict=True)):
        if was.decided is not State.PAUSE or broker.decided is State.PAUSE or broker.agent_ticks < 0:
            continue
        if broker.hold != was.hold or was.hold is not None or not was.has_read:
            continue
        breached = [j for j, known in enumerate(was.known) if _stands_at_zero(known)]
        silent = [j for j in breached if _said(was.known[j]) == _said(broker.known[j])]
        if silent:
            return f"agent {i} has left PAUSE for {broker.decided}, though {silent[0]} has said nothing since"
    return None


def _stands_at_zero(known: Known) -> bool:
    """Whether the only record that may count is a breach (none waits for its time to come)."""
    return (
        len(known.reports) == 1
        and -known.reports[0].age * TICK <= TOLERANCE
        and (known.reports[0].latched or known.reports[0].level == FULL)
    )


def _said(known: Known) -> object:
    return known.tombstone, [(report.level, report.latched) for report in known.reports]


def silent_volumes_are_covered(
    model: Model, _before: Cluster, after: Cluster, _calm: set[Cluster]
) -> str | None:
    """With bounded silence, a volume that fills at its bound is over its hard limit only in PAUSE."""
    if model.fallback is not FallbackAction.BOUNDED:
        return None
    for i, broker in enumerate(after.brokers):
        if broker.agent_ticks < 0 or broker.decided is None or broker.hold is not None:
            continue
        for j, other in enumerate(after.brokers):
            reports = broker.known[j].reports
            silent = other.agent_ticks < 0 and other.running and other.level == FULL
            heard = bool(reports) and reports[-1].age > STALE_TICKS and j in (broker.active or ())
            if silent and heard:
                problem = _not_paused(model, broker, other)
                if problem is not None:
                    return f"the volume of silent broker {j} is full and agent {i} has decided {problem}"
    return None


def every_pause_ends(model: Model, _before: Cluster, after: Cluster, calm: set[Cluster]) -> str | None:
    """Once every cause is gone, and that can be reported, all is OPEN within a bounded time."""
    cluster, way = model.calmed(after), []
    for _ in range(CALM_TICKS):
        if cluster in calm:
            break
        way.append(cluster)
        if all(model.effective(broker) is State.OPEN and broker.hold is None for broker in cluster.brokers):
            settled = model.tick(cluster)
            if all(model.effective(broker) is State.OPEN for broker in settled.brokers):
                break
        cluster = model.tick(cluster)
    else:
        states = ", ".join(f"{i} {model.effective(broker)}" for i, broker in enumerate(cluster.brokers))
        return f"{CALM_TICKS} ticks after all causes are gone: {states}"
    calm.update(way)
    return None


INVARIANTS: dict[str, Invariant] = {
    "breaches hold producers": breaches_hold_producers,
    "other topics flow": other_topics_flow,
    "lost agents leave no broker open": lost_agents_leave_nobody_open,
    "equal inputs decide equally": equal_inputs_decide_equally,
    "silence never releases": silence_never_releases,
    "silent volumes are covered": silent_volumes_are_covered,
    "every pause ends": every_pause_ends,
}


def _story(
    came: dict[Cluster, tuple[Cluster | None, str]], last: Cluster, event: str, after: Cluster, problem: str
) -> str:
    steps = [f"{event}\n{_shown(after)}"]
    cluster: Cluster | None = last
    while cluster is not None:
        previous, event = came[cluster]
        steps.append(f"{event}\n{_shown(cluster)}")
        cluster = previous
    return "\n".join([problem, *reversed(steps)])


def _shown(cluster: Cluster) -> str:
    return "\n".join(f"    {i}: {broker}" for i, broker in enumerate(cluster.brokers))
