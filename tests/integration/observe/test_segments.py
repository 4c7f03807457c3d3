"""The look at segments as a process of its own: its answer, its budget, and its ends."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from kquota.disks.segment_scan import SegmentLook
from kquota.disks.segments import PartitionState
from tests.integration.observe.test_topic_growth import program
from tests.unit.disks.test_segment_scan_process import ID, segment


def test_partitions_come_one_by_one_with_their_segments(tmp_path: Path) -> None:
    for base in (0, 100):
        segment(tmp_path / "a-0", base, entries=[(base + 5, 1)])
    segment(tmp_path / f"b-0.{ID}-stray", 0, entries=[(7, 1)])
    with SegmentLook([str(tmp_path)], files_per_second=0) as look:
        first, second = look.partitions()
    assert (look.topics, look.problem, look.files) == (("a", "b"), None, 6)
    assert (first.topic, first.log_dir, first.state) == ("a", str(tmp_path), PartitionState.LOG)
    assert [(one.base_offset, one.newest_ms, one.is_active) for one in first.segments] == [
        (0, 5, False),
        (100, 105, True),
    ]
    assert (second.state, [one.is_active for one in second.segments]) == (PartitionState.STRAY, [False])


def test_a_budget_of_files_is_kept_by_a_process_that_gives_way(tmp_path: Path) -> None:
    for number in range(40):
        segment(tmp_path / f"a-{number}", 0, entries=[(5, 1)])
    begun = time.monotonic()
    with SegmentLook([str(tmp_path)], files_per_second=40) as look:
        partitions = look.partitions()
        next(partitions)
        # At once: two seconds later it has ended.
        process = psutil.Process(look.process_id)
        assert (process.nice(), process.ionice().ioclass) == (19, psutil.IOPRIO_CLASS_IDLE)
        assert sum(1 for _ in partitions) == 39
    assert time.monotonic() - begun >= 80 / 40 - 0.5


def test_a_process_that_dies_or_a_log_dir_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    with SegmentLook([str(tmp_path / "gone")]) as look:
        assert list(look.partitions()) == []
    assert look.problem == f"{tmp_path / 'gone'}: No such file or directory"
    for number in range(40):
        segment(tmp_path / f"a-{number}", 0, entries=[(5, 1)])
    with SegmentLook([str(tmp_path)], files_per_second=4) as look:
        partitions = look.partitions()
        next(partitions)
        os.kill(look.process_id, 9)
        list(partitions)
    assert look.problem == "the look at the segments ended with -9"


def test_a_process_that_a_disk_holds_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, "exec sleep 600"))
    with SegmentLook([str(tmp_path)], silence_seconds=1.0) as look:
        assert list(look.partitions()) == []
        held = look.process_id
    assert look.problem == "the disk does not answer"
    assert not Path(f"/proc/{held}").exists()


@pytest.mark.parametrize(
    "said", ["nothing", "[[1]]", "7", '{"a": 1}', '[0, "t", 0, "odd", 0, 0, null, null, []]']
)
def test_an_answer_that_makes_no_sense_is_the_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, f"echo '{said}'"))
    with SegmentLook([str(tmp_path)]) as look:
        assert list(look.partitions()) == []
    assert look.problem == "the look at the segments gave an answer that can't be read"
