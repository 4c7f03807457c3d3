"""The agent's memory reaches its file, and no cycle waits for its disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.daemon import state_writer
from kquota.daemon.state_writer import StateWriter
from kquota.write.agent_state import ActiveBrokers, AgentState, AgentStateFile
from tests.unit.daemon.cycles import START


class StallingFile(AgentStateFile):
    """A state file on a disk that stalls until it is released."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begun, self.released = threading.Event(), threading.Event()
        self.saved: list[AgentState] = []

    def save(self, state: AgentState) -> None:
        self.begun.set()
        assert self.released.wait(60)
        self.saved.append(state)
        super().save(state)


def state(*broker_ids: int) -> AgentState:
    return AgentState(active_brokers=ActiveBrokers("c", broker_ids, START))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[StallingFile]:
    file = StallingFile(tmp_path / "state.json")
    yield file
    file.released.set()


def test_nobody_waits_for_a_disk_that_stalls_and_the_newest_state_is_written(file: StallingFile) -> None:
    writer = StateWriter(file)
    writer.save(state(1))
    assert file.begun.wait(60)
    writer.save(state(1, 2))
    writer.save(state(1, 2, 3))
    assert not writer.settle(0.01)
    file.released.set()
    assert writer.settle(60)
    assert file.saved == [state(1), state(1, 2, 3)]
    assert file.load() == (state(1, 2, 3), None)
    writer.close(60)


def test_the_end_writes_what_is_left(file: StallingFile) -> None:
    file.released.set()
    writer = StateWriter(file)
    writer.save(state(1))
    writer.save(state(2))
    writer.close(60)
    assert file.load() == (state(2), None)
    writer.save(state(3))
    assert writer.settle(0)
    assert file.load() == (state(2), None), "the end is the end"


def test_the_end_waits_no_longer_than_it_may(file: StallingFile) -> None:
    writer = StateWriter(file)
    writer.save(state(1))
    assert file.begun.wait(60)
    begun = time.monotonic()
    writer.close(0.2)
    assert time.monotonic() - begun < 30


def test_a_disk_that_does_not_answer_is_told(file: StallingFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_writer, "STALLED_SECONDS", 0.0)
    writer = StateWriter(file)
    assert writer.problem is None
    writer.save(state(1))
    assert file.begun.wait(60)
    assert writer.problem == f"the state file {file.path} can't be written: its disk does not answer"
    file.released.set()
    assert writer.settle(60)
    assert writer.problem is None
    writer.close(60)


def test_a_state_that_can_not_be_written_is_told_until_one_is(file: StallingFile) -> None:
    file.released.set()
    gone = file.path.parent.with_name("gone")
    file.path.parent.rename(gone)
    writer = StateWriter(file)
    writer.save(state(1))
    assert writer.settle(60)
    assert f"the state file {file.path} can't be written: " in str(writer.problem)
    gone.rename(file.path.parent)
    writer.save(state(2))
    assert writer.settle(60)
    assert writer.problem is None
    writer.close(60)
