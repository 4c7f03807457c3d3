"""A process that goes on growing leaks; one that settles does not."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from bench.soak.growth import Sample, growth

STEADY = [30] * 9


def leaks(memory_mib: list[int], descriptors: list[int], threads: list[int]) -> list[str]:
    samples = [Sample(m * 2**20, d, t) for m, d, t in zip(memory_mib, descriptors, threads, strict=True)]
    return growth("agent 1", samples).leaks


def test_what_settles_is_no_leak() -> None:
    assert leaks([60, 80, 95, 100, 101, 102, 101, 103, 102], STEADY, STEADY) == []


def test_what_goes_on_growing_is_a_leak() -> None:
    growing = [30, 40, 50, 60, 70, 80, 90, 100, 110]
    assert leaks([100, 150, 200, 250, 300, 350, 400, 450, 500], STEADY, STEADY) == [
        "memory went from 300 to 450 MiB"
    ]
    assert leaks([100] * 9, growing, STEADY) == ["descriptors went from 70 to 100"]
    assert leaks([100] * 9, STEADY, growing) == ["threads went from 70 to 100"]


def test_a_segment_counts_only_where_it_is_deleted_and_open(tmp_path: Path) -> None:
    segments = [tmp_path / f"{number}.log" for number in range(20)]
    with ExitStack() as stack:
        before = Sample.of(os.getpid()).descriptors
        for path in segments:
            stack.enter_context(path.open("wb"))
        assert Sample.of(os.getpid()).descriptors == before
        for path in segments:
            path.unlink()
        assert Sample.of(os.getpid()).descriptors == before + len(segments)


def test_a_campaign_of_one_step_is_compared_with_itself() -> None:
    assert growth("agent 1", [Sample(1, 2, 3)]).leaks == []
