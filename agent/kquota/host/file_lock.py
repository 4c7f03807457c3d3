"""A lock that one process of this host holds, until it ends it or dies; others learn which process that is.

The kernel keeps the lock and knows its holder, so the file has no content that could be stale.
Source: fcntl(2), F_SETLK and F_GETLK.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from kquota.formats.strict_json import printable

_FLOCK = "hhqqi"  # struct flock: type, whence, start, length, process id
_LONGEST_COMMAND = 200
_TRIES = 3  # a holder may end between two questions


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has the lock; 0 and an empty command where it can't be seen from here."""

    process_id: int
    command: str

    def __str__(self) -> str:
        if not self.process_id:
            return "another process"
        return f"process {self.process_id}" + (f" ({self.command})" if self.command else "")


class FileLock:
    """A lock on a file that stays. Take it once in a process: its end ends all locks on the same file."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it: root leaves it to the directory's owner.

        Raises:
            OSError: it can't be opened.
        """
        self._file = _opened(path)

    def take(self) -> Holder | None:
        """Take the lock; return who has it, or None if it is ours now.

        Raises:
            OSError: the file system has no locks.
        """
        for _ in range(_TRIES):
            with suppress(BlockingIOError, PermissionError):
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return None
            if (holder := self._holder()) is not None:
                return holder
        return Holder(0, "")

    def close(self) -> None:
        """End the lock."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _holder(self) -> Holder | None:
        """Return who has the lock; None if it has just become free."""
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process_id = struct.unpack(_FLOCK, fcntl.fcntl(self._file, fcntl.F_GETLK, asked))
        if kind == fcntl.F_UNLCK:
            return None
        # One of another namespace has no id here.
        return Holder(max(process_id, 0), _command_of(process_id))


def _opened(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags)
    if os.geteuid() == 0:
        home = path.parent.stat()
        os.fchown(file, home.st_uid, home.st_gid)
    return file


def _command_of(process_id: int) -> str:
    try:
        words = psutil.Process(process_id).cmdline()
    except (psutil.Error, ValueError):  # it has ended, or has no id here
        return ""
    return printable(shlex.join(words)[:_LONGEST_COMMAND])
