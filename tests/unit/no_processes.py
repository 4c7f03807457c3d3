"""A unit test starts no process: one that does is stopped, and fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STARTS = frozenset(
    {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
)
_attempts: list[list[str]] = []  # of each block that is open
_is_listening = False


class ProcessStarted(Exception):
    """Code under a unit test has started a process, or tried to."""


@contextmanager
def no_processes() -> Iterator[None]:
    """Refuse to start processes; fail at the end of the block even if the refusal was caught."""
    _listen()
    attempts: list[str] = []
    _attempts.append(attempts)
    try:
        yield
    finally:
        _attempts.remove(attempts)
    if attempts:
        raise ProcessStarted(_complaint(attempts[0]))


def _listen() -> None:
    """Hear of every start; Python has no way to end it, so one listener serves all blocks."""
    global _is_listening  # noqa: PLW0603
    if not _is_listening:
        _is_listening = True
        sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _attempts and event in _STARTS:
        attempt = f"{event} {arguments[1] if event == 'subprocess.Popen' else ''}".rstrip()
        _attempts[-1].append(attempt)
        raise ProcessStarted(_complaint(attempt))


def _complaint(attempt: str) -> str:
    return f"a unit test starts no process ({attempt}): move the test to tests/integration"
