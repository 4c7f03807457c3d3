"""What a workspace leaves behind."""

from __future__ import annotations

import time
from pathlib import Path

from kquota.demo.workspace import loop_devices_below, members, mounts_below


def remains_of(path: Path) -> list[str]:
    """Everything a workspace could leave."""
    remains = [f"process {process.pid}: {process.cmdline()}" for process in members(path)]
    remains += [f"mount {mount}" for mount in mounts_below(path)]
    remains += [f"loop device {device}" for device in loop_devices_below(path)]
    return remains + ([f"directory {path}"] if path.exists() else [])


def wait_until_nothing_remains(path: Path, timeout_seconds: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_seconds
    while remains := remains_of(path):
        assert time.monotonic() < deadline, remains
        time.sleep(0.05)
