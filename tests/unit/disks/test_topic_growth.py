"""Which topics grow: how much each has grown, and how it is put."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kquota.disks import topic_growth
from kquota.disks.topic_growth import TopicGrowth, main, sizes_by_topic

BLOCK = b"x" * 4096


def partition(log_dir: Path, name: str, *, blocks: int = 1) -> Path:
    (log_dir / name).mkdir(parents=True)
    (log_dir / name / "00000000000000000000.log").write_bytes(BLOCK * blocks)
    return log_dir / name


@pytest.mark.parametrize(
    ("growth", "text"),
    [
        (TopicGrowth(), "no topic on it grows: look for files that are not Kafka's"),
        (TopicGrowth(problem="why"), "its topics can't be looked at (why)"),
        (
            TopicGrowth((("b", 10_000_000), ("a", 250_000))),
            "topics that grow: b (2.0 MB/s), a (0.1 MB/s)",
        ),
    ],
)
def test_what_it_says(growth: TopicGrowth, text: str) -> None:
    assert str(growth) == text


def test_sizes_are_added_up_by_topic_over_all_log_dirs(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    partition(first, "a.b_c-0", blocks=1)
    partition(first, "a.b_c-1", blocks=2)
    (partition(second, "a.b_c-12", blocks=4) / "00000000000000000000.index").write_bytes(BLOCK)
    partition(second, f"moving-0.{'0f' * 16}-future", blocks=8)
    for other in ("__cluster_metadata", "a-0.delete", "-x", "a-0.0f-future"):
        partition(second, other)
    (second / "a-7").write_bytes(BLOCK)
    (second / "linked-0").symlink_to(first / "a.b_c-0")
    assert sizes_by_topic([str(first), str(second)]) == {"a.b_c": 8 * 4096, "moving": 8 * 4096}


def test_what_grew_within_the_span_is_printed_most_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    grown = {f"t{number}": number for number in range(1, 8)}
    for topic in grown:
        partition(tmp_path, f"{topic}-0")
    partition(tmp_path, "shrinks-0", blocks=4)
    monkeypatch.setattr(sys, "argv", ["topic_growth", str(tmp_path)])

    def grow(seconds: float) -> None:
        assert seconds == topic_growth.SPAN_SECONDS
        for topic, blocks in grown.items():
            (tmp_path / f"{topic}-0" / "more.log").write_bytes(BLOCK * blocks)
        (tmp_path / "shrinks-0" / "00000000000000000000.log").unlink()

    monkeypatch.setattr(topic_growth.time, "sleep", grow)
    main()
    said = json.loads(capsys.readouterr().out)
    assert said["problem"] is None
    assert list(said["grown_bytes"].items()) == [(f"t{number}", number * 4096) for number in (7, 6, 5, 4, 3)]


def test_a_link_in_a_partition_counts_as_the_link_alone(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(BLOCK * 8)
    link = partition(tmp_path / "1", "a-0", blocks=1) / "link"
    link.symlink_to(large)
    assert sizes_by_topic([str(tmp_path / "1")]) == {"a": 4096 + link.lstat().st_blocks * 512}


def test_a_partition_that_is_deleted_meanwhile_has_no_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a-0", "b-0"):
        partition(tmp_path, name)
    scandir = os.scandir

    def deleted_meanwhile(path: str) -> Any:
        if path.endswith("a-0"):
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr("kquota.disks.topic_growth.os.scandir", deleted_meanwhile)
    assert sizes_by_topic([str(tmp_path)]) == {"a": 0, "b": 4096}


def test_a_problem_is_printed_with_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["topic_growth", str(tmp_path / "missing")])
    main()
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"grown_bytes": {}, "problem": f"{tmp_path / 'missing'}: No such file or directory"}
