"""An agent whose wall clock steps, is slewed, repeats a second, or is a minute behind."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually

_SOURCE = Path(__file__).with_name("shifted_clock.c")
_HOUR_SECONDS, _DAY_SECONDS = 3600.0, 86_400.0

SetClock = Callable[[float], None]


@pytest.fixture
def shift_clock(fleet: Fleet, tmp_path: Path) -> Iterator[SetClock]:
    """Shifts the wall clock of agent 2 by this many seconds from the machine's."""
    library, shift = tmp_path / "shifted_clock.so", tmp_path / "shift"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, _SOURCE, "-ldl"], check=True)

    def set_clock(seconds: float) -> None:
        with shift.open("r+b" if shift.exists() else "wb") as file:
            file.write(struct.pack("d", seconds))

    set_clock(0.0)
    agent = fleet.agents[2]
    agent.stop()
    mark = agent.journal_mark()
    agent.start(LD_PRELOAD=str(library), SHIFT_FILE=str(shift))
    eventually(lambda: agent.told("OPEN: ", since=mark), "it has decided")
    yield set_clock
    agent.stop()


@pytest.mark.long
@pytest.mark.accepts("F8", "F7", "F39")
@pytest.mark.parametrize(
    "seconds",
    [_HOUR_SECONDS, -_HOUR_SECONDS, _DAY_SECONDS, -_DAY_SECONDS],
    ids=["hour-ahead", "hour-back", "day-ahead", "day-back"],
)
def test_a_wall_clock_that_jumps_is_told_and_touches_no_lease(
    fleet: Fleet, shift_clock: SetClock, seconds: float
) -> None:
    agent, others = fleet.agents[2], fleet.of([1, 3])
    for other in others:
        other.reload(staleness_seconds=5)
    fleet.await_enforced("OPEN")
    marks, fleet.waits[:] = fleet.marks(), []
    sequence = agent.decision["sequence"]  # type: ignore[index]
    shift_clock(seconds)
    # To itself all others' records are from another hour, and to the others its own are.
    fleet.await_enforced("PAUSE")
    told = eventually(lambda: agent.told("the wall clock jumped by", since=marks[2]), "it says so")
    assert [level for level, _ in told] == ["WARNING"]
    assert f"jumped by {seconds:+.0f}" in told[0][1].replace(".0 s", "")
    agent.await_metric(1, "kquota_clock_jumps_total")
    for other in others:
        [undetermined] = other.decision["undetermined"]
        assert undetermined["broker_id"] == 2
        if seconds > 0:
            assert undetermined["cause"] == "stale", "what counts is the last record from before"
        else:
            assert undetermined["cause"] == "clock"
            assert abs(undetermined["clock_behind_seconds"] + seconds) < 60
            behind = other.metric("kquota_clock_behind_seconds", broker="2")
            assert behind is not None
            assert abs(behind + seconds) < 60
            assert other.told(
                "the state of broker 2 is not known (its clock is ", since=marks[other.broker_id]
            )
    until = time.monotonic() + 3.0
    while time.monotonic() < until:
        assert agent.applied["lost"] is None, "the lease is by another clock"
        time.sleep(0.1)
    assert agent.decision["sequence"] > sequence
    shift_clock(0.0)
    fleet.await_enforced("OPEN")
    agent.await_metric(2, "kquota_clock_jumps_total")
    agent.await_passed("PAUSE", "OPEN", since=marks[2])


def await_reports(fleet: Fleet, count: int) -> None:
    """Wait until broker 2 has reported this many times more, while no agent decides anything new."""
    before = len(fleet.usage_of(2))

    def reported() -> bool:
        for agent in fleet.of():
            assert (agent.state, agent.applied["lost"]) == ("OPEN", None), f"{agent}: {agent.decision}"
        return len(fleet.usage_of(2)) >= before + count

    eventually(reported, "broker 2 reports")


@pytest.mark.long
@pytest.mark.accepts("F40")
def test_a_clock_that_is_slewed_changes_nothing(fleet: Fleet, shift_clock: SetClock) -> None:
    """Four seconds forth and back, a thousand times as fast as time services do it."""
    marks = fleet.marks()
    for tenths in (*range(1, 41), *range(39, -1, -1)):
        shift_clock(tenths / 10)
        time.sleep(0.2)
    await_reports(fleet, 2)
    for broker_id, agent in fleet.agents.items():
        assert agent.states_told(marks[broker_id]) == []
    assert fleet.agents[2].told("the wall clock jumped", since=marks[2]) == []


@pytest.mark.long
@pytest.mark.accepts("F40")
def test_a_second_that_is_repeated_or_left_out_changes_nothing(fleet: Fleet, shift_clock: SetClock) -> None:
    marks = fleet.marks()
    for shift in (-1.0, 0.0, 1.0, 0.0):
        shift_clock(shift)
        await_reports(fleet, 2)
    for broker_id, agent in fleet.agents.items():
        assert agent.states_told(marks[broker_id]) == []
    sequences = [record["Sequence"] for _, record in fleet.usage_of(2)]
    assert sequences[-8:] == sorted(sequences[-8:])


@pytest.mark.long
@pytest.mark.accepts("F41", "F7")
def test_a_host_a_minute_behind_is_named_with_its_clock(fleet: Fleet, shift_clock: SetClock) -> None:
    """With the default staleness of 60 s. Its own agent takes no report of a minute ago for a present one."""
    for agent in fleet.of():
        agent.reload(staleness_seconds=60)
    fleet.await_enforced("OPEN")
    marks, fleet.waits[:] = fleet.marks(), []
    shift_clock(-61.0)
    fleet.await_enforced("PAUSE")
    for other in fleet.of([1, 3]):
        [undetermined] = eventually(lambda other=other: other.decision["undetermined"], "it is named")
        assert (undetermined["broker_id"], undetermined["cause"]) == (2, "clock")
        assert 55 < undetermined["clock_behind_seconds"] < 67

    def mistrusts_its_clock() -> bool:
        unknown = fleet.agents[2].decision["undetermined"]
        return [(entry["broker_id"], entry["cause"]) for entry in unknown] == [(2, "clock")]

    # Half a minute later reports of others are no more from the future than is tolerated.
    eventually(mistrusts_its_clock, "it gives the same reason as the others", 90)
    assert "time synchronization" in fleet.agents[1].order("explain")
    assert all(agent.applied["lost"] is None for agent in fleet.of())
    shift_clock(0.0)
    fleet.await_enforced("OPEN")
    for broker_id, agent in fleet.agents.items():
        agent.await_passed("PAUSE", "OPEN", since=marks[broker_id])
