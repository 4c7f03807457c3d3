"""The cost of a command is that of all its processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.pipeline.processes import measured

HELD_BYTES, CPU_SECONDS = 100_000_000, 1.5
# The child of a child works; both end at once after that.
WORK = f"""
import time
held = b"x" * {HELD_BYTES}
while time.process_time() < {CPU_SECONDS}:
    pass
"""
BETWEEN = (
    "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True); print('done')"
)


def test_time_and_memory_of_a_grandchild_count(tmp_path: Path) -> None:
    ran = measured([sys.executable, "-c", BETWEEN, WORK], tmp_path / "log")
    assert ran.said == "done\n"
    assert ran.cpu_seconds > CPU_SECONDS / 2, "all but what came after the last look"
    assert ran.peak.tree_bytes > HELD_BYTES
    assert ran.wall_seconds > CPU_SECONDS / 2


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no room"):
        measured([sys.executable, "-c", "raise SystemExit('no room')"], tmp_path / "log")
