"""When an agent may wait longer: only while nothing is held or unknown, in the cluster or here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kquota.disks.observation import Failure
from kquota.guard.report import CycleReport
from kquota.policy.decision import FallbackAction, State
from tests.unit.guard.cycles import (
    NEWS,
    NO_FILE,
    VERIFIED,
    Bench,
    applied_state,
    arrival,
    order,
    settings_with,
    volume,
)

BOUNDED = settings_with(fallback_action=FallbackAction.BOUNDED)


def calm_bench() -> Bench:
    bench = Bench(settings=BOUNDED)
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    bench.ports.plug_in = applied_state(), VERIFIED
    bench.run(arrival(2, bench.usage(90, Sequence=1)))
    bench.settle()
    assert bench.run().is_calm
    return bench


def test_an_agent_with_room_and_fresh_reports_is_calm() -> None:
    assert calm_bench().run().is_calm


def test_an_agent_that_has_not_decided_yet_is_not_calm() -> None:
    bench = Bench()
    assert not bench.run().is_calm


@pytest.mark.parametrize(
    "trouble",
    [
        {"volumes": (volume(15),)},
        {"volumes": (volume(5),)},
        {"volumes": ()},
        {
            "volumes": (
                volume(50),
                volume(50, "/dev/sdb1", consumed_bytes=None, failures=(Failure(None, "it hangs"),)),
            )
        },
        {"volumes": (volume(50), volume(50, "/dev/sdb1", offline_log_dirs=("/mnt/dev/sdb1/kafka",)))},
        {"plug_in": (applied_state(State.PAUSE), VERIFIED)},
        {"plug_in": (NO_FILE, VERIFIED)},
        {"write_error": "no space"},
    ],
    ids=", ".join,
)
def test_trouble_on_this_host_ends_it(trouble: dict[str, Any]) -> None:
    bench = calm_bench()
    for name, value in trouble.items():
        setattr(bench.ports, name, value)
    reports: list[CycleReport] = [bench.run(after=1.1) for _ in range(8)]
    assert not reports[-1].is_calm


@pytest.mark.parametrize("free", [15, 5])
def test_another_broker_over_a_limit_ends_it(free: int) -> None:
    bench = calm_bench()
    assert not bench.run(arrival(2, bench.usage(free, Sequence=2))).is_calm


def test_a_hold_ends_it_also_one_at_open() -> None:
    bench = calm_bench()
    assert not bench.run(arrival("hold", order(600, Action="open"))).is_calm


def test_a_broker_that_is_covered_by_its_bound_ends_it() -> None:
    bench = calm_bench()
    silent = bench.usage(99, Sequence=2)
    silent["Volumes"][0] |= {"Capacity": 10**9, "Consumed": 0, "FillCeiling": 1}
    assert bench.run(arrival(2, silent)).is_calm
    report = [bench.run(after=5) for _ in range(13)][-1]
    assert report.decision is not None
    assert report.decision.covered
    assert report.decision.state is State.OPEN
    assert not report.is_calm
