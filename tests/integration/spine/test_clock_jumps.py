"""An agent whose wall clock is set while it runs."""

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
_HOUR_SECONDS = 3600.0

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
@pytest.mark.accepts("F8", "F7")
@pytest.mark.parametrize("seconds", [_HOUR_SECONDS, -_HOUR_SECONDS], ids=["ahead", "back"])
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
