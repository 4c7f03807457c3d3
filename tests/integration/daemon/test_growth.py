"""The growing topics of a volume in PAUSE, found by a process that examines its log dirs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kquota.disks.topic_growth import TopicGrowth, TopicGrowthQuestion
from kquota.retention.growth import SETTLE_SECONDS, WINDOW_SECONDS
from tests.unit.retention.pauses import GB, STEP_SECONDS, Pause


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


def test_a_log_dir_that_can_not_be_listed_is_said(tmp_path: Path) -> None:
    with TopicGrowthQuestion([str(tmp_path / "gone")]) as question:
        deadline = time.monotonic() + 60
        while (answer := question.answer()) is None and time.monotonic() < deadline:
            time.sleep(0.05)
    assert answer is not None
    assert answer.problem == f"{tmp_path}/gone: No such file or directory"
    assert "can't be looked at" in str(answer)
    assert "no topic on it grows" in str(TopicGrowth())
