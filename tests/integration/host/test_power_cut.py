"""The agent's files on a disk that forgets in a power cut what was not synced."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.guard.agent_state import AgentStateFile
from kquota.guard.decision_file import read
from kquota.host.safe_read import Refusal
from tests.integration.host.forgetful_disk import ForgetfulDisk

HERE = Path(__file__).parent


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[ForgetfulDisk]:
    one = ForgetfulDisk(tmp_path / "disk")
    yield one
    one.take_down()


def test_the_disk_forgets_what_was_not_synced_and_keeps_what_was(disk: ForgetfulDisk) -> None:
    kept, forgotten = disk.path / "kept", disk.path / "forgotten"
    kept.write_bytes(b"first")
    with kept.open("rb") as file:
        os.fsync(file.fileno())
    handle = os.open(disk.path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(handle)
    os.close(handle)
    kept.write_bytes(b"second")
    forgotten.write_bytes(b"x")
    assert (kept.read_bytes(), forgotten.exists()) == (b"second", True)
    disk.cut_power()
    assert (kept.read_bytes(), forgotten.exists()) == (b"first", False)


def save_until_killed(disk: ForgetfulDisk, first: int, seconds: float) -> int:
    """Have a process save both files from this number on, kill it, and return the last that it had saved."""
    writer = subprocess.Popen(
        [sys.executable, HERE / "saving_child.py", disk.path, str(first)], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    saved = int(writer.stdout.readline())
    time.sleep(seconds)
    writer.kill()
    lines = writer.communicate()[0].split()
    return int(lines[-1]) if lines else saved


@pytest.mark.accepts("F44", "F20")
@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=pytest.mark.long)])
def test_after_a_power_cut_each_file_is_the_old_one_or_the_new_one(disk: ForgetfulDisk, rounds: int) -> None:
    chance, last = random.Random(rounds), 0
    for turn in range(rounds):
        last = save_until_killed(disk, last + 1, chance.uniform(0, 0.05))
        disk.cut_power(turn)
        decision = read(disk.path / "decision.json")
        assert not isinstance(decision, Refusal), f"torn: {decision}"
        assert decision["sequence"] in (last, last + 1), "what was reported as written is there"
        state, defect = AgentStateFile(disk.path / "state.json").load()
        assert defect is None
        assert state.signing_counter in (last, last + 1), "no counter is used twice"
        last += 1
