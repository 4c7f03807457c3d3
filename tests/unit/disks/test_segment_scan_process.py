"""The look at segments: the segments that the program finds in log dirs, and its budget of files."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks import segment_scan_process as segments_process
from kquota.disks.segment_scan_process import Look, main, partition_of

ID = "0f" * 16
BLOCK = b"x" * 4096
ENTRIES = st.lists(st.tuples(st.integers(1, 2**62), st.integers(0, 2**31 - 1)), max_size=40)


def segment(
    directory: Path, base: int, *, entries: list[tuple[int, int]], index_entries: int = 0, blocks: int = 1
) -> Path:
    """Write a segment with a time index of these entries, and room for more."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{base:020}.log"
    log.write_bytes(BLOCK * blocks)
    index = b"".join(struct.pack(">qi", *entry) for entry in entries)
    with log.with_suffix(".timeindex").open("wb") as file:
        file.write(index)
        file.truncate(max(len(index), index_entries * 12))
    return log


def blocks_bytes(*files: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in files)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.b_c-12", ("a.b_c", 12, "log")),
        (f"a-b-0.{ID}-future", ("a-b", 0, "future")),
        (f"a-0.{ID}-stray", ("a", 0, "stray")),
        (f"a-0.{ID}-delete", ("a", 0, "deleted")),
        ("a-0.0f-delete", None),
        ("__cluster_metadata-0", None),
        ("lost+found", None),
        ("recovery-point-offset-checkpoint", None),
        ("a-future", None),
    ],
)
def test_a_directory_s_name_says_what_it_is(name: str, expected: tuple[str, int, str] | None) -> None:
    assert partition_of(name) == expected


@given(entries=ENTRIES, room=st.integers(0, 2000))
def test_the_largest_timestamp_is_the_last_entry_that_is_not_empty(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int]], room: int
) -> None:
    log = segment(tmp_path_factory.mktemp("d"), 0, entries=entries, index_entries=len(entries) + room)
    os.utime(log, (7, 7))
    _, _, found = Look(0).partition(str(log.parent))
    assert found[0][2] == (entries[-1][0] if entries else 7000)


def test_a_segment_without_timestamps_or_without_an_index_has_the_time_of_its_last_change(
    tmp_path: Path,
) -> None:
    without = segment(tmp_path, 0, entries=[])
    without.with_suffix(".timeindex").unlink()
    older = segment(tmp_path, 5, entries=[(-1, 0)])
    for log in (without, older):
        os.utime(log, (3.5, 3.5))
    assert [one[2] for one in Look(0).partition(str(tmp_path))[2]] == [3500, 3500]


def test_all_files_count_where_they_belong(tmp_path: Path) -> None:
    log = segment(tmp_path, 10, entries=[(5, 1)], blocks=3)
    for suffix in (".index", ".txnindex", ".snapshot"):
        log.with_suffix(suffix).write_bytes(BLOCK)
    removed = tmp_path / f"{0:020}.log.deleted"
    removed.write_bytes(BLOCK * 7)
    others = [tmp_path / name for name in ("partition.metadata", f"{9:020}.index", "x" * 20 + ".log")]
    for number, other in enumerate(others):
        other.write_bytes(BLOCK * (number + 1))
    look = Look(0)
    removed_bytes, other_bytes, segments = look.partition(str(tmp_path))
    files = [log.with_suffix(suffix) for suffix in segments_process.SEGMENT_FILES]
    assert segments == [(10, blocks_bytes(*files), 5, 3 * 4096)]
    assert (removed_bytes, other_bytes) == (blocks_bytes(removed), blocks_bytes(*others))
    assert look.files == 9


def test_an_index_that_may_not_be_read_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = segment(tmp_path, 0, entries=[(5, 1)])
    os.utime(log, (3, 3))
    opened = os.open

    def denied(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith(".timeindex"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(segments_process.os, "open", denied)
    look = Look(0)
    assert look.partition(str(tmp_path))[2][0][2] == 3000
    assert look.unreadable == 1


def lines(
    log_dirs: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[Any]:
    monkeypatch.setattr(sys, "argv", ["segments_process", "0", *map(str, log_dirs)])
    main()
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_it_writes_the_topics_then_each_partition_then_how_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    log = segment(first / "b-1", 7, entries=[(5, 1)])
    segment(second / "a-0", 0, entries=[(6, 1)])
    (second / f"gone-0.{ID}-delete").mkdir()
    (second / "lost+found").mkdir()
    (first / "log-start-offset-checkpoint").write_text("0\n1\nb 1 7\n")
    (first / "replication-offset-checkpoint").write_text("0\n2\nb 1 9\nelsewhere 0 4\n")
    (second / "recovery-point-offset-checkpoint").write_text("0\n1\na 0 3\n")
    topics, of_b, of_a, of_gone, end = lines([first, second], monkeypatch, capsys)
    size = blocks_bytes(log, log.with_suffix(".timeindex"))
    assert topics == ["a", "b", "gone"]
    assert of_b == [0, "b", 1, "log", 0, 0, 7, 9, [[7, size, 5, 4096]]]
    assert of_a[:8] == [1, "a", 0, "log", 0, of_a[5], None, None]
    assert of_gone == [1, "gone", 0, "deleted", 0, 0, None, None, []]
    assert end == [4, 0]


def test_watermarks_are_read_again_while_a_look_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        segment(tmp_path / f"a-{number}", 0, entries=[(5, 1)])
    now, listed = [100.0], Look.partition
    monkeypatch.setattr(segments_process.time, "monotonic", lambda: now[0])

    def listing(look: Look, path: str) -> Any:
        """Each takes four seconds, in which Kafka writes its checkpoint."""
        now[0] += 4.0
        marks = "\n".join(f"a {number} {now[0]:.0f}" for number in range(3))
        (tmp_path / "replication-offset-checkpoint").write_text(f"0\n3\n{marks}\n")
        return listed(look, path)

    monkeypatch.setattr(Look, "partition", listing)
    assert [line[7] for line in lines([tmp_path], monkeypatch, capsys)[1:-1]] == [104, 104, 112]


def test_a_log_dir_that_is_gone_is_the_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    assert lines([gone], monkeypatch, capsys) == [{"problem": f"{gone}: No such file or directory"}]


def test_no_more_files_than_allowed_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(segments_process.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(segments_process.time, "sleep", sleep)
    look = Look(100)
    for _ in range(200):  # 10 files each, in no time
        look.files += 10
        look.rest()
    assert now[0] == pytest.approx(120.0, abs=segments_process.REST_SECONDS)
    assert min(slept) >= segments_process.REST_SECONDS
    # Where the disk is slower than that, nothing is saved up for later.
    now[0] += 1000.0
    look.rest()
    look.files += 100
    look.rest()
    assert slept[-1] == pytest.approx(1.0)


def test_an_active_segment_that_is_preallocated_has_the_bytes_that_are_written(tmp_path: Path) -> None:
    closed = segment(tmp_path, 0, entries=[(1, 1)])
    active = segment(tmp_path, 5, entries=[(2, 1)])
    os.truncate(active, 2**23)
    _, _, found = Look(0).partition(str(tmp_path))
    assert [one[3] for one in found] == [closed.stat().st_size, blocks_bytes(active)]
    assert found[1][3] < 2**23
