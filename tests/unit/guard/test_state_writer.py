"""The agent's memory reaches its file, and no cycle waits for its disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.guard import state_writer
from kquota.guard.agent_state import ActiveBrokers, AgentState, AgentStateFile
from kquota.guard.state_writer import StateWriter
from tests.integration.waiting import eventually
from tests.unit.guard.cycles import START
from tests.unit.wording import say


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
    assert writer.problem == say("state-file-stalled", path=file.path)
    file.released.set()
    assert writer.settle(60)
    assert writer.problem is None
    writer.close(60)


@pytest.fixture
def unwritable(file: StallingFile) -> Iterator[Path]:
    """Where the directory of the state file is meanwhile; `repair` brings it back."""
    file.released.set()
    gone = file.path.parent.with_name("gone")
    file.path.parent.rename(gone)
    yield gone
    if gone.exists():
        gone.rename(file.path.parent)


def repair(file: StallingFile, gone: Path) -> None:
    gone.rename(file.path.parent)


@pytest.mark.accepts("F57")
def test_a_state_that_can_not_be_written_is_told_until_one_is(file: StallingFile, unwritable: Path) -> None:
    writer = StateWriter(file)
    writer.save(state(1))
    assert not writer.settle(60), "it is not in the file"
    assert f"the state file {file.path} can't be written: " in str(writer.problem)
    assert (writer.drain_failures(), writer.drain_failures()) == (1, 0)
    repair(file, unwritable)
    writer.save(state(2))
    assert writer.settle(60)
    assert writer.problem is None
    writer.close(60)


@pytest.mark.accepts("F57")
def test_a_state_that_could_not_be_written_is_tried_again_until_it_is(
    file: StallingFile, unwritable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_writer, "RETRY_SECONDS", 0.01)
    writer = StateWriter(file)
    writer.save(state(1))
    writer.save(state(1, 2))
    eventually(lambda: file.saved.count(state(1, 2)) > 2, "it goes on trying")
    repair(file, unwritable)
    eventually(lambda: writer.settle(0), "the newest one is written, though no other one comes")
    assert file.load() == (state(1, 2), None)
    assert writer.problem is None
    tries = len(file.saved)
    writer.close(60)
    assert len(file.saved) == tries, "once is enough"


@pytest.mark.accepts("F57")
def test_the_end_tries_once_more_what_could_not_be_written(file: StallingFile, unwritable: Path) -> None:
    writer = StateWriter(file)
    writer.save(state(1))
    assert not writer.settle(60)
    repair(file, unwritable)
    writer.close(60)
    assert file.load() == (state(1), None)
