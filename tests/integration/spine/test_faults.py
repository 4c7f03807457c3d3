"""Faults of a whole fleet that last: two agents for one broker, growth in PAUSE, space that oscillates."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kquota.demo.ports import PortReservation
from kquota.demo.processes import ChildProcess
from tests.integration.spine.agents import eventually, read_json
from tests.integration.spine.fleet import Fleet

RIVAL = "another agent (instance "


@contextmanager
def second_agent(fleet: Fleet, broker_id: int, **changes: Any) -> Iterator[tuple[Path, Path]]:
    """Another agent for the same broker, as after a host was cloned; yields its journal and its decision."""
    directory = fleet.cluster.nodes[broker_id].layout.directory / "clone"
    for path in (directory / "kquota", directory / "state"):
        path.mkdir(parents=True, mode=0o755)
    decision, journal = directory / "kquota" / "decision.json", directory / "agent.log"
    with PortReservation() as ports:
        settings = {
            **fleet.agents[broker_id].settings,
            "decision_file": str(decision),
            "state_dir": str(directory / "state"),
            "metrics": {"listen": f"127.0.0.1:{ports.reserve()}"},
            **changes,
        }
        (directory / "agent.yml").write_text(yaml.safe_dump(settings), "utf-8")
        process = ChildProcess(
            [sys.executable, "-m", "kquota", "run", "--config", str(directory / "agent.yml")],
            log_path=journal,
            environment=fleet.cluster.environment(),
        )
        try:
            yield journal, decision
        finally:
            process.terminate(20.0)


@pytest.mark.accepts("F16")
def test_two_agents_for_one_broker_alert_both_and_hold_to_the_worse(
    fleet: Fleet, record_property: Any
) -> None:
    ours, mark = fleet.agents[1], fleet.agents[1].journal_mark()
    limits = {
        "hard": {"type": "MinFreePercentage", "level": 99.5},  # as if its disk were full
        "soft": {"type": "MinFreePercentage", "level": 99.9},
    }
    begun = time.monotonic()
    with second_agent(fleet, 1, limits=limits) as (journal, decision):
        eventually(lambda: ours.told(RIVAL, since=mark), f"{ours} tells of its rival")
        eventually(lambda: ours.state == "PAUSE", "the worse of the two records holds here")
        record_property("safe_seconds", time.monotonic() - begun)
        eventually(lambda: RIVAL in journal.read_text("utf-8"), "the other one tells, too")
        eventually(lambda: (read_json(decision) or {}).get("state") == "PAUSE", "and decides the same")
        assert ours.metric("kquota_rival_agent") == 1
        # our own records come between the other's, and must not release us
        published = len(fleet.usage_of(1))
        eventually(lambda: len(fleet.usage_of(1)) >= published + 6, "both have reported some times")
        assert ours.states_told(since=mark)[-1] == "PAUSE"
        assert "OPEN" not in ours.states_told(since=mark)
    begun = time.monotonic()
    eventually(lambda: ours.told(f"over: {RIVAL}", since=mark), "it has gone")
    fleet.await_enforced("OPEN")
    record_property("recovery_seconds", time.monotonic() - begun)


@pytest.mark.accepts("F30")
def test_a_disk_that_goes_on_filling_in_pause_is_told_with_its_topics(
    fleet: Fleet, record_property: Any
) -> None:
    fleet.fill(2, 0)
    fleet.await_enforced("PAUSE")
    agent, mark = fleet.agents[2], fleet.agents[2].journal_mark()
    # what a follower that catches up does to its disk: segments grow, whatever producers do
    partition = fleet.disk(2).mount_point / "kafka" / "orders-7"
    partition.mkdir()
    begun = time.monotonic()
    try:
        deadline = begun + 120
        with (partition / "00000000000000000000.log").open("ab", buffering=0) as segment:
            while not agent.told("orders", since=mark) and time.monotonic() < deadline:
                segment.write(b"\1" * 1_500_000)
                time.sleep(0.5)
        told = [sentence for _, sentence in agent.told("goes on growing in PAUSE", since=mark)]
        assert told, agent.log_tail()
        record_property("safe_seconds", time.monotonic() - begun)
        assert " of broker 2 " in told[-1]
        assert "orders (" in told[-1]
        (metric,) = [
            value
            for (name, labels), value in agent.metrics().items()
            if name == "kquota_volume_growing_in_pause" and value
        ]
        assert metric == 1
    finally:
        for path in (*partition.iterdir(), partition):
            path.rmdir() if path.is_dir() else path.unlink()
    fleet.clear()
    begun = time.monotonic()
    fleet.await_enforced("OPEN")
    record_property("recovery_seconds", time.monotonic() - begun)


@pytest.mark.accepts("F29", "A30")
def test_space_that_oscillates_at_the_hard_limit_makes_one_pause(fleet: Fleet, record_property: Any) -> None:
    marks = fleet.marks()
    begun = time.monotonic()
    for _ in range(12):
        for headroom in (-0.02, 0.05):  # beyond hard; back, but within the release margin
            fleet.fill(2, headroom)
            time.sleep(0.4)
    fleet.await_enforced("PAUSE")
    record_property("safe_seconds", time.monotonic() - begun)
    for broker_id, agent in fleet.agents.items():
        states = agent.states_told(since=marks[broker_id])
        assert states.count("PAUSE") == 1, states
    begun = time.monotonic()
    fleet.clear()
    fleet.await_enforced("OPEN")
    record_property("recovery_seconds", time.monotonic() - begun)
