"""A file that is read again soon after it has changed, by the caller that asks for its content."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from kquota.host.stamps import Stamp, stamp

# A change is in force within a second, the cycle that asks included.
LOOK_SECONDS = 0.25

Content = TypeVar("Content")


class FileProblem(ValueError):
    """A file that can't be used; ``wrong`` says why, ``allowed`` what is wanted of it."""

    def __init__(self, file: Path, wrong: str, allowed: str) -> None:
        super().__init__(f"{file} {wrong}; allowed: {allowed}")
        self.file, self.wrong, self.allowed = file, wrong, allowed


class LiveFile(Generic[Content]):
    """The content of a file, and of its replacements.

    While the file can't be used, the content of before stays, and ``problem`` says why.
    """

    def __init__(
        self,
        path: Path,
        read: Callable[[Path], Content],
        allowed: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the file; ``read`` raises OSError or ValueError if it can't be used.

        Raises:
            FileProblem: it can't be used.
        """
        self._path, self._read, self._allowed, self._clock = path, read, allowed, clock
        self.problem: FileProblem | None = None
        self._stamp: Stamp = stamp(path)
        self._content = self._present()
        self._due_seconds = clock() + LOOK_SECONDS

    def content(self) -> Content:
        """Return the content in force: the same object until the file has changed."""
        now_seconds = self._clock()
        if now_seconds >= self._due_seconds:
            self._due_seconds = now_seconds + LOOK_SECONDS
            self._look()
        return self._content

    def _look(self) -> None:
        found = stamp(self._path)
        if found != self._stamp:
            try:
                self._content = self._present()
            except FileProblem as problem:
                self.problem = problem
                return
        self._stamp, self.problem = found, None

    def _present(self) -> Content:
        try:
            return self._read(self._path)
        except OSError as error:
            raise FileProblem(self._path, f"can't be read: {error.strerror}", self._allowed) from None
        except ValueError as error:
            raise FileProblem(self._path, f"can't be used: {error}", self._allowed) from None
