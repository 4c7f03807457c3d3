"""Events that other threads hand to the one that runs the cycles."""

from __future__ import annotations

import contextlib
import os
import select
import weakref
from queue import SimpleQueue
from typing import Generic, TypeVar

_Event = TypeVar("_Event")


class Inbox(Generic[_Event]):
    """A queue that one thread empties; it can wait for an event and a file descriptor at the same time.

    The descriptor ``urgent`` is readable once there is an urgent event.
    """

    def __init__(self) -> None:
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._signal = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.urgent = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        # Not sooner: a client's thread that ends late may still put something.
        for descriptor in (self._signal, self.urgent):
            weakref.finalize(self, os.close, descriptor)

    def put(self, event: _Event, *, is_urgent: bool = False) -> None:
        """Hand over an event, from any thread."""
        self._events.put(event)
        os.eventfd_write(self._signal, 1)
        if is_urgent:
            os.eventfd_write(self.urgent, 1)

    def get_nowait(self) -> _Event:
        """Take out an event. Raises ``queue.Empty`` where there is none."""
        return self._events.get_nowait()

    def begin_to_empty(self) -> None:
        """Have only later events count as urgent."""
        _reset(self.urgent)

    def wait(self, timeout_seconds: float, alarm: int | None = None) -> None:
        """Wait until there is an event, the descriptor ``alarm`` is readable, or the time is over."""
        if not self._events.empty():
            return
        readable(timeout_seconds, self._signal, alarm)
        _reset(self._signal)


def _reset(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.eventfd_read(descriptor)


def readable(timeout_seconds: float, *descriptors: int | None) -> bool:
    """Wait until one of them is readable, at most this long; return whether one is."""
    poll = select.poll()
    for descriptor in descriptors:
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, timeout_seconds) * 1000))
