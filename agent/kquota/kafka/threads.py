"""A mistake in a thread outside the cycle is reported, and the thread continues.

Had it ended, the others would learn of it as staleness alone, and some of what it looks at would go
unnoticed.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOG = logging.getLogger(__name__)


class Watch(ABC):
    """A thread that looks at something again and again, from start() until close()."""

    def __init__(self, thread: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=thread, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking; waits two seconds at most for an answer under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    @abstractmethod
    def _run(self) -> None:
        """Look until `_stop` is set."""


def repeat(step: Callable[[], None], what: str, *, until: threading.Event, pause_seconds: float) -> None:
    """Call ``step`` again and again; after one that failed unexpectedly, wait for ``pause_seconds``.

    ``what`` it does is a noun or a gerund, such as "reading topic usage": a log message begins with it.
    """
    while not until.is_set():
        try:
            step()
        except Exception:
            _log_failure(what)
            until.wait(pause_seconds)


@contextmanager
def going_on(what: str) -> Iterator[None]:
    """Leave the block where it fails unexpectedly, and report the failure, as `repeat` does."""
    try:
        yield
    except Exception:
        _log_failure(what)


def _log_failure(what: str) -> None:
    _LOG.exception("%s failed unexpectedly; it goes on", what)
