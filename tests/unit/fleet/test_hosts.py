"""Decisions of the tool for throw-away hosts, without making any."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.hosts.fleet import allow_watches
from testbed.hosts.places import unused_number


def test_numbers_come_round_before_one_is_used_again(tmp_path: Path) -> None:
    given = [unused_number(set(), 4, last_given=tmp_path / "number") for _ in range(6)]
    assert given == [0, 1, 2, 3, 0, 1]


def test_a_number_that_is_taken_is_passed_over(tmp_path: Path) -> None:
    assert [unused_number({0, 2}, 4, last_given=tmp_path / "number") for _ in range(3)] == [1, 3, 1]


@pytest.mark.parametrize("written", ["", "nonsense"])
def test_a_file_that_was_not_written_to_its_end_is_as_good_as_none(tmp_path: Path, written: str) -> None:
    (tmp_path / "number").write_text(written)
    assert unused_number(set(), 4, last_given=tmp_path / "number") == 0
    assert unused_number(set(), 4, last_given=tmp_path / "number") == 1


def test_many_hosts_may_watch_their_files_and_a_higher_limit_stays(tmp_path: Path) -> None:
    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n")
    allow_watches(3, limit)
    assert limit.read_text() == "128\n"
    allow_watches(60, limit)
    assert limit.read_text() == "960"
    allow_watches(20, limit)
    assert limit.read_text() == "960"
