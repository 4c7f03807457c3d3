"""Events that other threads hand to the one that runs the cycles."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import weakref
from queue import SimpleQueue
from typing import Generic, TypeVar

_Event = TypeVar("_Event")

# More than a cycle takes out, so that a reader which waits for room delays none.
MAX_HELD_BYTES = 16 * 1_048_576


class EventQueue(Generic[_Event]):
    """A queue that one thread empties; it can wait for an event and a file descriptor at the same time.

    The descriptor ``urgent`` is readable once there is an urgent event, or a thread waits for room.
    """

    def __init__(self, most_bytes: int = MAX_HELD_BYTES) -> None:
        """Hold at most this much, or one event that is larger."""
        self._events: SimpleQueue[tuple[_Event, int]] = SimpleQueue()
        self._most_bytes, self._held_bytes = most_bytes, 0
        self._room = threading.Condition()
        self._closed = False
        self._signal = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.urgent = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        # Not sooner: a client's thread that ends late may still put something.
        for descriptor in (self._signal, self.urgent):
            weakref.finalize(self, os.close, descriptor)

    def put(self, event: _Event, size_bytes: int = 0, *, is_urgent: bool = False) -> None:
        """Hand over an event, from any thread; one with a size waits until there is room for it.

        A queue that is closed drops what has a size.
        """
        if size_bytes and not self._has_taken_in(size_bytes):
            return
        self._events.put((event, size_bytes))
        os.eventfd_write(self._signal, 1)
        if is_urgent:
            os.eventfd_write(self.urgent, 1)

    def get_nowait(self) -> _Event:
        """Take out an event. Raises ``queue.Empty`` where there is none."""
        event, size_bytes = self._events.get_nowait()
        if size_bytes:
            with self._room:
                self._held_bytes -= size_bytes
                self._room.notify_all()
        return event

    def close(self) -> None:
        """Let no thread wait for room any more."""
        with self._room:
            self._closed = True
            self._room.notify_all()

    def begin_to_empty(self) -> None:
        """Have only later events count as urgent."""
        _reset(self.urgent)

    def leave_the_rest(self) -> None:
        """Have the events that were not taken out count as urgent, if there are any."""
        if not self._events.empty():
            os.eventfd_write(self.urgent, 1)

    def wait(self, timeout_seconds: float, alarm: int | None = None) -> None:
        """Wait until there is an event, the descriptor ``alarm`` is readable, or the time is over."""
        if not self._events.empty():
            return
        readable(timeout_seconds, self._signal, alarm)
        _reset(self._signal)

    def _has_taken_in(self, size_bytes: int) -> bool:
        """Wait for room, and return whether there is any: not once the queue is closed."""
        with self._room:
            while not self._closed and self._held_bytes and self._held_bytes + size_bytes > self._most_bytes:
                os.eventfd_write(self.urgent, 1)
                self._room.wait()
            self._held_bytes += size_bytes
            return not self._closed


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
