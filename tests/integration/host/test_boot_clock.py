"""The clock of leases is not the wall clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kquota.host.boot_clock import BootClock


@pytest.mark.accepts("F8")
def test_the_wall_clock_is_not_asked() -> None:
    # the boot clock of a time namespace is moved by an hour; the wall clock there stays: they are two clocks
    code = "from kquota.host.boot_clock import BootClock; print(BootClock().now().uptime_ms)"
    here = BootClock().now().uptime_ms
    moved = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--time",
            "--boottime",
            "3600",
            "--fork",
            sys.executable,
            "-c",
            code,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(moved.stdout) - here >= 3_600_000
