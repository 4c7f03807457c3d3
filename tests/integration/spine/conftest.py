"""Agents, brokers and plug-ins together, on real volumes: one fleet that all tests share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually


@pytest.fixture(scope="session")
def shared_fleet(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """Three brokers, the second with two volumes. No test kills a broker of it."""
    with Fleet(kafka_runtime, callback_jar, {1: 1, 2: 2, 3: 1}) as fleet:
        begun = time.monotonic()
        for agent in fleet.agents.values():
            agent.start()
        fleet.await_enforced("OPEN")
        print(f"\nOPEN is enforced {time.monotonic() - begun:.1f} s after the agents' first start")
        yield fleet


@pytest.fixture
def fleet(shared_fleet: Fleet, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """The shared fleet, at OPEN before and after each test, its agents as they were configured.

    How long the test waited for its first held state, and afterwards for OPEN, is noted for `make fault`.
    """
    shared_fleet.waits.clear()
    configured = {i: dict(agent.settings) for i, agent in shared_fleet.agents.items()}
    yield shared_fleet
    shared_fleet.clear()
    # A test that failed half-way must not hold all those after it.
    shared_fleet.withdraw_orders()
    last_reports = {}
    for broker_id, agent in shared_fleet.agents.items():
        changed = agent.settings != configured[broker_id]
        agent.settings = configured[broker_id]
        if not agent.process.running():
            last_reports[broker_id] = shared_fleet.usage_of(broker_id)[-1:]
            agent.write_config()
            agent.start()
        elif changed:
            agent.reload()
    for broker_id, last in last_reports.items():
        # Its last report may be nearly stale, and the next test then begins with a fallback.
        eventually(
            lambda id_=broker_id, old=last: shared_fleet.usage_of(id_)[-1:] != old, f"{broker_id} reports"
        )
    shared_fleet.await_enforced("OPEN")
    _note_times(request.node, shared_fleet.waits)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note the times of a test that has a fleet of its own, for `make fault`."""
    fleets = _fleets_of(item)
    own = [] if "fleet" in fleets else list({id(fleet): fleet for fleet in fleets.values()}.values())
    before = [len(fleet.waits) for fleet in own]
    yield
    for fleet, count in zip(own, before, strict=True):
        _note_times(item, fleet.waits[count:])


def _fleets_of(item: pytest.Item) -> dict[str, Fleet]:
    """Those that a test was given, by the names of the fixtures; one may have several names."""
    return {name: it for name, it in getattr(item, "funcargs", {}).items() if isinstance(it, Fleet)}


def _note_times(item: pytest.Item, waits: Sequence[tuple[str, float]]) -> None:
    """Note the time until the first held state and the longest until OPEN, unless the test has noted it."""
    noted = {name for name, _ in item.user_properties}
    held = [seconds for state, seconds in waits if state != "OPEN"]
    opened = [seconds for state, seconds in waits if state == "OPEN"]
    if held and "safe_seconds" not in noted:
        item.user_properties.append(("safe_seconds", held[0]))
        if opened and "recovery_seconds" not in noted:
            item.user_properties.append(("recovery_seconds", max(opened)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    """With a failure, show the end of every agent's journal."""
    report = yield
    if report.failed:
        for fleet in set(_fleets_of(item).values()):
            for agent in fleet.agents.values():
                report.sections.append((str(agent), f"{agent.decision}\n{agent.log_tail()}"))
            for node in fleet.cluster.nodes.values():
                lines = node.log_tail(200).splitlines()
                worth = [line for line in lines if " INFO " not in line]
                report.sections.append((f"node {node.node_id}", "\n".join(worth[-15:])))
    return report
