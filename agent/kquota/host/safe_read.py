"""Read a small file that another process owns, refusing whatever could not have come from it."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kquota.formats.strict_json import InvalidJson, parse_json

MAX_FILE_BYTES = 1024 * 1024


class Refused(StrEnum):
    """Why a file was not taken."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    NOT_REGULAR = "not-regular"
    OWNER = "owner"
    MODE = "mode"
    DIRECTORY = "directory"
    SIZE = "size"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file that was not taken: the kind of reason and a sentence that names the file."""

    cause: Refused
    reason: str

    def __str__(self) -> str:
        return self.reason


def read_json_object(path: Path, what: str, max_bytes: int = MAX_FILE_BYTES) -> dict[str, object] | Refusal:
    """Read ``path`` as one strict JSON object, or return why not; ``what`` names it in the sentence.

    Accepted is only a regular file (no symbolic link), at most ``max_bytes`` long, that group and
    others can't write, owned by root or by the owner of its directory, which group and others can't
    write either: the rules by which the broker's plug-in accepts the decision file.
    """
    name = f"the {what} {path}"
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            home = os.fstat(directory)
            if home.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return Refusal(
                    Refused.DIRECTORY,
                    f"{name} is refused: its directory can be written by others than its owner"
                    f" (mode {stat.S_IMODE(home.st_mode):04o}; allowed: 0755 or stricter)",
                )
            # O_NONBLOCK: opening a fifo must not wait for a writer
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(path.name, flags, dir_fd=directory)
        finally:
            os.close(directory)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return Refusal(Refused.MISSING, f"there is no {what} at {path}")
        if error.errno == errno.ELOOP:
            return Refusal(Refused.NOT_REGULAR, f"{name} is refused: it is a symbolic link")
        return Refusal(Refused.UNREADABLE, f"{name} can't be opened: {error.strerror}")
    with os.fdopen(file, "rb") as stream:
        distrusted = _distrust(os.fstat(file), home, max_bytes)
        if distrusted is not None:
            cause, why = distrusted
            return Refusal(cause, f"{name} is refused: {why}")
        try:
            document = parse_json(stream.read(max_bytes + 1), max_bytes)
        except OSError as error:
            return Refusal(Refused.UNREADABLE, f"{name} can't be read: {error.strerror}")
        except InvalidJson as error:
            return Refusal(Refused.MALFORMED, f"{name} is refused: {error}")
    if not isinstance(document, dict):
        return Refusal(Refused.MALFORMED, f"{name} is refused: it is no JSON object")
    return document


def _distrust(file: os.stat_result, home: os.stat_result, max_bytes: int) -> tuple[Refused, str] | None:
    if not stat.S_ISREG(file.st_mode):
        return Refused.NOT_REGULAR, "it is not a regular file"
    if file.st_uid not in (0, home.st_uid):
        allowed = f"root or the directory's owner, user {home.st_uid}"
        return Refused.OWNER, f"it is owned by user {file.st_uid} (allowed: {allowed})"
    if file.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = f"mode {stat.S_IMODE(file.st_mode):04o}; allowed: 0644 or stricter"
        return Refused.MODE, f"others than its owner can write it ({mode})"
    if file.st_size > max_bytes:
        return Refused.SIZE, f"it holds {file.st_size} bytes (allowed: {max_bytes})"
    return None
