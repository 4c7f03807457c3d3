"""When a topic has been read to where it ended."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kquota.kafka.progress import ReadingProgress


def test_a_partition_has_caught_up_when_its_position_reaches_the_end_it_had() -> None:
    progress = ReadingProgress()
    assert progress.begin({0, 1}) == {0, 1}
    assert progress.ends_unknown() == {0, 1}
    progress.end_is(0, 3)
    progress.read(0, 1)
    assert progress.behind == {0, 1}
    progress.read(0, 2)
    assert progress.behind == {1}
    # The end may grow for ever: the first answer counts.
    progress.read(1, 4)
    progress.end_is(1, 5)
    progress.end_is(1, 500)
    assert progress.behind == frozenset()


def test_gaps_before_the_end_are_bridged_by_the_brokers_word() -> None:
    progress = ReadingProgress()
    progress.begin({0})
    progress.end_is(0, 100)
    progress.read(0, 96)
    assert progress.behind == {0}
    progress.reached_end(0, 100)
    assert progress.behind == frozenset()
    assert progress.positions == {0: 100}


def test_an_empty_partition_counts_only_when_the_broker_has_let_us_read_it() -> None:
    progress = ReadingProgress()
    progress.begin({0})
    progress.end_is(0, 0)
    assert progress.behind == {0}
    progress.reached_end(0, 0)
    assert progress.behind == frozenset()


def test_new_partitions_are_behind_and_others_are_not_asked_about() -> None:
    progress = ReadingProgress()
    progress.begin({0})
    progress.reached_end(0, 0)
    assert progress.begin({0, 1}) == {1}
    assert progress.behind == {1}
    progress.end_is(7, 0)
    progress.read(7, 3)
    progress.reached_end(7, 3)
    assert progress.positions == {0: 0}


def test_a_restart_forgets_everything() -> None:
    progress = ReadingProgress()
    progress.begin({0})
    progress.end_is(0, 1)
    progress.read(0, 0)
    progress.restart()
    assert (progress.positions, progress.partitions, progress.behind) == ({}, frozenset(), frozenset())
    progress.begin({0})
    assert progress.behind == progress.ends_unknown() == {0}


@given(st.integers(1, 50), st.sets(st.integers(0, 49)), st.integers(0, 60))
def test_never_caught_up_before_the_last_record_below_the_end(
    end: int, offsets: set[int], asked_after: int
) -> None:
    """For any compacted records, and any time of learning the end."""
    progress = ReadingProgress()
    progress.begin({0})
    below = sorted(offset for offset in offsets if offset < end)
    for number, offset in enumerate(below):
        if number == asked_after:
            progress.end_is(0, end)
        assert progress.behind == {0}
        progress.read(0, offset)
    progress.end_is(0, end)
    assert (progress.behind == frozenset()) == (bool(below) and below[-1] == end - 1)
    progress.reached_end(0, end)
    assert progress.behind == frozenset()
