"""Writing the state file in parallel with the cycles: its disk may stall, and the lease does not wait."""

from __future__ import annotations

import logging
import threading
import time

from kquota.write.agent_state import AgentState, AgentStateFile

_LOG = logging.getLogger(__name__)

# A write that takes longer is reported: a sound disk answers within a second.
STALLED_SECONDS = 10.0


class StateWriter:
    """Writes states in a thread of its own; a newer one takes the place of one that waits.

    The thread begins with the first state.
    """

    def __init__(self, file: AgentStateFile) -> None:
        """Write to ``file``; no other code in this process may."""
        self._file = file
        self._changed = threading.Condition()
        self._waiting: AgentState | None = None
        self._writing_since_seconds: float | None = None
        self._failure: str | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def save(self, state: AgentState) -> None:
        """Have this state written. Returns at once; ``problem`` has the outcome."""
        with self._changed:
            if self._closed:
                return
            self._waiting = state
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

    def settle(self, timeout_seconds: float) -> bool:
        """Wait until nothing is left to write; return whether that came in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._waiting is None and self._writing_since_seconds is None, timeout_seconds
            )

    def close(self, timeout_seconds: float) -> None:
        """Write the pending state, if that takes no longer, and end the thread, which takes no more."""
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
                self._changed.notify_all()

    def _next(self) -> AgentState | None:
        """Wait for a state that is to be written; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting is not None or self._closed)
            state, self._waiting = self._waiting, None
            if self._closed:
                return None
            self._writing_since_seconds = time.monotonic()
            return state
