"""A command on a terminal of its own, with a typist."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from typing import Self

from tests.integration.spine.agents import KQUOTA, AgentProcess

_PATIENCE_SECONDS = 60.0
_SCREEN = re.compile(rb"\x1b\[\?1049([hl])")
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Runs one command of `kquota` for an agent's configuration until the block ends."""

    def __init__(self, agent: AgentProcess, *arguments: str, columns: int, lines: int) -> None:
        self._command = [*KQUOTA, *arguments, "--config", str(agent.config)]
        self._environment = {
            name: value for name, value in agent.environment.items() if name not in ("COLUMNS", "LINES")
        } | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._seen = b""
        self._after = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def press(self, keys: str) -> None:
        """Type; the next awaited output has to come after it."""
        self._after = len(self._seen)
        os.write(self._ours, keys.encode())

    def await_text(self, text: str) -> None:
        """Wait until it is shown, colours aside."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while text.encode() not in _CONTROL.sub(b"", self._seen[self._after :]):
            assert time.monotonic() < deadline, f"{text!r} is not shown: {self._seen[-3000:]!r}"
            self._read()

    def wait(self) -> int:
        """Wait for its end; return its code."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._process.poll() is None:
            assert time.monotonic() < deadline, "it does not end"
            self._read()
        self._read()
        return self._process.returncode

    @property
    def on_alternate_screen(self) -> list[bool]:
        """The changes to the alternate screen and back, in order."""
        return [switch == b"h" for switch in _SCREEN.findall(self._seen)]

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows typed text, and gives it line by line."""
        flags = int(termios.tcgetattr(self._theirs)[3])
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)

    def _read(self) -> None:
        if select.select([self._ours], [], [], 0.1)[0]:
            self._seen += os.read(self._ours, 65536)
