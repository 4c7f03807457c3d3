"""Waiting for the tests that run in a process of their own, and looking meanwhile at what they have shown."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

_LOOK_SECONDS = 1.0


def watch(process: subprocess.Popen[bytes], look: Callable[[], None]) -> None:
    """Wait for its end, and call ``look`` each second until then."""
    while process.poll() is None:
        try:
            process.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            look()
