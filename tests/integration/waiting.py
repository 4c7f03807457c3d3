"""Waiting for what real parts do in their own time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

# For machines as busy as tests may find; a campaign of mutants, in which many wait in vain, sets less.
PATIENCE_SECONDS = float(os.environ.get("KQUOTA_PATIENCE_SECONDS", "60"))


def eventually(
    holds: Callable[[], Any], what: str = "it did not come about", timeout_seconds: float = PATIENCE_SECONDS
) -> Any:
    """Wait until `holds()` is true, and return it."""
    deadline = time.monotonic() + timeout_seconds
    look_at = time.monotonic()
    while not (found := holds()):
        seen_at = time.monotonic()
        if seen_at > deadline:
            raise AssertionError(f"not within {timeout_seconds:g} s: {what}")
        # No more than half of the time goes into looking: the observed process has to get on, too.
        time.sleep(min(1.0, max(0.05, seen_at - look_at)))
        look_at = time.monotonic()
    return found


def at_rest(look: Callable[[], Any], what: str, timeout_seconds: float = 60.0) -> Any:
    """Wait until `look()` has been the same for a second, and return it."""
    deadline = time.monotonic() + timeout_seconds
    found, since = look(), time.monotonic()
    while time.monotonic() - since < 1.0:
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_seconds:g} s: {what}")
        time.sleep(0.1)
        if (now := look()) != found:
            found, since = now, time.monotonic()
    return found
