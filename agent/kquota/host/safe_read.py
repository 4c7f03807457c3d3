"""Read a small file that another process owns, refusing whatever could not have come from it."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kquota.core.strict_json import InvalidJson, parse_json

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

    @staticmethod
    def of(cause: Refused, file: str, why: str) -> Refusal:
        """Return the refusal of a file for a reason that is in its content or its permissions."""
        return Refusal(cause, f"{file} is refused: {why}")


def read_json_object(path: Path, what: str, max_bytes: int = MAX_FILE_BYTES) -> dict[str, object] | Refusal:
    """Read ``path`` as one strict JSON object, or return why not; ``what`` names it in the sentence.

    Accepted is only a regular file (no symbolic link), at most ``max_bytes`` long, that group and
    others can't write, owned by root or by the owner of its directory, which group and others can't
    write either: the rules by which the broker's plug-in accepts the decision file.
    """
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return _unopened(path, what, error)
    try:
        home = os.fstat(directory)
        if home.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return Refusal(
                Refused.DIRECTORY,
                f"the {what} {path} is refused: its directory can be written by others than its owner"
                f" (mode {stat.S_IMODE(home.st_mode):04o}; allowed: 0755 or stricter)",
            )
        # O_NONBLOCK: opening a fifo must not wait for a writer
        file = os.open(
            path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory
        )
    except OSError as error:
        return _unopened(path, what, error)
    finally:
        os.close(directory)
    with os.fdopen(file, "rb") as stream:
        refusal = _distrust(path, what, os.fstat(file), home, max_bytes)
        if refusal is not None:
            return refusal
        try:
            raw = stream.read(max_bytes + 1)
        except OSError as error:
            return Refusal(Refused.UNREADABLE, f"the {what} {path} can't be read: {error.strerror}")
    return _parse(path, what, raw, max_bytes)


def _unopened(path: Path, what: str, error: OSError) -> Refusal:
    if error.errno == errno.ENOENT:
        return Refusal(Refused.MISSING, f"there is no {what} at {path}")
    if error.errno == errno.ELOOP:
        return Refusal(Refused.NOT_REGULAR, f"the {what} {path} is refused: it is a symbolic link")
    return Refusal(Refused.UNREADABLE, f"the {what} {path} can't be opened: {error.strerror}")


def _distrust(
    path: Path, what: str, file: os.stat_result, home: os.stat_result, max_bytes: int
) -> Refusal | None:
    if not stat.S_ISREG(file.st_mode):
        return Refusal(Refused.NOT_REGULAR, f"the {what} {path} is refused: it is not a regular file")
    if file.st_uid not in (0, home.st_uid):
        return Refusal(
            Refused.OWNER,
            f"the {what} {path} is refused: it is owned by user {file.st_uid}"
            f" (allowed: root or the directory's owner, user {home.st_uid})",
        )
    if file.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return Refusal(
            Refused.MODE,
            f"the {what} {path} is refused: others than its owner can write it"
            f" (mode {stat.S_IMODE(file.st_mode):04o}; allowed: 0644 or stricter)",
        )
    if file.st_size > max_bytes:
        return Refusal(
            Refused.SIZE,
            f"the {what} {path} is refused: it holds {file.st_size} bytes (allowed: {max_bytes})",
        )
    return None


def _parse(path: Path, what: str, raw: bytes, max_bytes: int) -> dict[str, object] | Refusal:
    try:
        document = parse_json(raw, max_bytes)
    except InvalidJson as error:
        return Refusal(Refused.MALFORMED, f"the {what} {path} is refused: {error}")
    if not isinstance(document, dict):
        return Refusal(Refused.MALFORMED, f"the {what} {path} is refused: it is no JSON object")
    return document
