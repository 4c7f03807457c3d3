"""The topics of a log dir: which names of directories count, and when the directory is listed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks import topic_list
from kquota.disks.topic_list import PATIENCE_TICKS, TopicList, topic_of, topics_of

ID = "0f" * 16
NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)
PARTITIONS = st.integers(0, 2**31 - 1)


def cut(topic: str, suffix: str) -> str:
    """The name as Kafka shortens it where it would be longer than a file system allows."""
    return topic[: 255 - len(suffix)] + suffix


@given(NAMES, PARTITIONS)
def test_a_partition_s_directory_has_the_name_of_its_topic(topic: str, partition: int) -> None:
    assert topic_of(f"{topic}-{partition}") == topic


@given(NAMES, PARTITIONS)
def test_a_future_directory_has_it_too_unless_it_may_be_cut_short(topic: str, partition: int) -> None:
    name = cut(topic, f"-{partition}.{ID}-future")
    expected = topic if len(name) < 255 else ""
    assert topic_of(name) == expected
    assert topics_of([name], 1) == ((topic,) if expected else None)


@pytest.mark.parametrize(("length", "named"), [(212, True), (213, False), (249, False)])
def test_a_future_directory_s_name_of_255_characters_may_be_cut_short(length: int, named: bool) -> None:
    topic = "x" * length
    assert topics_of([cut(topic, f"-0.{ID}-future")], 10) == ((topic,) if named else None)


@given(NAMES, PARTITIONS, st.sampled_from(["-delete", "-stray"]))
def test_to_what_is_to_be_deleted_nothing_is_appended(topic: str, partition: int, suffix: str) -> None:
    name = cut(topic, f"-{partition}.{ID}{suffix}")
    assert topic_of(name) == ""
    assert topics_of([name, "a-0"], 1) == ("a",)


@given(st.text(max_size=300))
def test_any_other_name_gives_no_topic_or_a_possible_one(name: str) -> None:
    topic = topic_of(name)
    assert topic == "" or set(topic) <= set(topic_list.TOPIC_CHARACTERS)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "lost+found",
        ".lock",
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "remote-log-index-cache",
        "__cluster_metadata-0",
        "a",
        "-0",
        "a-",
        "a-b",
        "a-0b",
        "a-0X",
        "a-0.delete",
        "a-²",
        "a b-0",
        "a\nb-0",
        "é-0",
        "a,b-0",
        f"{'x' * 250}-0",
    ],
)
def test_what_is_no_partition_is_ignored(name: str) -> None:
    assert topics_of([name, "b-0"], 1) == ("b",)


@pytest.mark.parametrize(
    "name",
    [
        "-future",
        "a-future",
        "a-0-future",
        f"a-0.{ID[:-1]}-future",
        f"a-0.{ID}0-future",
        f"a-0.{ID[:-1]}g-future",
        f"a-0.{ID[:-1]}X-future",
        f"a.{ID}-future",
        f"-0.{ID}-future",
    ],
)
def test_a_future_directory_that_does_not_name_its_topic_makes_all_unknown(name: str) -> None:
    assert topics_of(["b-0", name], 10) is None


def test_topics_are_sorted_and_each_once() -> None:
    assert topics_of(["b-1", "a-0", "b-0", f"c-0.{ID}-future", f"b-2.{ID}-future"], 3) == ("a", "b", "c")
    assert topics_of([], 1) == ()


def test_more_topics_than_asked_for_are_not_known() -> None:
    assert topics_of(["a-0", "b-0", "b-1"], 2) == ("a", "b")
    assert topics_of(["a-0", "b-0", "c-0"], 2) is None


@pytest.mark.parametrize(("length", "topics"), [(249, True), (250, False)])
def test_a_topic_s_name_has_at_most_249_characters(length: int, topics: bool) -> None:
    assert topics_of([f"{'x' * length}-0"], 1) == (("x" * length,) if topics else ())


class Clock:
    """A clock that the test sets, and the listings that were begun."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.begun: list[Callable[[], None]] = []

    def monotonic(self) -> float:
        return self.seconds

    def start(self, function: Callable[..., None], arguments: tuple[object, ...]) -> None:
        self.begun.append(lambda: function(*arguments))

    def run(self) -> int:
        """Run the listings that were begun; return how many."""
        listings, self.begun = self.begun, []
        for listing in listings:
            listing()
        return len(listings)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(topic_list, "time", clock)
    monkeypatch.setattr(topic_list, "_thread", SimpleNamespace(start_new_thread=clock.start))
    return clock


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    (tmp_path / "a-0").mkdir()
    return tmp_path


@pytest.fixture
def topics(log_dir: Path) -> TopicList:
    asked = TopicList(os.fsencode(log_dir))
    asked.ask(10)
    return asked


def look(topics: TopicList, clock: Clock) -> tuple[int, str]:
    """Look once; return how many listings that took, and the news."""
    topics.follow(0)
    return clock.run(), topics.news(0)


def test_a_log_dir_that_is_not_asked_for_is_listed_every_half_minute_while_it_changes(
    log_dir: Path, clock: Clock, capfd: pytest.CaptureFixture[str]
) -> None:
    links = TopicList(os.fsencode(log_dir))
    assert look(links, clock) == (1, "=")
    clock.seconds += 29.9
    os.utime(log_dir, ns=(0, 1))
    assert look(links, clock) == (0, "=")
    clock.seconds += 0.1
    assert look(links, clock) == (1, "=")
    for listings in (1, 0):
        clock.seconds += 30
        assert look(links, clock) == (listings, "=")
    assert capfd.readouterr().out == "", "no topics are asked for, so none are news"


