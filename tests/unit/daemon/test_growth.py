"""A volume that goes on filling in PAUSE is told with what fills it; a leak is not."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.core.decision import Mode
from kquota.daemon.growth import MIN_GROWTH_BYTES, SETTLE_SECONDS, WINDOW_SECONDS, PauseGrowth
from kquota.daemon.report import CycleReport
from kquota.observe.observation import Failure
from kquota.observe.topic_growth import TopicGrowth, TopicGrowthQuestion, sizes_by_topic
from tests.unit.daemon.cycles import CLUSTER, VERIFIED, Bench, applied_state, volume

GB = 10**9
STEP_SECONDS = 5.0


class Pause:
    """A PAUSE in which the broker's volume grows as it is told."""

    def __init__(self, log_dir: Path, *, enforced: bool = True) -> None:
        self.bench = Bench(granted_for=CLUSTER if enforced else None)
        self.bench.settle()
        if enforced:
            self.bench.ports.plug_in = (applied_state(), VERIFIED)
        self.watch = PauseGrowth(1)
        self.log_dir = str(log_dir)
        self.consumed_bytes = 95 * GB
        self.failed = False

    def go_on(self, seconds: float, growth_bytes: int, free: int = 5) -> dict[str, str]:
        found: dict[str, str] = {}
        steps = round(seconds / STEP_SECONDS)
        for _ in range(steps):
            self.consumed_bytes += growth_bytes // steps
            self.bench.ports.volumes = (volume(free),)
            growing = self.watch.look(self._seen(self.bench.run(after=STEP_SECONDS)))
            found = {name: trouble.sentence for name, trouble in growing.items()}
        return found

    def _seen(self, report: CycleReport) -> CycleReport:
        """The report as of a volume of 100 GB."""
        assert report.observation is not None
        large = replace(
            report.observation.volumes[0],
            capacity_bytes=100 * GB,
            consumed_bytes=self.consumed_bytes,
            log_dirs=(self.log_dir,),
            failures=(Failure(self.log_dir, "it hangs"),) if self.failed else (),
        )
        return replace(report, observation=replace(report.observation, volumes=(large,)))


@pytest.mark.accepts("F30")
def test_growth_in_an_enforced_pause_names_broker_volume_and_topics(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    pause = Pause(tmp_path)
    assert pause.go_on(SETTLE_SECONDS, 10 * GB) == {}, "what was under way at the beginning is no news"
    (sentence,) = pause.go_on(30, GB).values()
    assert "volume /dev/sda1 of broker 1 goes on growing in PAUSE, by " in sentence
    segment = tmp_path / "orders-0" / "00000000000000000000.log"
    deadline = time.monotonic() + 60
    while "orders" not in sentence and time.monotonic() < deadline:
        with segment.open("ab") as file:
            file.write(os.urandom(65_536))
        time.sleep(0.1)
        (sentence,) = pause.go_on(STEP_SECONDS, GB).values()
    assert "topics that grow: orders (" in sentence
    assert pause.go_on(WINDOW_SECONDS + STEP_SECONDS, 0) == {}, "it ends with the growth"
    pause.watch.close()


@pytest.mark.parametrize(
    ("enforced", "free", "growth_bytes"),
    [(False, 5, 50 * GB), (True, 15, 50 * GB), (True, 5, MIN_GROWTH_BYTES // 2)],
    ids=["observed only", "THROTTLE", "a leak"],
)
def test_only_growth_that_a_held_pause_should_have_ended_is_told(
    tmp_path: Path, enforced: bool, free: int, growth_bytes: int
) -> None:
    pause = Pause(tmp_path, enforced=enforced)
    pause.go_on(SETTLE_SECONDS, 0, free)
    assert pause.go_on(WINDOW_SECONDS, growth_bytes, free) == {}
    pause.watch.close()


def test_a_volume_that_comes_back_after_a_while_is_followed_anew(tmp_path: Path) -> None:
    pause = Pause(tmp_path)
    pause.go_on(SETTLE_SECONDS, 0)
    assert len(pause.go_on(30, GB)) == 1
    pause.failed = True
    assert pause.go_on(WINDOW_SECONDS + 2 * STEP_SECONDS, 0) == {}
    pause.failed = False
    assert pause.go_on(STEP_SECONDS, GB) == {}, "one look shows no growth"
    assert pause.go_on(STEP_SECONDS, 0) == {}
    (sentence,) = pause.go_on(30, GB).values()
    assert "goes on growing in PAUSE" in sentence
    pause.watch.close()


def test_no_rate_is_told_of_two_looks_after_a_gap(tmp_path: Path) -> None:
    pause = Pause(tmp_path)
    pause.go_on(SETTLE_SECONDS, 0)
    assert len(pause.go_on(30, GB)) == 1
    pause.failed = True
    pause.go_on(WINDOW_SECONDS - STEP_SECONDS, 0)
    pause.failed = False
    assert len(pause.go_on(STEP_SECONDS, GB)) == 1, "it has grown since the last look before"
    assert pause.go_on(STEP_SECONDS, 0) == {}
    pause.watch.close()


def test_sizes_are_those_of_partitions_by_topic(tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b.c-0", "d-0." + "0" * 32 + "-future", "lost+found", "meta.properties-x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00.log").write_bytes(b"x" * 4096)
    sizes = sizes_by_topic([str(tmp_path)])
    assert set(sizes) == {"a", "b.c", "d"}
    assert sizes["a"] == 2 * sizes["b.c"]


def test_a_log_dir_that_can_not_be_listed_is_said(tmp_path: Path) -> None:
    with TopicGrowthQuestion([str(tmp_path / "gone")]) as question:
        deadline = time.monotonic() + 60
        while (answer := question.answer()) is None and time.monotonic() < deadline:
            time.sleep(0.05)
    assert answer is not None
    assert answer.problem == f"{tmp_path}/gone: No such file or directory"
    assert "can't be looked at" in str(answer)
    assert "no topic on it grows" in str(TopicGrowth())


@pytest.mark.accepts("G22")
def test_with_a_broken_glass_growth_is_the_producers(tmp_path: Path) -> None:
    pause = Pause(tmp_path)
    pause.bench.ports.plug_in = (applied_state(mode=Mode.OBSERVE, broker_mode=Mode.OBSERVE), VERIFIED)
    pause.go_on(SETTLE_SECONDS, 0)
    assert pause.go_on(WINDOW_SECONDS, 4 * MIN_GROWTH_BYTES) == {}
