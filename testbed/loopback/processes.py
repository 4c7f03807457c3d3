"""Child processes that end with their parent and keep their output in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_TAIL_BYTES = 16_384
_LAST_SECONDS = 10.0


class ChildProcess:
    """A started program: its own session and process group, its output appended to `log_path`.

    Started from the main thread it also dies with this process, whatever ends that. (Linux binds that to the
    life of the starting *thread*, so a child started from another thread would die with the thread; there it
    is left out.)
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log_path: Path,
        environment: Mapping[str, str],
        output: int | None = None,
    ) -> None:
        self.command = tuple(command)
        self.log_path = log_path
        if threading.current_thread() is threading.main_thread():
            command = ["setpriv", "--pdeathsig", "KILL", "--", *command]
        with log_path.open("ab") as log:
            self.popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log if output is None else output,
                stderr=log,
                env=dict(environment),
                start_new_session=True,
            )

    def __del__(self) -> None:
        if hasattr(self, "popen"):
            # One that was killed with its workspace needs no "still running" warning, and a moment to end.
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(_LAST_SECONDS)

    @property
    def pid(self) -> int:
        """Process id."""
        return self.popen.pid

    def exit_code(self) -> int | None:
        """None while it runs; otherwise its exit code, negative for a signal."""
        return self.popen.poll()

    def running(self) -> bool:
        """Whether it has not ended yet (a suspended process is running)."""
        return self.popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the program alone, if it still runs."""
        self.popen.send_signal(number)

    def terminate(self, timeout_seconds: float) -> int:
        """Ask it to end (SIGTERM), kill its process group after the timeout; returns the exit code."""
        self.send(signal.SIGTERM)
        try:
            return self.popen.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """SIGKILL its process group and wait for the end; returns the exit code."""
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
        return self.popen.wait()

    def log_tail(self, lines: int = 25) -> str:
        """The last lines of its output, for error messages."""
        return log_tail(self.log_path, lines)


def log_tail(path: Path, lines: int = 25) -> str:
    """The last lines of a log file; a sentence when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _TAIL_BYTES))
            content = log.read().decode(errors="replace")
    except FileNotFoundError:
        return f"({path} does not exist)"
    return "\n".join(content.splitlines()[-lines:]) or f"({path} is empty)"
