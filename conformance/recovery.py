"""After space was made: does everything flow again by itself, or what do people have to restart?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException

from conformance.figures import Recovery
from conformance.plan import Plan
from conformance.system import Broker, Place, Report
from testbed.loopback.clients import admin_client, partition_health

_LOOK_SECONDS = 0.5
_METADATA_SECONDS = 3.0


class Health:
    """Brokers and replicas, as a client sees them."""

    def __init__(self, place: Place, topics: Sequence[str]) -> None:
        self.ever_down: set[int] = set()
        """Brokers whose process was seen to have ended."""
        self._place = place
        self._topics = tuple(topics)
        self._admin = admin_client({"bootstrap.servers": place.bootstrap_servers})

    def down(self) -> set[int]:
        """Return the brokers whose process does not run now."""
        down = {broker_id for broker_id, broker in self._place.brokers.items() if not broker.running()}
        self.ever_down |= down
        return down

    def whole(self) -> bool:
        """Whether all brokers run, and all replicas of all topics are in sync."""
        if self.down():
            return False
        return not any(self._degraded(topic) for topic in self._topics)

    def degraded_brokers(self) -> set[int]:
        """Return the brokers that are down, or have a replica that is not in sync."""
        found = set(self.down())
        for topic in self._topics:
            try:
                for entry in partition_health(self._admin, topic, _METADATA_SECONDS):
                    found |= set(entry.replicas) - set(entry.in_sync)
            except KafkaException:
                continue
        return found

    def _degraded(self, topic: str) -> bool:
        try:
            entries = partition_health(self._admin, topic, _METADATA_SECONDS)
        except KafkaException:
            return True
        return any(entry.leader is None or entry.under_replicated for entry in entries)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The course of the recovery."""

    needed: Recovery
    whole_seconds: float | None
    """Until all was whole without a restart; None: longer than the bound."""
    by_itself_bound_seconds: float
    """How long nothing was done by people."""
    down: frozenset[int]
    """Brokers that were down at some moment before the first restart."""


def recover(
    place: Place, health: Health, plan: Plan, behind: Callable[[], list[str]], report: Report
) -> Recovered:
    """Wait until producers write and all is whole; after a bound restart brokers, first those in trouble."""
    freed_at = time.monotonic()
    whole_seconds = None
    while (waited_seconds := time.monotonic() - freed_at) < plan.recovery_seconds:
        if whole_seconds is None and health.whole():
            whole_seconds = time.monotonic() - freed_at
        if whole_seconds is not None and not behind():
            report("producers write, and all replicas are in sync, by themselves")
            down = frozenset(health.ever_down)
            return Recovered(Recovery.ITSELF, whole_seconds, plan.recovery_seconds, down)
        if health.down() and waited_seconds >= plan.down_seconds:
            break  # nothing starts it again
        time.sleep(_LOOK_SECONDS)
    bound_seconds, down = time.monotonic() - freed_at, frozenset(health.ever_down)
    needed = _restart_until_well(place, health, plan, behind, report)
    return Recovered(needed, whole_seconds, bound_seconds, down)


def _restart_until_well(
    place: Place, health: Health, plan: Plan, behind: Callable[[], list[str]], report: Report
) -> Recovery:
    in_trouble, everything = health.degraded_brokers(), set(place.brokers)
    steps = [(Recovery.RESTART_LOST, in_trouble)] if in_trouble not in (set(), everything) else []
    for needed, broker_ids in [*steps, (Recovery.RESTART_ALL, everything)]:
        report(f"not yet well: {_trouble(health, behind)}")
        report(f"restarting broker {', '.join(map(str, sorted(broker_ids)))}")
        for broker_id in sorted(broker_ids):
            _restart(place.brokers[broker_id], health, plan)
        began_at = time.monotonic()
        while time.monotonic() - began_at < plan.restarted_seconds:
            if health.whole() and not behind():
                report("producers write, and all replicas are in sync")
                return needed
            time.sleep(_LOOK_SECONDS)
    report(f"not even then: {_trouble(health, behind)}")
    return Recovery.NEVER


def _trouble(health: Health, behind: Callable[[], list[str]]) -> str:
    """Return the reasons, for people."""
    brokers = [f"broker {broker_id}" for broker_id in sorted(health.degraded_brokers())]
    return ", ".join([*brokers, *behind()])


def _restart(broker: Broker, health: Health, plan: Plan) -> None:
    """Restart a broker, and give the cluster a bounded time until all is whole, before the next one."""
    if broker.running():
        broker.stop()
    broker.start()
    deadline = time.monotonic() + plan.serving_seconds
    while not health.whole() and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
