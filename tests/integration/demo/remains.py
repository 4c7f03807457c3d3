"""The remains of a workspace."""

from __future__ import annotations

import time
from pathlib import Path

import psutil

from testbed.loopback.workspace import held_elsewhere, loop_devices_below, members, mounts_below


def remains_of(path: Path) -> list[str]:
    """Everything a workspace could leave."""
    remains = list(filter(None, map(_shown, members(path))))
    mounts = mounts_below(path)
    remains += [f"mount {mount}" for mount in mounts]
    # A container that starts meanwhile takes a copy of all mounts. They go with it, and are no remains.
    devices = [device for device in loop_devices_below(path) if mounts or not held_elsewhere(device)]
    remains += [f"loop device {device}" for device in devices]
    return remains + ([f"directory {path}"] if path.exists() else [])


def _shown(process: psutil.Process) -> str | None:
    try:
        return f"process {process.pid}: {process.cmdline()}"
    except psutil.NoSuchProcess:
        return None  # it has ended since, if only as a zombie


def wait_until_nothing_remains(path: Path, timeout_seconds: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_seconds
    while remains := remains_of(path):
        assert time.monotonic() < deadline, remains
        time.sleep(0.05)