def test_a_partition_that_is_a_link_to_another_file_system_is_found(
    topics: TopicList, log_dir: Path, clock: Clock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    same = tmp_path_factory.mktemp("same")
    with TemporaryDirectory(dir="/dev/shm") as elsewhere:
        assert Path(elsewhere).stat().st_dev != log_dir.stat().st_dev
        (log_dir / "on-the-same-disk-0").symlink_to(same)
        (log_dir / "to-nothing-0").symlink_to(f"{elsewhere}/nothing")
        (log_dir / "no partition").symlink_to(elsewhere)
        look(topics, clock)
        assert topics.link is None
        link = log_dir / "b-0"
        link.symlink_to(os.path.relpath(elsewhere, log_dir))
        clock.seconds += 1
        look(topics, clock)
        assert topics.link == "b-0"
        link.unlink()
        clock.seconds += 1
        look(topics, clock)
        assert topics.link is None


def test_a_log_dir_is_listed_twice_and_again_when_it_has_changed(
    topics: TopicList, log_dir: Path, clock: Clock, capfd: pytest.CaptureFixture[str]
) -> None:
    assert look(topics, clock) == (1, ":a")
    assert capfd.readouterr().out == "!\n"
    clock.seconds += 0.99
    assert look(topics, clock) == (0, "=")
    clock.seconds += 0.01
    assert look(topics, clock) == (1, "="), "there may be more within the same step of its clock"
    clock.seconds += 100
    assert look(topics, clock) == (0, "=")
    (log_dir / "b-0").mkdir()
    os.utime(log_dir, ns=(0, 1))
    assert capfd.readouterr().out == ""
    assert look(topics, clock) == (1, ":a,b")
    assert capfd.readouterr().out == "!\n"
    clock.seconds += 1
    assert [look(topics, clock) for _ in range(2)] == [(1, "="), (0, "=")]


def test_a_change_within_the_same_step_of_the_clock_is_found_one_step_later(
    topics: TopicList, log_dir: Path, clock: Clock
) -> None:
    os.utime(log_dir, ns=(0, 0))
    assert look(topics, clock) == (1, ":a")
    (log_dir / "b-0").mkdir()
    os.utime(log_dir, ns=(0, 0))
    clock.seconds += 1
    assert look(topics, clock) == (1, ":a,b")


def test_another_directory_with_the_same_time_is_listed(
    topics: TopicList, log_dir: Path, clock: Clock
) -> None:
    os.utime(log_dir, ns=(0, 0))
    look(topics, clock)
    log_dir.rename(log_dir.with_name("former"))
    log_dir.mkdir()
    os.utime(log_dir, ns=(0, 0))
    assert look(topics, clock) == (1, ":")


def test_a_log_dir_that_can_not_be_listed_is_tried_every_second(
    topics: TopicList, log_dir: Path, clock: Clock, capfd: pytest.CaptureFixture[str]
) -> None:
    look(topics, clock)
    capfd.readouterr()
    (log_dir / "a-0").rmdir()
    log_dir.rmdir()
    assert look(topics, clock) == (1, "-")
    assert capfd.readouterr().out == "!\n"
    assert look(topics, clock) == (0, "=")
    for _ in range(3):
        clock.seconds += 1
        assert look(topics, clock) == (1, "=")
    log_dir.mkdir()
    assert look(topics, clock) == (1, ":")


def test_while_a_listing_is_under_way_there_is_no_second_one_and_what_was_found_does_not_count_for_long(
    topics: TopicList, log_dir: Path, clock: Clock
) -> None:
    look(topics, clock)
    (log_dir / "b-0").mkdir()
    os.utime(log_dir, ns=(0, 1))
    topics.follow(7)
    topics.follow(8)
    assert len(clock.begun) == 1
    assert [topics.news(7 + ticks) for ticks in range(PATIENCE_TICKS)] == ["="] * PATIENCE_TICKS
    assert topics.news(7 + PATIENCE_TICKS) == "-"
    clock.run()
    assert topics.news(7 + PATIENCE_TICKS) == ":a,b"


def test_without_a_thread_nothing_is_known_and_the_next_look_tries_again(
    topics: TopicList, log_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    look(topics, clock)
    os.utime(log_dir, ns=(0, 1))
    with monkeypatch.context() as changed:
        changed.setattr(topic_list, "_thread", SimpleNamespace(start_new_thread=fails))
        assert look(topics, clock) == (0, "-")
    assert look(topics, clock) == (1, ":a")


def test_topics_that_are_no_longer_asked_for_are_forgotten(
    topics: TopicList, log_dir: Path, clock: Clock
) -> None:
    look(topics, clock)
    topics.ask(0)
    (log_dir / "b-0").mkdir()
    assert look(topics, clock) == (0, "-")
    topics.ask(10)
    assert topics.news(0) == "=", "the former list is out of date"
    assert look(topics, clock) == (1, ":a,b")
    topics.ask(10)
    assert look(topics, clock) == (0, "="), "asked again they are as before"


def test_a_file_and_a_link_count_by_their_names_alone(topics: TopicList, log_dir: Path, clock: Clock) -> None:
    (log_dir / "b-0").symlink_to("/nowhere")
    (log_dir / os.fsdecode(b"\xff-0")).mkdir()
    assert look(topics, clock) == (1, ":a,b")
