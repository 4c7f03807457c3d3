"""Writing the state file in parallel with the cycles: its disk may stall or be full, and no lease waits."""

from __future__ import annotations

import logging
import threading
import time

from kquota.guard.agent_state import AgentState, AgentStateFile

_LOG = logging.getLogger(__name__)

# A write that takes longer is reported: a sound disk answers within a second.
STALLED_SECONDS = 10.0
# Nothing says when a disk has space again; a try costs no more than an open file where it has none.
RETRY_SECONDS = 5.0


class StateWriter:
    """Writes states in a thread of its own; a newer one takes the place of one that waits.

    A state that could not be written is tried again until it, or a newer one, is in the file. The thread
    begins with the first state.
    """

    def __init__(self, file: AgentStateFile) -> None:
        """Write to ``file``; no other code in this process may."""
        self._file = file
        self._changed = threading.Condition()
        self._unwritten: AgentState | None = None
        self._due = False
        self._writing_since_seconds: float | None = None
        self._failure: str | None = None
        self._failures = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    def save(self, state: AgentState) -> None:
        """Have this state written. Returns at once; ``problem`` has the outcome."""
        with self._changed:
            if self._closed:
                return
            self._unwritten, self._due = state, True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kquota-state", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    @property
    def problem(self) -> str | None:
        """Why the newest state is not in the file, as one sentence; None where it is, or soon will be."""
        with self._changed:
            since_seconds = self._writing_since_seconds
            if since_seconds is not None and time.monotonic() - since_seconds >= STALLED_SECONDS:
                return f"the state file {self._file.path} can't be written: its disk does not answer"
            return self._failure

    def drain_failures(self) -> int:
        """Return how many writes have failed since the last call."""
        with self._changed:
            failures, self._failures = self._failures, 0
            return failures

    def settle(self, timeout_seconds: float) -> bool:
        """Wait until the newest state has been tried; return whether it is in the file, in time."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._due and self._writing_since_seconds is None, timeout_seconds
            )
            return self._unwritten is None

    def close(self, timeout_seconds: float) -> None:
        """Write the newest state, if that takes no longer, and end the thread, which takes no more."""
        with self._changed:
            self._due = self._unwritten is not None
            self._changed.notify_all()
        self.settle(timeout_seconds)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (state := self._next()) is not None:
            failure: str | None = None
            try:
                self._file.save(state)
            except OSError as error:
                failure = f"the state file {self._file.path} can't be written: {error}"
            except Exception:
                # A mistake here must not end the writing: it would go unnoticed until the next start.
                _LOG.exception("writing the state file failed unexpectedly")
            with self._changed:
                self._writing_since_seconds, self._failure = None, failure
                if failure is not None:
                    self._failures += 1
                elif self._unwritten is state:
                    self._unwritten = None
                self._changed.notify_all()

    def _next(self) -> AgentState | None:
        """Wait for a state that is to be written, or tried again; None at the end."""
        with self._changed:
            retry_seconds = None if self._unwritten is None else RETRY_SECONDS
            self._changed.wait_for(lambda: self._due or self._closed, retry_seconds)
            if self._closed:
                return None
            self._due = False
            self._writing_since_seconds = time.monotonic()
            return self._unwritten
