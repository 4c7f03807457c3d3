"""Whom a policy would have held, by the definitions alone and a decision for each topic: slow and plain."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, FallbackAction, Scope
from kquota.policy.events import TombstoneEvent, UsageEvent
from kquota.policy.latch import latch_volumes
from kquota.policy.usage import UsageRecord
from kquota.policy.view import ClusterView
from kquota.policy.volume import Volume
from kquota_pipeline.backtest.policy import Policy
from tests.spark.backtest.clusters import TICK_SECONDS, TOLERANCE, Cluster, at

NOWHERE = "on no volume"
Writers = dict[tuple[str, str], set[str] | None]


def tallies(cluster: Cluster, policy: Policy) -> list[tuple[int, int, int, bool]]:
    """Return at each tick the producers paused and slowed, the clients that are not listed, and whether the
    history lacks what the policy's scope needs.
    """
    found = []
    for tick, (writers, unlisted) in enumerate(_writing(cluster)):
        decision = _decision(cluster, policy, tick, None)
        if decision.headroom == 1:
            found.append((0, 0, 0, False))
            continue
        factors, is_lacking = [], False
        for topics in writers.values():
            if policy.scope is Scope.CLUSTER or topics is None:
                factors.append(decision.headroom)
            else:
                factors.append(min(_decision(cluster, policy, tick, topic).headroom for topic in topics))
        falls_back = bool(decision.undetermined) and policy.fallback_action is not FallbackAction.OPEN
        if policy.scope is Scope.VOLUME and not falls_back:
            is_lacking = None in writers.values() or _decision(cluster, policy, tick, NOWHERE).headroom < 1
        found.append((factors.count(Fraction(0)), sum(0 < f < 1 for f in factors), unlisted, is_lacking))
    return found


def _decision(cluster: Cluster, policy: Policy, tick: int, topic: str | None) -> Decision:
    """Return what the scope of the cluster decides if volumes without that topic had no vote."""
    settings = PolicySettings(policy.fallback_action, timedelta(seconds=policy.staleness_seconds))
    view, active = ClusterView(TOLERANCE), set(cluster.unknown.get(tick, ()))
    for broker, reports in cluster.reports.items():
        seen = [t for t in sorted(reports) if t <= tick]
        ended = cluster.decommissioned.get(broker)
        if ended is not None and ended <= tick and all(t <= ended for t in seen):
            view.fold(TombstoneEvent(broker), at(tick))
            active.discard(broker)
            continue
        if not seen:
            continue
        volumes: tuple[Volume, ...] = ()
        for t in seen:
            own = [v._replace(limits=policy.pair(broker, v.mount_point) or v.limits) for v in reports[t]]
            volumes = latch_volumes(volumes, own, policy.release_margin)
        is_fresh = (tick - seen[-1]) * TICK_SECONDS <= policy.staleness_seconds
        is_silent = broker in active and not is_fresh  # perhaps it has other topics by now
        if topic is not None and not is_silent:
            volumes = tuple(v if _holds(v, topic) else _without_a_vote(v) for v in volumes)
        if is_fresh:
            active.add(broker)
        view.fold(UsageEvent(broker, UsageRecord(at(seen[-1]), volumes, None, None)), at(tick))
    return decide(view, Situation(frozenset(active)), settings, at(tick))


def _holds(volume: Volume, topic: str) -> bool:
    return volume.topics is None or topic in volume.topics


def _without_a_vote(volume: Volume) -> Volume:
    ceiling = None if volume.fill_ceiling_bytes_per_second is None else 0
    return volume._replace(consumed_bytes=0, latched=False, fill_ceiling_bytes_per_second=ceiling)


def _writing(cluster: Cluster) -> list[tuple[Writers, int]]:
    """Return at each tick who writes where, and how many clients are not listed: nothing is known of the time
    before the first tick.
    """
    writers: Writers = {}
    unlisted, found = 0, []
    for tick in range(cluster.ticks):
        begin, end = at(tick - 1), at(tick)
        rows = [
            row
            for row in cluster.clients
            if row["at"] > begin and row["at"] - timedelta(seconds=row["window_seconds"]) < end
        ]
        if rows:
            before = writers if tick in cluster.enforced else {}
            writers = before | _writing_in(rows)
            most: dict[int, int] = {}
            for row in rows:
                most[row["broker_id"]] = max(row["omitted_clients"], most.get(row["broker_id"], 0))
            unlisted = sum(most.values())
        found.append((writers, unlisted))
    return found


def _writing_in(rows: list[dict[str, object]]) -> Writers:
    seen: Writers = {}
    for row in rows:
        if "user" not in row:
            continue
        if row["produce_bytes_per_second"] or row["throttled_seconds"] or row["topics"]:
            name = row["user"], row["client_id"]
            so_far = seen.get(name, set())
            known = row["topics"] is not None and so_far is not None
            seen[name] = so_far | set(row["topics"]) if known else None
    return seen
