"""The sampler's results from the probe's answers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from kquota.disks import probe_process
from kquota.disks.probe import LogDirLook, LogDirSampler
from tests.integration.waiting import eventually

# Answers each question with the present content of the file.
PROBE = """
import os, sys
while os.read(0, 1):
    with open({answer!r}) as file:
        os.write(1, file.read().encode())
"""
UUID_TEXT = "0ab1c2d3-0000-4000-8000-000000000001"
GOOD = f"0 0 5500000000 - 0 29 1000 400 64 32 13 {UUID(UUID_TEXT).hex} 2065 77 78 1 - ="
NEW = "0 0 0 - 0 0 0 0 0 0 0 - 0 0 - - - ="
LOOK = LogDirLook(
    "/data/1",
    sampled_at_monotonic=5.5,
    mount_id=29,
    capacity_bytes=1000,
    available_bytes=400,
    inodes=64,
    available_inodes=32,
    list_errno=13,
    fs_uuid=UUID_TEXT,
    device=2065,
    inode=77,
    lock_inode=78,
    formatted=True,
)
Say = Callable[..., None]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """The probe's answers from now on, line by line."""
    answer, program = tmp_path / "answer", tmp_path / "probe.py"
    program.write_text(PROBE.format(answer=str(answer)))
    monkeypatch.setattr(probe_process, "__file__", str(program))

    def write(*lines: str) -> None:
        replacement = tmp_path / "next"
        replacement.write_text("".join(f"{line}\n" for line in (*lines, "end")))
        replacement.rename(answer)

    write(NEW)
    return write


@pytest.fixture
def sampler(say: Say) -> Iterator[LogDirSampler]:
    with LogDirSampler(["/data/1"], interval_seconds=0.1, hang_seconds=60) as started:
        yield started


def becomes(sampler: LogDirSampler, look: LogDirLook) -> bool:
    return bool(eventually(lambda: sampler.latest()["/data/1"] == look, f"the look is {look}"))


def test_a_look_is_what_the_probe_said(say: Say, sampler: LogDirSampler) -> None:
    assert sampler.latest() == {"/data/1": LogDirLook("/data/1")}
    say(GOOD)
    assert becomes(sampler, LOOK)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            "0 6 5500000000 - 0 29 1000 400 64 32 0 - 2065 77 78 - - =",
            {"waiting_seconds": 6 * probe_process.TICK_SECONDS},
        ),
        (
            "0 0 5500000000 statvfs 5 29 1000 400 64 32 0 - 2065 77 78 - - =",
            {"failed_step": "statvfs", "failed_errno": 5},
        ),
        ("0 0 5500000000 - 0 29 1000 400 64 32 0 - 2065 77 78 0 a-0 =", {"formatted": False, "link": "a-0"}),
    ],
)
def test_what_the_probe_does_not_know_is_not_known(
    say: Say, sampler: LogDirSampler, line: str, fields: dict[str, object]
) -> None:
    say(line)
    known = {"sampled_at_monotonic": 5.5, "mount_id": 29, "capacity_bytes": 1000, "available_bytes": 400}
    known |= {"inodes": 64, "available_inodes": 32, "device": 2065, "inode": 77, "lock_inode": 78}
    assert becomes(sampler, LogDirLook("/data/1", **(known | fields)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "line", "fields"),
    [
        # a new process that waits or has not begun knows no better than the one before
        (GOOD, NEW, {}),
        (
            "0 8 5500000000 - 0 29 1000 400 64 32 13 - 2065 77 78 1 - =",
            NEW,
            {"fs_uuid": None, "waiting_seconds": 2.0},
        ),
        (GOOD, "0 4 0 - 0 0 0 0 0 0 0 - 0 0 - - - =", {"waiting_seconds": 1.0}),
        (
            "0 0 5500000000 open 2 29 1000 400 64 32 13 - 2065 77 78 1 - =",
            NEW,
            {"fs_uuid": None, "failed_step": "open", "failed_errno": 2},
        ),
        # its findings count
        (GOOD, "0 0 0 open 2 0 0 0 0 0 0 - 0 0 - - - =", {"failed_step": "open", "failed_errno": 2}),
        (
            "0 8 5500000000 - 0 29 1000 400 64 32 13 - 2065 77 78 1 - =",
            "0 0 0 open 2 0 0 0 0 0 0 - 0 0 - - - =",
            {"fs_uuid": None, "failed_step": "open", "failed_errno": 2},
        ),
    ],
)
def test_what_a_new_process_has_not_found_out_stays_as_it_was(
    say: Say, sampler: LogDirSampler, before: str, line: str, fields: dict[str, object]
) -> None:
    say(before)
    eventually(lambda: sampler.latest()["/data/1"].sampled_at_monotonic == 5.5, "the first look is there")
    say(line)
    known = {name: getattr(LOOK, name) for name in LOOK.__slots__}
    assert becomes(sampler, LogDirLook(**(known | fields)))  # type: ignore[arg-type]


