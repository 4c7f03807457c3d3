"""A day of a simulated fleet, with the agent's own policy: no disk fills, and nothing flaps without end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.scale.fleet import SCENARIOS, Course, Scenario, simulate
from kquota.policy.decision import State

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def one_day(scenario: Scenario, *, protected: bool = True) -> Course:
    return simulate(replace(scenario, days=1), brokers=2, volumes=2, protected=protected)


@pytest.mark.accepts("A7", "A9", "F29")
def test_a_load_that_would_fill_a_disk_in_hours_is_held_before_it_does() -> None:
    flood = replace(BY_NAME["burst"], load=lambda step, _i: 1.0 if step < 500 else 12.0)
    held, free = one_day(flood), one_day(flood, protected=False)
    assert free.full_after_days is not None, "the load is one that fills disks"
    assert held.full_after_days is None
    assert held.smallest_free_ratio > 0
    assert set(held.steps_in) > {State.OPEN}
    assert held.most_transitions_a_day < 100


def test_a_load_that_fits_is_never_held() -> None:
    quiet = one_day(replace(BY_NAME["growth"], load=lambda _step, _i: 1.0))
    assert set(quiet.steps_in) == {State.OPEN}
    assert quiet.transitions == []
