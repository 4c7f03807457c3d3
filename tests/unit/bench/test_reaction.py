"""How it is noticed that the peer holds producers: from its brokers' logs, while they are written."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from bench.reaction import PeerLogs
from kquota.policy.decision import State

TOLD = (
    "INFO Throttle Factor changed from ThrottleFactor{throttleFactor=1.0, source=X} "
    "to ThrottleFactor{throttleFactor=0.0, source=X}, notifying listener\n"
)


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"node-{number}.log" for number in (1, 2)]
    for path in paths:
        path.write_text(TOLD)  # of an earlier time
    return paths


def append(path: Path, text: str) -> None:
    with path.open("a") as log:
        log.write(text)


def test_the_last_broker_counts_by_a_new_line_even_if_it_comes_in_parts(logs: list[Path]) -> None:
    peer = PeerLogs(logs)
    written_at: list[float] = []

    def write() -> None:
        append(logs[0], TOLD)
        append(logs[1], TOLD[:90])
        time.sleep(0.3)
        written_at.append(time.monotonic())
        append(logs[1], TOLD[90:])

    writer = threading.Thread(target=write)
    writer.start()
    seen_at = peer.wait_for(State.PAUSE)
    writer.join()
    assert seen_at >= written_at[0]
