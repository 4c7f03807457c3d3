"""Starts the load programs for a cluster and follows their reports."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from testbed.demo.load import Progress
from testbed.loopback.processes import ChildProcess

_RATE_WINDOW_SECONDS = 1.0
_STOP_SECONDS = 20.0


class LoadProcess:
    """A running producer or consumer. Stop it before the cluster goes, or let it go with the cluster."""

    def __init__(
        self,
        what: Literal["produce", "consume"],
        *,
        topic: str,
        configuration: Mapping[str, str],
        log_path: Path,
        environment: Mapping[str, str],
        options: Sequence[str] = (),
    ) -> None:
        settings = dict(configuration)
        command = [sys.executable, "-m", "testbed.demo.load", what, "--topic", topic]
        command += ["--bootstrap", settings.pop("bootstrap.servers"), *options]
        for name, value in settings.items():
            command += ["-X", f"{name}={value}"]
        self._history: list[Progress] = []
        self._lock = threading.Lock()
        self.process = ChildProcess(
            command, log_path=log_path, environment=environment, output=subprocess.PIPE
        )
        self._reader = threading.Thread(target=self._follow, name=f"{what} {topic}", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def history(self) -> list[Progress]:
        """Every report so far, oldest first."""
        with self._lock:
            return list(self._history)

    @property
    def latest(self) -> Progress | None:
        """The newest report; None before the first."""
        with self._lock:
            return self._history[-1] if self._history else None

    def rate_bytes_per_second(self, window_seconds: float = _RATE_WINDOW_SECONDS) -> float:
        """Average over the newest reports that span the window; 0 before there are two."""
        history = self.history
        if len(history) < 2:
            return 0.0
        newest = history[-1]
        since = next(
            entry
            for entry in reversed(history[:-1])
            if entry is history[0] or newest.at - entry.at >= window_seconds
        )
        return (newest.bytes - since.bytes) / max(newest.at - since.at, 1e-3)

    def stop(self) -> Progress:
        """Ask it to flush and end; returns its last report.

        Raises:
            RuntimeError: it ended without a last report; with the end of its output.
        """
        self.process.terminate(_STOP_SECONDS)
        self._reader.join()
        latest = self.latest
        if latest is None or not latest.finished:
            raise RuntimeError(f"{' '.join(self.process.command)} was cut short:\n{self.process.log_tail()}")
        return latest

    def _follow(self) -> None:
        assert self.process.popen.stdout is not None
        with self.process.popen.stdout as lines:
            for line in lines:
                with self._lock:
                    self._history.append(Progress(**json.loads(line)))
