"""Remembers the last good configuration, and tries again, apart from the cycles, if its disk is full."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from kquota.daemon.journal import Entry, MessageId
from kquota.daemon.metrics import AgentMetrics
from kquota.daemon.state_writer import RETRY_SECONDS
from kquota.settings.last_good import Unremembered


class GoodConfiguration:
    """Stores the configuration in force; where that fails, a thread of its own tries again."""

    def __init__(self, remember: Callable[[], Unremembered | None], metrics: AgentMetrics) -> None:
        """``remember`` stores the configuration in force, or returns it; ``metrics`` count the failures."""
        self._remember, self._metrics = remember, metrics
        self._entries: SimpleQueue[Entry] = SimpleQueue()
        self._ended = threading.Event()
        self._writing = threading.Lock()

    def remember(self) -> None:
        """Store the configuration in force; an earlier one is not tried any more."""
        self._ended.set()
        with self._writing:
            unremembered = self._remember()
        if unremembered is None:
            return
        self._count(unremembered)
        self._entries.put(Entry.of(MessageId.STATE_FILE_BROKEN, unremembered.sentence))
        self._ended = threading.Event()
        arguments = unremembered, self._ended
        threading.Thread(target=self._try_again, args=arguments, name="kquota-good", daemon=True).start()

    def entries(self) -> list[Entry]:
        """Return what has happened since the last call."""
        return [self._entries.get_nowait() for _ in range(self._entries.qsize())]

    def close(self) -> None:
        """Try no more."""
        self._ended.set()

    def _try_again(self, unremembered: Unremembered, ended: threading.Event) -> None:
        while not ended.wait(RETRY_SECONDS):
            with self._writing:
                if ended.is_set():
                    return
                try:
                    unremembered.write()
                except OSError:
                    self._count(unremembered)
                    continue
            over = f"over: {unremembered.sentence}"
            self._entries.put(Entry(logging.INFO, over, MessageId.STATE_FILE_BROKEN))
            return

    def _count(self, unremembered: Unremembered) -> None:
        self._metrics.file_write_errors.labels(unremembered.file.name).inc()
