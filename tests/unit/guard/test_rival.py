"""Two agents for one broker: the other reporter, and the end of waiting for it."""

from __future__ import annotations

import pytest

from tests.unit.guard.cycles import SETTINGS, Bench, arrival, state


@pytest.mark.accepts("F16")
def test_another_agent_for_our_broker_is_a_rival_as_long_as_it_reports() -> None:
    bench = Bench()
    assert (
        bench.run(arrival(1, bench.usage(50, InstanceId="old", age_seconds=60))).fold.rival_instance is None
    )
    bench.settle()
    rival = bench.run(arrival(1, bench.usage(50, InstanceId="other")))
    assert rival.fold.rival_instance == "other"
    assert bench.run(after=1).fold.rival_instance == "other", "between its reports, too"
    assert bench.run(arrival(1, bench.usage(50)), after=1).fold.rival_instance == "unknown"
    assert bench.run(after=4 * SETTINGS.interval_seconds).fold.rival_instance == "unknown"
    assert bench.run(after=1).fold.rival_instance is None, "it is gone"
    full = bench.run(arrival(1, bench.usage(5, InstanceId="other", Sequence=7)))
    assert state(full) == "PAUSE", "the worse of the two holds here"
    ours = bench.run(after=SETTINGS.interval_seconds)
    assert bench.ports.published[-1]["InstanceId"] == bench.cycle.instance_id
    assert state(bench.run()) == state(ours) == "PAUSE", "and goes on when our own record is the newer one"
    bench.run(after=4 * SETTINGS.interval_seconds)
    bench.run()
    assert bench.ports.published[-1]["Replaces"] == {"Instance": "other", "Sequence": 7}
    assert state(bench.run()) == "OPEN", "until the other is gone, and all agents know it"
    again = bench.usage(5, InstanceId="other", Sequence=8)
    assert state(bench.run(arrival(1, again))) == "PAUSE", "and when it is heard again"


@pytest.mark.accepts("F16")
def test_the_own_reports_are_no_rival_s_and_a_former_instance_is_replaced() -> None:
    bench = Bench()
    bench.run(arrival(1, bench.usage(5, InstanceId="former", Sequence=3)))
    reports = [bench.run(after=4.0) for _ in range(9)]
    assert [report.fold.rival_instance for report in reports] == [None] * 9
    assert state(reports[1]) == "PAUSE", "it may still run"
    assert state(reports[-1]) == "OPEN"
    assert bench.ports.published[0].get("Replaces") is None
    assert bench.ports.published[-1]["Replaces"] == {"Instance": "former", "Sequence": 3}


@pytest.mark.accepts("F16", "F39")
def test_a_rival_is_seen_also_after_the_wall_clock_was_set_back_since_the_start() -> None:
    bench = Bench(wall_offset_seconds=3600)
    bench.run(arrival(1, bench.usage(50, InstanceId="old", age_seconds=1)), wall_offset_seconds=3600)
    bench.run(wall_offset_seconds=3600)
    heard = bench.run(arrival(1, bench.usage(50, InstanceId="old", age_seconds=1)))
    assert heard.fold.rival_instance is None, "from before the start"
    assert bench.run(arrival(1, bench.usage(50, InstanceId="other"))).fold.rival_instance == "other"
