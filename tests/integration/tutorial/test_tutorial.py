"""The tutorial's commands, typed as they are on the page, have the output of the page."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.demo.remains import remains_of
from tests.integration.tutorial.page import PAGE, ROOT, Step, steps, words_missing

_START_SECONDS = 400
_SESSION_SECONDS = 400
_END_SECONDS = 90


@pytest.fixture
def playground(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The cluster of the page's first block, ready; interrupted and cleaned up at the end."""
    root = tmp_path / "root"
    root.mkdir()
    first = steps(PAGE.read_text("utf-8"))[0]
    log = tmp_path / "playground.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", first.commands],
            cwd=ROOT,
            env={**os.environ, "LOOPBACK_KAFKA_ROOT": str(root)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while "ready:" not in (text := log.read_text("utf-8")):
            assert process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.2)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(_END_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert "interrupted" in log.read_text("utf-8")
    assert remains_of(root) == [f"directory {root}"]
    assert list(root.iterdir()) == []
    assert not (ROOT / "build/playground").exists()


def session(typed: list[Step], directory: Path) -> list[str]:
    """Type everything into one shell; return what came of each step. Any command that fails ends it."""
    script = ["set -e"]
    for number, step in enumerate(typed):
        block = directory / f"step-{number}.sh"
        block.write_text(step.commands, "utf-8")
        script += [f"echo; echo @step {number}", f". {shlex.quote(str(block))}"]
    file, log = directory / "session.sh", directory / "session.log"
    file.write_text("\n".join([*script, "echo; echo @end"]) + "\n", "utf-8")
    with log.open("wb") as output:
        done = subprocess.run(
            ["/bin/bash", file],
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "120", "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_SESSION_SECONDS,
            check=False,
        )
    text = log.read_text("utf-8")
    print(text)
    assert done.returncode == 0, text
    return re.split(r"^@(?:step \d+|end)\n", text, flags=re.MULTILINE)[1:-1]


@pytest.mark.long
@pytest.mark.timeout(1000)
def test_every_command_of_the_tutorial_does_what_the_page_says(
    playground: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    typed = steps(PAGE.read_text("utf-8"))[1:]
    outputs = session(typed, tmp_path)
    assert len(outputs) == len(typed)
    for step, real in zip(typed, outputs, strict=True):
        if step.output is not None:
            missing = words_missing(step.output, real)
            assert missing == [], f"{step.commands}says\n{real}and not\n{step.output}"
    assert playground.poll() is None


def test_a_word_that_is_not_said_is_missed() -> None:
    assert words_missing("PAUSE 12 of broker 3", "PAUSE 40 of the broker 1") == []
    assert words_missing("broker PAUSE", "PAUSE of broker") == ["PAUSE"]
    assert steps("```sh\na\n```\nx\n```text\nb\n```\n") == [Step("a\n", "b\n")]
