"""Scripts that own a workspace, to be ended in every way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

RunScript = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a test makes its workspaces."""
    return tmp_path


@pytest.fixture
def run_script(root: Path) -> Iterator[RunScript]:
    """Run Python code with ROOT set, in a session of its own."""
    running: list[subprocess.Popen[str]] = []

    def run(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", code],
            env={**os.environ, "ROOT": str(root)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        return process

    yield run
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
