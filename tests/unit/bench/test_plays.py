"""The model of plays on larger fleets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.scale.plays import AGAIN, PlayCost, model_seconds, play_claims, task_core_seconds

ROLLOUT = PlayCost(
    "rollout", 3, kafka=True, tasks=100, seconds=200, control_core_seconds=60, restarts=3, restart_seconds=90
)
MANY = PlayCost(
    "parts", 60, kafka=False, tasks=50, seconds=300, control_core_seconds=240, restarts=0, restart_seconds=0
)


def test_the_constant_is_that_of_the_runs_on_the_most_hosts():
    assert task_core_seconds([ROLLOUT, MANY]) == pytest.approx(0.08)
    assert task_core_seconds([ROLLOUT]) == pytest.approx(0.2)


def test_a_fleet_takes_the_chain_the_control_host_s_work_and_the_restarts_in_turn():
    # 110 s of chain, 500 x 100 tasks x 0.08 s on 8 cores, 500 restarts of 30 s
    assert model_seconds(ROLLOUT, 0.08) == pytest.approx(110 + 500 + 15000)
    assert model_seconds(ROLLOUT, 0.08, batch=5) == pytest.approx(110 + 500 + 3000)
    assert model_seconds(ROLLOUT, 0.08, hosts=3, cores=10_000) == pytest.approx(200, abs=0.1)


def test_a_finished_rollout_is_judged_without_restarts():
    again = replace(ROLLOUT, play=AGAIN, restarts=0, restart_seconds=0)
    (claim,) = play_claims([ROLLOUT, again, MANY])
    assert claim.figure == pytest.approx((200 + 500) / 60)
    assert not claim.holds
    assert list(play_claims([MANY])) == []
