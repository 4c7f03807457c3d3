"""A campaign of random faults: two minutes in `make test-long`, an hour by `make soak`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from testbed.loopback.runtime import KafkaRuntime
from tests.integration.soak.campaign import Campaign, Leaked, Sample
from tests.integration.spine.fleet import Fleet

MINUTES = float(os.environ.get("SOAK_MINUTES", "2"))


@pytest.mark.long
@pytest.mark.timeout(60 * MINUTES + 600)
@pytest.mark.accepts("F2", "F5", "F11", "F28")
def test_random_faults_leave_no_leak_no_missed_breach_and_no_pause_without_a_reason(
    kafka_runtime: KafkaRuntime, callback_jar: Path
) -> None:
    seed = int(os.environ.get("SOAK_SEED", str(int(time.time()))))
    print(f"\nseed {seed}")
    with Fleet(kafka_runtime, callback_jar, {1: 1, 2: 1, 3: 1}) as fleet:
        for agent in fleet.agents.values():
            agent.start()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        campaign = Campaign(fleet, seed)
        campaign.run(60 * MINUTES)
    assert campaign.faults > 0


def test_what_goes_on_growing_is_a_leak_and_what_settles_is_none() -> None:
    def judge(memory_mib: list[int], descriptors: list[int]) -> None:
        campaign = Campaign.__new__(Campaign)
        campaign.say = lambda _line: None
        campaign.samples = {
            "agent 1": [Sample(m * 2**20, d, 20) for m, d in zip(memory_mib, descriptors, strict=True)]
        }
        campaign._judge()

    steady = [30] * 9
    judge([60, 80, 95, 100, 101, 102, 101, 103, 102], steady)
    with pytest.raises(Leaked, match="agent 1: memory went from"):
        judge([100, 150, 200, 250, 300, 350, 400, 450, 500], steady)
    with pytest.raises(Leaked, match="agent 1: descriptors went from"):
        judge([100] * 9, [30, 40, 50, 60, 70, 80, 90, 100, 110])
