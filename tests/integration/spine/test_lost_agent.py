"""A broker whose agent is dead: it goes on by its last decision, and looks at its own disks itself."""

from __future__ import annotations

import time
from typing import Any

import pytest

from testbed.loopback.clients import admin_client, create_topic, delete_topic
from tests.integration.spine.fleet import Fleet
from tests.integration.spine.test_broken_glass import configure
from tests.integration.waiting import at_rest, eventually

LEASE_SECONDS = 4
"""More than the interval and the time for which a volume may hang, and soon over."""
ACTION = "kquota.decision.lost.action"


@pytest.mark.accepts("F3")
def test_a_broker_without_an_agent_holds_nobody_until_its_own_disk_is_full(fleet: Fleet) -> None:
    agent, rate_bytes_per_second = fleet.agents[3], 500_000
    agent.reload(lease_seconds=LEASE_SECONDS)
    configure(fleet, 3, "--add-config", f"{ACTION}=bounded")
    admin = admin_client(fleet.cluster.client_configuration())
    create_topic(admin, "without-an-agent", [[3]])
    try:
        with fleet.produce("without-an-agent", rate_bytes_per_second) as producer:
            eventually(lambda: producer.rate_bytes_per_second() > 0, "the producer has begun")
            agent.kill()
            decided = agent.decision
            assert decided is not None
            seen: list[dict[str, Any]] = []

            def kept() -> bool:
                applied = agent.applied
                assert applied is not None
                seen.append(applied)
                return "kept" in applied and applied["kept"] is not None

            begun = time.monotonic()
            eventually(kept, "the plug-in keeps the last decision")
            kept_after_seconds = time.monotonic() - begun
            before = fleet.landed_bytes("without-an-agent")
            deadline = time.monotonic() + 1.5 * LEASE_SECONDS
            while time.monotonic() < deadline:
                assert kept()
                time.sleep(0.1)
            landed = fleet.landed_bytes("without-an-agent") - before
            assert landed > 0.5 * rate_bytes_per_second * 1.5 * LEASE_SECONDS, "its producers go on"
            assert {applied["state"] for applied in seen} == {"OPEN"}
            assert {applied["sequence"] for applied in seen[-10:]} == {decided["sequence"]}
            assert "lease ran out" in seen[-1]["kept"]

            fleet.fill(3, headroom=-0.1)
            begun = time.monotonic()
            eventually(lambda: agent.applied_state == "PAUSE", "its plug-in has seen the full disk")
            print(
                f"kept {kept_after_seconds:.1f} s after the agent's death, with {landed} bytes landed in"
                f" {1.5 * LEASE_SECONDS:g} s; paused {time.monotonic() - begun:.1f} s after the disk was full"
            )
            assert not agent.process.running()
            at_rest(lambda: fleet.landed_bytes("without-an-agent"), "nothing lands any more")
            assert agent.applied_state == "PAUSE"
    finally:
        configure(fleet, 3, "--delete-config", ACTION)
        delete_topic(admin, "without-an-agent")
