"""The way out in an emergency, kquota.mode=observe set while a broker runs, is seen wherever one looks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually
from tests.unit.policy.golden import complaints
from tests.unit.wording import say

SENTENCE = say("broken-glass", broker=2)


def configure(fleet: Fleet, broker_id: int, *change: str) -> None:
    """Change a property of a running broker as an operator does, with kafka-configs."""
    runtime = fleet.cluster.runtime
    command = [runtime.java, "-cp", runtime.class_path(), runtime.config_command]
    command += ["--bootstrap-server", fleet.cluster.bootstrap_servers, "--alter"]
    command += ["--entity-type", "brokers", "--entity-name", str(broker_id), *change]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def broken_glass(fleet: Fleet, broker_id: int) -> Iterator[None]:
    """That broker observes, whatever its agent decides."""
    configure(fleet, broker_id, "--add-config", "kquota.mode=observe")
    try:
        yield
    finally:
        configure(fleet, broker_id, "--delete-config", "kquota.mode")


@pytest.mark.long
@pytest.mark.accepts("G22", "A15")
def test_a_broken_glass_is_in_status_metrics_and_journal_until_it_is_whole(fleet: Fleet) -> None:
    broken, other = fleet.agents[2], fleet.agents[1]
    marks = fleet.marks()
    broken.await_metric(1, "kquota_applied_mode", mode="enforce")
    with broken_glass(fleet, 2):
        fleet.fill(3, headroom=-0.2)
        fleet.await_enforced("PAUSE", [1, 3])
        # These two are what the alert compares: tests/monitoring has the ten minutes.
        broken.await_metric(1, "kquota_applied_mode", mode="observe")
        assert broken.metric("kquota_enforcing") == 1
        # ... and this is why the alert of a pause does not speak of it.
        broken.await_metric(1, "kquota_applied_state", state="PAUSE")
        broken.await_metric(1, "kquota_applied_mechanism", mechanism="none")
        other.await_metric(1, "kquota_applied_mode", mode="enforce")
        broken.await_entry("WARNING", SENTENCE, since=marks[2])
        eventually(
            lambda: (
                {i: fleet.usage_of(i)[-1][1]["Applied"]["Mode"] for i in (1, 2, 3)}
                == {1: "enforce", 2: "observe", 3: "enforce"}
            ),
            "each broker's record says the mode in force",
        )
        for agent in (broken, other):
            status = json.loads(agent.cli("status", "--json").stdout)
            assert complaints("status", status) == []
            assert [broker["mode"] for broker in status["brokers"]] == ["enforce", "observe", "enforce"]
            assert status["broken_glass"] == SENTENCE
            shown = " ".join(agent.cli("status").stdout.split())
            assert "applied by 2 of 3 brokers; only observed at broker 2" in shown
            assert SENTENCE in shown
            assert SENTENCE in agent.order("explain")
        check = broken.cli("check")
        assert (check.returncode, SENTENCE in check.stdout) == (2, True), check.stdout
        assert SENTENCE not in other.cli("check").stdout, "it speaks of its own broker alone"
    fleet.await_enforced("PAUSE")
    broken.await_entry("INFO", f"over: {SENTENCE}", since=marks[2])
    broken.await_metric(0, "kquota_applied_mode", mode="observe")
    eventually(
        lambda: json.loads(other.cli("status", "--json").stdout)["broken_glass"] is None, "it is whole again"
    )
