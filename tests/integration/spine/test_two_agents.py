"""Two agents that claim one broker: a cloned host, or a wrong node id."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from testbed.loopback.ports import PortReservation
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import QUICK, Fleet
from tests.integration.waiting import eventually

# To the clone every disk is over its hard limit.
_FULL = {"hard": {"type": "ConsumedSpace", "level": 1}, "soft": {"type": "ConsumedSpace", "level": 0}}


@pytest.fixture
def clone(fleet: Fleet) -> Iterator[AgentProcess]:
    with PortReservation() as ports:
        agent = AgentProcess(
            fleet.cluster, 1, ports.reserve(), {**QUICK, "mode": "observe", "limits": _FULL}, clone="clone"
        )
        yield agent
        agent.close()


@pytest.mark.accepts("F16", "A31")
def test_both_alert_and_everybody_obeys_the_worse(fleet: Fleet, clone: AgentProcess) -> None:
    owner, reader = fleet.agents[1], fleet.agents[2]
    marks = fleet.marks()
    begun_ms = time.time() * 1000
    clone.start()
    fleet.await_enforced("PAUSE", [1])
    for agent in (owner, clone):
        eventually(lambda agent=agent: agent.metric("kquota_rival_agent") == 1, "a metric says so")
        since = marks[1] if agent is owner else 0
        told = eventually(
            lambda agent=agent, since=since: agent.told("also reports as broker 1", since), "it is logged"
        )
        assert [level for level, _ in told] == ["WARNING"], "logged once"

    fleet.await_enforced("PAUSE")
    marks[2] = reader.journal_mark()
    heard = len(fleet.usage_of(1))
    eventually(lambda: len(fleet.usage_of(1)) >= heard + 6, "both go on reporting")
    assert set(reader.states_told(marks[2])) <= {"PAUSE"}, "a reader obeys the worse one all the time"
    instances = {record["InstanceId"] for at_ms, record in fleet.usage_of(1) if at_ms >= begun_ms}
    assert len(instances) == 2
    assert set(owner.states_told(marks[1])) == {"PAUSE"}, "the owner obeys the worse one all the time"
    assert clone.state == "PAUSE"

    clone.kill()
    fleet.await_enforced("OPEN")
    owner.await_metric(0, "kquota_rival_agent")
    eventually(lambda: owner.told("over: another agent", since=marks[1]), "the end is logged, too")
