"""Waiting for what real parts do in their own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def eventually(
    holds: Callable[[], Any], what: str = "it did not come about", timeout_seconds: float = 60.0
) -> Any:
    """Wait until `holds()` is true, and return it."""
    deadline = time.monotonic() + timeout_seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_seconds:g} s: {what}")
        time.sleep(0.05)
    return found
