"""The file system of the agent's state is full, as /var may be: decisions go on, and nothing is forgotten."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from kquota.guard.agent_state import FILE_NAME as STATE
from kquota.guard.agent_state import AgentState, AgentStateFile
from testbed.loopback.runtime import KafkaRuntime
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import GONE_BROKERS, QUICK, Fleet
from tests.integration.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

_BREACH, _WITHIN_MARGIN = -0.02, 0.05
"""Headroom: past the hard limit, and above it by less than the release margin, where only memory holds."""
_PAGE_BYTES = 4096


@dataclass(frozen=True)
class SmallVar:
    """A file system of some pages, which has the state of broker 2's agent."""

    path: Path

    def fill(self) -> None:
        with (self.path / "ballast").open("ab", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(bytes(_PAGE_BYTES))

    def clear(self) -> None:
        (self.path / "ballast").unlink()

    def state(self) -> AgentState:
        state, problem = AgentStateFile(self.path / STATE).load()
        assert problem is None
        return state

    def listed(self) -> set[int]:
        ever = self.state().ever_listed
        assert ever is not None
        return set(ever.broker_ids)

    def good(self) -> Mapping[str, object]:
        good = self.state().good_configuration
        assert good is not None
        return good.document


@pytest.fixture(scope="module")
def pair(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Fleet]:
    """Two brokers, so that one of them can follow what the other one has."""
    with Fleet(kafka_runtime, callback_jar, {1: 1, 2: 1}, settings=QUICK) as fleet:
        for agent in fleet.of():
            agent.start()
        fleet.await_enforced("OPEN", timeout_seconds=120)
        yield fleet


@pytest.fixture
def var(pair: Fleet, tmp_path: Path) -> Iterator[SmallVar]:
    agent = pair.agents[2]
    agent.stop()
    options = "size=96k,mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(tmp_path)], check=True)
    try:
        shutil.copy(agent.state_dir / STATE, tmp_path)
        agent.write_config(state_dir=str(tmp_path))
        agent.start()
        pair.await_enforced("OPEN", timeout_seconds=120)
        small = SmallVar(tmp_path)
        eventually(lambda: small.good()["state_dir"] == str(tmp_path), "it has started well")
        yield small
        pair.clear()
        pair.await_enforced("OPEN", timeout_seconds=120)
    finally:
        agent.stop()
        agent.write_config(state_dir=str(agent.state_dir))
        subprocess.run(["umount", str(tmp_path)], check=True)


def decommission(fleet: Fleet, broker_id: int) -> None:
    """Have every agent forget a broker that is long gone: their state changes once they are sure."""
    (_, report) = fleet.usage_of(1)[-1]
    fleet.put(str(broker_id), report | {"SnapshotAt": "2026-01-01T00:00:00Z"})
    fleet.agents[1].order("decommission", str(broker_id), "--reason", "it is long gone", "--actor", "alice")


def await_failures(agent: AgentProcess, more_than: float = 0) -> None:
    def failures() -> float:
        return agent.metric("kquota_file_write_errors_total", file=STATE) or 0

    eventually(lambda: failures() > more_than, f"a metric counts that {STATE} can't be written")


@pytest.mark.accepts("F57")
def test_a_full_file_system_of_the_state_stops_no_decision_and_gets_the_state_once_it_has_space(
    pair: Fleet, var: SmallVar
) -> None:
    agent, gone = pair.agents[2], GONE_BROKERS[0]
    assert var.listed() == {1, 2, *GONE_BROKERS}
    before, mark = var.state(), agent.journal_mark()
    var.fill()
    decommission(pair, gone)
    await_failures(agent, more_than=1)
    sentence = f"the state file {var.path / STATE} can't be written: "
    [(level, told)] = agent.told(sentence, since=mark)
    assert (level, "No space left on device" in told) == ("WARNING", True), "once, however often it fails"

    pair.fill(2, _BREACH)
    pair.await_enforced("PAUSE")
    sequence = agent.decision["sequence"]
    eventually(lambda: agent.decision["sequence"] > sequence + 2, "the lease is renewed")
    assert agent.applied["lost"] is None

    agent.reload(join_grace_seconds=6)
    assert var.state() == before, "the old file is whole"
    pair.clear()
    pair.await_enforced("OPEN")

    var.clear()
    eventually(lambda: gone not in var.listed(), "it is written without another change, a reload in between")
    eventually(lambda: var.good()["join_grace_seconds"] == 6, "the configuration of then is in it")
    eventually(lambda: agent.told(f"over: {sentence}", since=mark), "the end is logged")
    agent.await_passed("PAUSE", "OPEN", since=mark)


@pytest.mark.accepts("F57")
def test_an_agent_that_is_restarted_without_space_for_its_state_is_as_strict_as_before(
    pair: Fleet, var: SmallVar
) -> None:
    agent, gone = pair.agents[2], GONE_BROKERS[1]
    pair.fill(2, _BREACH)
    pair.await_enforced("PAUSE")
    pair.fill(2, _WITHIN_MARGIN)
    var.fill()
    before, marks = var.state(), pair.marks()
    decommission(pair, gone)
    await_failures(agent)
    for end in (agent.kill, agent.stop):
        mark = agent.journal_mark()
        end()
        assert var.state() == before, "the old file is whole"
        agent.start()
        eventually(lambda mark=mark: agent.told("PAUSE: ", since=mark), "it has decided again")
        pair.await_enforced("PAUSE")
        modes = [sentence for _, sentence in agent.told("mode: ", since=mark)]
        assert all(sentence.startswith("mode: enforcing") for sentence in modes), modes
        assert agent.told("kquota volumes --accept", since=mark) == [], "it knows where its log dirs belong"
    var.clear()
    eventually(lambda: gone not in var.listed(), "the topic still has what could not be written")
    after = var.state()
    assert after.enforce_grant == before.enforce_grant
    assert after.remembered_volumes == before.remembered_volumes
    assert var.listed() >= {1, 2}
    for other in pair.of():
        assert set(other.states_told(marks[other.broker_id])) <= {"PAUSE"}
