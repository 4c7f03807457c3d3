"""The topics on real log dirs, found by the real probe process."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest

from kquota.disks.probe import LogDirSampler
from kquota.guard.event_queue import readable
from kquota.policy.topic_scope import MAX_TOPICS
from tests.integration.waiting import eventually

ID = "0f" * 16


class LogDirs:
    """Two log dirs with a partition each, sampled; the topics of the first are asked for."""

    def __init__(self, directory: Path, interval_seconds: float) -> None:
        self.first, self.second = directory / "1", directory / "2"
        for path, partition in ((self.first, "a-0"), (self.second, "z-0")):
            (path / partition).mkdir(parents=True)
        self.sampler = LogDirSampler(
            [str(self.first), str(self.second)], interval_seconds=interval_seconds, hang_seconds=60
        )

    def topics(self, path: Path | None = None) -> tuple[str, ...] | None:
        return self.sampler.latest()[str(path or self.first)].topics

    def ask(self, *paths: Path) -> None:
        """Ask for the topics of these, with bands that are never left."""
        bands = {str(path): (-1, 1 << 62) for path in (self.first, self.second)}
        self.sampler.wake_at(bands, frozenset(map(str, paths)))

    def become(self, *topics: str) -> None:
        def are() -> bool:
            found = self.topics()
            self.ask(self.first)
            return found == topics

        eventually(are, f"the topics are {topics}")


@pytest.fixture
def log_dirs(tmp_path: Path) -> Iterator[LogDirs]:
    log_dirs = LogDirs(tmp_path, 0.05)
    with log_dirs.sampler:
        eventually(lambda: all(look.sampled_at_monotonic for look in log_dirs.sampler.latest().values()))
        yield log_dirs


def test_topics_are_named_of_log_dirs_that_are_asked_for_alone(log_dirs: LogDirs) -> None:
    log_dirs.ask()
    assert log_dirs.topics() is None
    log_dirs.become("a")
    assert log_dirs.topics(log_dirs.second) is None
    log_dirs.ask(log_dirs.second)
    eventually(lambda: log_dirs.topics(log_dirs.second) == ("z",), "those of the other one are there")
    assert log_dirs.topics() is None


@pytest.mark.parametrize(
    ("change", "topics"),
    [
        (lambda path: (path / "b-0").mkdir(), ("a", "b")),
        (lambda path: (path / f"b-0.{ID}-future").mkdir(), ("a", "b")),
        (lambda path: shutil.rmtree(path / "a-0"), ()),
        (lambda path: (path / "a-0").rename(path / f"a-0.{ID}-delete"), ()),
        (lambda path: (path / "a-0").rename(path / f"a-0.{ID}-stray"), ()),
    ],
)
def test_a_change_wakes_the_owner(
    log_dirs: LogDirs, change: Callable[[Path], object], topics: tuple[str, ...]
) -> None:
    log_dirs.become("a")
    assert not readable(0.0, log_dirs.sampler.alarm)
    change(log_dirs.first)
    eventually(lambda: readable(0.0, log_dirs.sampler.alarm), "the alarm goes off")
    assert log_dirs.topics() == topics
    assert not readable(0.0, log_dirs.sampler.alarm), "an answer ends the alarm"


def test_another_partition_of_a_topic_and_a_checkpoint_are_no_change_of_topics(log_dirs: LogDirs) -> None:
    log_dirs.become("a")
    (log_dirs.first / "a-1").mkdir()
    (log_dirs.first / "recovery-point-offset-checkpoint").touch()
    time.sleep(1.5)
    assert not readable(0.0, log_dirs.sampler.alarm)
    (log_dirs.first / "b-0").mkdir()
    log_dirs.become("a", "b")


def test_an_alarm_leaves_no_log_dir_listed_that_is_not_asked_for_any_more(log_dirs: LogDirs) -> None:
    log_dirs.become("a")
    (log_dirs.first / "b-0").mkdir()
    eventually(lambda: readable(0.0, log_dirs.sampler.alarm), "the alarm goes off")
    log_dirs.topics()
    log_dirs.sampler.wake_at({})
    assert log_dirs.topics() is None


def test_as_many_topics_as_a_record_may_have_are_named_and_one_more_is_too_many(log_dirs: LogDirs) -> None:
    names = [f"{number:0>240}" for number in range(MAX_TOPICS)]
    (log_dirs.first / "a-0").rmdir()
    for name in names:
        (log_dirs.first / f"{name}-0").mkdir()
    log_dirs.become(*names)
    (log_dirs.first / "one-more-0").mkdir()
    eventually(lambda: log_dirs.topics() is None, "not all are known")
    (log_dirs.first / "one-more-0").rmdir()
    log_dirs.become(*names)


def test_a_log_dir_that_is_gone_names_no_topics(log_dirs: LogDirs) -> None:
    log_dirs.become("a")
    log_dirs.first.rename(log_dirs.first.with_name("moved"))
    eventually(lambda: log_dirs.topics() is None, "they are not known")
    log_dirs.first.mkdir()
    log_dirs.become()


def test_the_owner_is_woken_before_it_would_ask(tmp_path: Path) -> None:
    interval_seconds = 1.0
    log_dirs, waited = LogDirs(tmp_path, interval_seconds), []
    with log_dirs.sampler:
        log_dirs.become("a")
        for number in range(5):
            (log_dirs.first / f"b{number}-0").mkdir()
            begun = time.monotonic()
            assert readable(60, log_dirs.sampler.alarm)
            waited.append(time.monotonic() - begun)
            log_dirs.topics()
            log_dirs.ask(log_dirs.first)
    # Two looks in an interval: half a one at most, and a quarter on average.
    assert median(waited) < 0.6 * interval_seconds


def processor_seconds(log_dirs: LogDirs) -> float:
    """The processor time that the probe process has used, by its own clock (see clock_getcpuclockid(3))."""
    process_id = log_dirs.sampler.process_id
    assert process_id is not None
    return time.clock_gettime((~process_id << 3) | 2)


def test_four_thousand_directories_cost_nothing_unless_they_are_asked_for_and_change(tmp_path: Path) -> None:
    log_dirs = LogDirs(tmp_path, 0.02)
    for number in range(4000):
        (log_dirs.first / f"topic-{number % 1000}-{number}").mkdir()
    topics = sorted(["a", *(f"topic-{number}" for number in range(1000))])

    open_seconds = unchanged_seconds = 0.0

    def used(seconds: float) -> float:
        before = processor_seconds(log_dirs)
        time.sleep(seconds)
        return processor_seconds(log_dirs) - before

    def nothing_is_asked_for() -> bool:
        log_dirs.ask()
        return log_dirs.topics() is None

    with log_dirs.sampler:
        eventually(lambda: log_dirs.sampler.latest()[str(log_dirs.first)].sampled_at_monotonic)
        log_dirs.become(*topics)
        time.sleep(1.5)
        # In turn, so that both find the machine equally busy.
        for _ in range(4):
            eventually(nothing_is_asked_for, "no topic is asked for")
            open_seconds += used(0.5)
            log_dirs.become(*topics)
            unchanged_seconds += used(0.5)
        begun = processor_seconds(log_dirs)
        for number in range(20):
            (log_dirs.first / f"more{number}-0").mkdir()
            topics = sorted([*topics, f"more{number}"])
            log_dirs.become(*topics)
        changing_seconds = processor_seconds(log_dirs) - begun
    print(
        f"\nprocessor time for 4,000 directories: {open_seconds / 2:.2%} of a core in OPEN, "
        f"{unchanged_seconds / 2:.2%} asked for, {changing_seconds / 20 * 1000:.1f} ms a change"
    )
    # A listing at each look would cost some thirty times as much.
    assert unchanged_seconds < 3 * open_seconds
    assert changing_seconds > open_seconds, "this would notice listings"