@pytest.mark.parametrize("line", [GOOD, NEW])
def test_topics_are_those_of_the_last_answer_that_had_any(
    say: Say, sampler: LogDirSampler, line: str
) -> None:
    def topics_of(field: str) -> object:
        said = f"{line[:-1]}{field}"
        say(said)
        before = read.count(said)
        eventually(lambda: sampler.latest() and read.count(said) > before + 1, "it was read")
        return sampler.latest()["/data/1"].topics

    read: list[str] = []
    take = sampler._take

    def note(answer: bytes) -> None:
        read.extend(answer.decode().splitlines())
        take(answer)

    sampler._take = note  # type: ignore[method-assign]
    fields = ["=", ":a,b.c_D-1", "=", ":", "=", ":now", "-", "=", ":end", "="]
    expected = [None, ("a", "b.c_D-1"), ("a", "b.c_D-1"), (), (), ("now",), None, None, ("end",), ("end",)]
    assert [topics_of(field) for field in fields] == expected


def test_a_new_process_knows_no_topics(say: Say, sampler: LogDirSampler) -> None:
    say(f"{GOOD[:-1]}:a")
    eventually(lambda: sampler.latest()["/data/1"].topics == ("a",), "there is a topic")
    say(GOOD)
    sampler.replace()
    assert sampler.latest()["/data/1"].topics is None


def test_each_line_is_for_its_log_dir(say: Say) -> None:
    with LogDirSampler(["/data/1", "/data/2"], interval_seconds=0.1, hang_seconds=60) as sampler:
        say(NEW, GOOD)
        eventually(lambda: sampler.latest()["/data/2"].capacity_bytes == 1000, "the second look is there")
        assert sampler.latest()["/data/1"] == LogDirLook("/data/1")
        assert list(sampler.latest()) == ["/data/1", "/data/2"]


def test_the_probe_is_told_the_interval_and_the_log_dirs(say: Say, sampler: LogDirSampler) -> None:
    process = Path(f"/proc/{sampler.process_id}")
    words = [b"-I", b"-S", probe_process.__file__.encode(), b"0.1", b"/data/1"]
    eventually(lambda: process.joinpath("cmdline").read_bytes().split(b"\0")[1:-1] == words, "it gets them")
    assert process.joinpath("cwd").readlink() == Path("/")
    assert os.getsid(sampler.process_id or 0) == sampler.process_id


def test_start_does_nothing_while_there_is_a_process(sampler: LogDirSampler) -> None:
    first = sampler.process_id
    sampler.start()
    assert sampler.process_id == first
    assert sampler.restarts == 0


def test_a_process_can_be_replaced_unless_too_many_are_left_behind(say: Say) -> None:
    with LogDirSampler(["/data/1"], interval_seconds=0.1, hang_seconds=60, abandoned_limit=2) as sampler:
        first = sampler.process_id
        eventually(lambda: sampler.latest() is not None, "it answers")
        sampler.replace()
        eventually(
            lambda: sampler.latest() and sampler.process_id not in (None, first), "there is another one"
        )
        eventually(lambda: sampler.abandoned == 0, "the former one is gone")
    with LogDirSampler(["/data/1"], interval_seconds=0.1, hang_seconds=60, abandoned_limit=1) as sampler:
        first = sampler.process_id
        sampler.replace()
        assert sampler.process_id == first


def test_silence_is_told_when_it_has_lasted_and_was_looked_at_often_enough(say: Say) -> None:
    with LogDirSampler(["/data/1"], interval_seconds=0.1, hang_seconds=0.5) as sampler:
        say(GOOD)
        eventually(lambda: sampler.latest()["/data/1"].capacity_bytes, "it answers")
        assert sampler.silence is None
        os.kill(sampler.process_id or 0, signal.SIGSTOP)
        sampler.latest()
        sampler.latest()
        assert sampler.silence is None, "two looks without an answer are no silence"
        eventually(lambda: sampler.latest() and sampler.silence, "the silence is reported")
        assert sampler.silence == "the probe process has not answered for 0.5 s"
        assert json.dumps(sampler.latest()["/data/1"].capacity_bytes) == "1000", "the last figures stay"
        eventually(lambda: sampler.latest() and sampler.silence is None, "another process answers")


@pytest.mark.parametrize(("interval", "hang"), [(0.0, 5.0), (0.2, 0.0)])
def test_times_of_nothing_are_refused_with_their_values(interval: float, hang: float) -> None:
    with pytest.raises(ValueError) as refused:
        LogDirSampler([], interval_seconds=interval, hang_seconds=hang)
    assert str(refused.value) == f"interval ({interval} s) and hang ({hang} s) must be above 0"
