"""A volume that keeps filling in PAUSE is reported with its growing topics; a leak is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.disks.topic_growth import TopicGrowth, sizes_by_topic
from kquota.policy.decision import Mode
from kquota.retention.growth import ASK_AGAIN_SECONDS, MIN_GROWTH_BYTES, SETTLE_SECONDS, WINDOW_SECONDS
from tests.unit.guard.cycles import VERIFIED, applied_state
from tests.unit.retention.pauses import GB, STEP_SECONDS, Pause


class Unanswered:
    """Stands for the process that is asked which topics grow, and takes its time."""

    def __init__(self, _log_dirs: object) -> None:
        pass

    def answer(self) -> TopicGrowth | None:
        """Return nothing: there is no answer yet."""
        return None

    def close(self) -> None:
        """Nothing is to be ended."""


@pytest.fixture(autouse=True)
def _no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kquota.retention.growth.TopicGrowthQuestion", Unanswered)


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


def test_a_growth_that_lasts_is_asked_about_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that grew an hour ago may have been throttled or cancelled since, and a question may fail."""
    answers = [
        TopicGrowth(problem="the disk does not answer"),
        TopicGrowth((("orders", 10**6),)),
        TopicGrowth((("visits", 10**6),)),
    ]

    class Answered(Unanswered):
        def answer(self) -> TopicGrowth:
            return answers.pop(0)

    monkeypatch.setattr("kquota.retention.growth.TopicGrowthQuestion", Answered)
    pause = Pause(tmp_path)
    pause.go_on(SETTLE_SECONDS, 0)
    (first,) = pause.go_on(30, GB).values()
    assert "the disk does not answer" in first
    (second,) = pause.go_on(ASK_AGAIN_SECONDS, 20 * GB).values()
    assert "topics that grow: orders (" in second
    (third,) = pause.go_on(ASK_AGAIN_SECONDS - 60, 20 * GB).values()
    assert "topics that grow: orders (" in third, "not yet"
    (fourth,) = pause.go_on(60, GB).values()
    assert "topics that grow: visits (" in fourth
    pause.watch.close()


def test_sizes_are_those_of_partitions_by_topic(tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b.c-0", "d-0." + "0" * 32 + "-future", "lost+found", "meta.properties-x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00.log").write_bytes(b"x" * 4096)
    sizes = sizes_by_topic([str(tmp_path)])
    assert set(sizes) == {"a", "b.c", "d"}
    assert sizes["a"] == 2 * sizes["b.c"]


@pytest.mark.accepts("G22")
def test_with_a_broken_glass_growth_is_the_producers(tmp_path: Path) -> None:
    pause = Pause(tmp_path)
    pause.bench.ports.plug_in = (applied_state(mode=Mode.OBSERVE, broker_mode=Mode.OBSERVE), VERIFIED)
    pause.go_on(SETTLE_SECONDS, 0)
    assert pause.go_on(WINDOW_SECONDS, 4 * MIN_GROWTH_BYTES) == {}
