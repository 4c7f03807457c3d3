"""Which streams may begin."""

from __future__ import annotations

import os
from pathlib import Path

from tools.streams.schedule import available_cores, hopeless, may_begin
from tools.streams.stream import Stream


def stream(name: str, cores: float = 1.0, after: tuple[str, ...] = ()) -> Stream:
    return Stream(name=name, command=("true",), cores=cores, after=after)


def names(streams: list[Stream]) -> list[str]:
    return [one.name for one in streams]


def test_as_many_begin_as_find_their_cores_free_and_a_small_one_fills_the_gap() -> None:
    waiting = [stream("a", 1.3), stream("b", 1.0), stream("c", 0.7)]
    assert names(may_begin(waiting, [], 2.0)) == ["a", "c"]
    assert names(may_begin(waiting[1:], [waiting[0]], 2.0)) == ["c"]
    assert names(may_begin(waiting[1:], [], 2.0)) == ["b", "c"]
    assert names(may_begin(waiting, [], 8.0)) == ["a", "b", "c"]


def test_one_that_wants_more_than_there_is_runs_alone() -> None:
    waiting = [stream("large", 1.5), stream("small", 0.5)]
    assert names(may_begin(waiting, [], 1.0)) == ["large"]
    assert names(may_begin(waiting[:1], [waiting[1]], 1.0)) == []


def test_one_waits_for_those_it_comes_after_as_far_as_they_are_run() -> None:
    first, second = stream("first", 0.1), stream("second", 0.1, after=("first", "never run"))
    assert names(may_begin([first, second], [], 2.0)) == ["first"]
    assert names(may_begin([second], [first], 2.0)) == []
    assert names(may_begin([second], [], 2.0)) == ["second"]


def test_what_comes_after_a_failure_is_hopeless_and_so_is_what_comes_after_that() -> None:
    waiting = [stream("third", after=("second",)), stream("second", after=("first",)), stream("other")]
    assert sorted(names(hopeless(waiting, {"first"}))) == ["second", "third"]
    assert hopeless(waiting, {"other"}) == []


def test_a_limit_of_processor_time_counts_for_fewer_cores(tmp_path: Path) -> None:
    all_of_them = len(os.sched_getaffinity(0))
    assert available_cores(tmp_path) == all_of_them
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert available_cores(tmp_path) == all_of_them
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert available_cores(tmp_path) == 0.5
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1\n")
    assert available_cores(tmp_path) == all_of_them
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("75000\n")
    assert available_cores(tmp_path) == 0.75
