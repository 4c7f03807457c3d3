"""The agent with the fallback action bounded: its own bound, and others' silence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kquota.policy.decision import FallbackAction
from tests.unit.guard.cycles import NEWS, Bench, MemoryPorts, arrival, settings_with, state, volume
from tests.unit.policy.golden import complaints
from tests.unit.wording import say

BOUNDED = settings_with(fallback_action=FallbackAction.BOUNDED)


def ceilings(ports: MemoryPorts) -> list[int | None]:
    return [record["Volumes"][0].get("FillCeiling") for record in ports.published]


def test_a_report_bears_the_fastest_minute_and_at_least_the_floor() -> None:
    bench = Bench()
    bench.settle()
    assert ceilings(bench.ports) == [None], "a volume without a sample has no bound"
    for at, consumed in ((0.0, 0), (30.0, 60), (60.0, 60_000)):
        sampled = volume(50, capacity_bytes=10**6, consumed_bytes=consumed, sampled_at_monotonic=at)
        bench.ports.volumes = (sampled,)
        bench.run(after=30)
    assert ceilings(bench.ports) == [None, 100, 100, 1000]
    assert [complaints("usage", record) for record in bench.ports.published] == [[]] * 4


def test_after_a_restart_the_bound_is_that_of_the_last_report() -> None:
    bench = Bench()
    bench.ports.volumes = (volume(50, sampled_at_monotonic=0.0),)
    disk = {"VolumeName": "/dev/sda1", "Capacity": 100, "Consumed": 50, "VolumeId": "id of /dev/sda1"}
    last = bench.usage(50, Volumes=[{**disk, "FillCeiling": 777}])
    bench.run(arrival(1, last))
    bench.settle()
    assert ceilings(bench.ports) == [777]


def covered(bench: Bench) -> list[dict[str, Any]]:
    document = bench.ports.written[-1]
    assert complaints("decision", document) == []
    entries: list[dict[str, Any]] = document.get("covered", [])
    return entries


def test_a_silent_broker_is_covered_until_its_bound_is_reached_and_then_pauses() -> None:
    bench = Bench(settings=BOUNDED)
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    disk = {"VolumeName": "/dev/other", "Capacity": 1000, "Consumed": 0, "FillCeiling": 10}
    report = bench.usage(50, Volumes=[disk], SoftLimit={"type": "MinFreeBytes", "level": 300})
    bench.run(arrival(2, report))
    assert state(bench.settle()) == "OPEN"
    assert covered(bench) == []
    silent = [state(bench.run(after=5)) for _ in range(22)]
    assert silent.index("PAUSE") * 5 + 5 >= 95, "1,000 bytes at 10 a second, to the last 10"
    assert "THROTTLE" in silent
    assert covered(bench) == [{"broker_id": 2, "cause": "stale", "until": "2026-11-20T10:01:39.000Z"}]
    assert bench.run().sentence.startswith(f"PAUSE: {say('silent-over-hard', volume='/dev/other', broker=2)}")
    bench.run(arrival(2, bench.usage(50)))
    assert state(bench.run()) == "OPEN"
    assert covered(bench) == []


def test_a_reload_from_pause_to_bounded_ends_the_pause() -> None:
    bench = Bench()
    bench.news = replace(NEWS, active_brokers=frozenset({1, 2}))
    disk = {"VolumeName": "/dev/other", "Capacity": 10**6, "Consumed": 0, "FillCeiling": 10}
    bench.run(arrival(2, bench.usage(50, Volumes=[disk])))
    bench.settle()
    assert state(bench.run(after=61)) == "PAUSE"
    bench.replace_ports(MemoryPorts(), BOUNDED)
    bench.run()
    assert state(bench.run()) == "OPEN"
