"""Single keys from a terminal, without waiting for them."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from typing import Any, Self

# The codes of keys that are no character; any other sequence that begins with an escape is ignored.
_SEQUENCES = {
    b"[A": "up",
    b"[B": "down",
    b"OA": "up",
    b"OB": "down",
    b"[5~": "page up",
    b"[6~": "page down",
    b"[H": "home",
    b"[F": "end",
    b"": "escape",
}
_ESCAPE = b"\x1b"


class Keyboard:
    """Reads single keys while it is open, where standard input is a terminal; elsewhere there are none."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        if sys.stdin.isatty():
            descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
            # The picture covers the screen: a shell that comes back by Ctrl-Z would draw over it.
            attributes = termios.tcgetattr(descriptor)
            attributes[6][termios.VSUSP] = b"\x00"
            termios.tcsetattr(descriptor, termios.TCSADRAIN, attributes)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._before is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)

    @property
    def open(self) -> bool:
        """Whether there are keys to wait for."""
        return self._before is not None

    def pressed(self) -> list[str]:
        """Return the keys pressed since the last call: characters, or names such as "page down"."""
        typed = b""
        while self._before is not None and select.select([sys.stdin], [], [], 0)[0]:
            more = os.read(sys.stdin.fileno(), 1024)
            if not more:  # the terminal is gone
                raise KeyboardInterrupt
            typed += more
        return keys_of(typed)


def keys_of(typed: bytes) -> list[str]:
    """Return the keys behind what a terminal sent."""
    plain, *escaped = typed.split(_ESCAPE)
    keys = list(plain.decode("utf-8", "replace"))
    for sequence in escaped:
        length = next((n for n in (3, 2, 0) if sequence[:n] in _SEQUENCES and len(sequence) >= n), 0)
        if length or not sequence:
            keys.append(_SEQUENCES[sequence[:length]])
            keys += list(sequence[length:].decode("utf-8", "replace"))
    return keys
