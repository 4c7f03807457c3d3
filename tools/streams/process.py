"""One stream as a group of processes, whose output goes to a file."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from tools.streams.stream import REPOSITORY, Stream

_TAIL_BYTES = 8_192
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DRAWN = re.compile(r"[^\w\s]{3,}|[│─┌└]")


class RunningStream:
    """It has been started; the folder of its record has to be there."""

    def __init__(self, stream: Stream, record: Path) -> None:
        self.stream = stream
        self.record = record
        self._begun_at = time.monotonic()
        self._ended_at: float | None = None
        self._busy_seconds = 0.0
        with record.open("wb") as output:
            # A group of its own can be ended as a whole; in the same session sudo remembers who it is.
            self._process = subprocess.Popen(
                stream.command,
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
                # Tests start the agent and the command hundreds of times, and its modules are compiled once.
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
            )

    @property
    def seconds(self) -> float:
        """How long it has been running, or ran."""
        return (time.monotonic() if self._ended_at is None else self._ended_at) - self._begun_at

    @property
    def cores(self) -> float:
        """How many cores it has kept busy on the average, once it has ended; without what outlived it."""
        return self._busy_seconds / max(self.seconds, 0.001)

    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal."""
        if self._ended_at is not None:
            return self._process.returncode
        before_seconds = _of_ended_children_seconds()
        code = self._process.poll()
        if code is not None:
            self._ended_at = time.monotonic()
            self._busy_seconds = _of_ended_children_seconds() - before_seconds
        return code

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all its processes, also to those that it runs as root."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            command = ["sudo", "-n", "kill", f"-{number.value}", "--", f"-{self._process.pid}"]
            subprocess.run(command, check=False, capture_output=True)

    def last_line(self) -> str:
        """What it has printed last that says something; empty when there is nothing yet."""
        with suppress(OSError), self.record.open("rb") as record:
            record.seek(0, os.SEEK_END)
            record.seek(max(0, record.tell() - _TAIL_BYTES))
            for line in reversed(record.read().decode(errors="replace").splitlines()):
                plain = " ".join(_DRAWN.sub(" ", _CONTROL.sub("", line)).split())
                if any(character.isalnum() for character in plain):
                    return plain
        return ""


def stay_root() -> None:
    """Have sudo go on trusting this terminal: nobody is there to be asked when a stream needs it."""
    if os.geteuid() != 0:
        subprocess.run(["sudo", "-n", "-v"], check=False, capture_output=True)


def _of_ended_children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
